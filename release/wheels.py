"""Build wheels for Linux that run with glibc 2.28 and newer, for both machines (``make wheels``).

The compiler comes from PyPI: it brings the C library of any age and machine that it compiles for.
auditwheel checks what was built.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from release.tools import PLACE, ROOT, ReleaseError, build, environment, run

DIST = ROOT / "dist"
GLIBC = "2.28"
MACHINES = ("x86_64", "aarch64")


def build_wheel(machine: str, python: Path, source: Path, target: Path) -> Path:
    """Build the wheel of ``source`` for ``machine`` into the folder ``target``, checked.

    It is named after the oldest glibc that its libraries run with.
    """
    with TemporaryDirectory(prefix="wheel.", dir=made(PLACE)) as scratch:
        compiled = build(python, source, Path(scratch), "--wheel", **compiler(python, machine))
        return _audit(compiled, machine, python, target)


def build_pure_wheel(python: Path, source: Path, target: Path) -> Path:
    """Build the wheel without compiled parts, which views everything and records nothing."""
    without = {"FLAME_NO_INJECT": "1", "FLAME_NO_NATIVE": "1"}
    return build(python, source, target, "--wheel", **without)


def compiler(python: Path, machine: str) -> dict[str, str]:
    """Return the variables that have a build compile for ``machine``, and for an old glibc."""
    target = f"-target {machine}-linux-gnu.{GLIBC} -g0 -Wl,-s"
    return {
        "CC": f"{python} -m ziglang cc {target}",
        "CXX": f"{python} -m ziglang c++ {target}",
        "FLAME_MACHINE": machine,
        "FLAME_NO_INJECT": "0",
        "FLAME_NO_NATIVE": "0",
        "ZIG_GLOBAL_CACHE_DIR": str(PLACE / "cache"),
    }


def _audit(wheel: Path, machine: str, python: Path, target: Path) -> Path:
    """Check the wheel and call it after the glibc that it needs, in place of older ones."""
    # Which glibc that is auditwheel finds itself; by name it takes those of this machine alone.
    checked = wheel.parent / "checked"
    words = ("repair", "--only-plat", "--plat", "auto", "--wheel-dir", checked)
    beside = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    run(python.with_name("auditwheel"), *words, wheel, PATH=beside)
    (named,) = checked.glob(f"*-manylinux_*_{machine}.whl")
    return Path(shutil.move(named, target / named.name))


def made(folder: Path) -> Path:
    """Return ``folder``, made where it is not."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def main(machines: list[str]) -> int:
    """Build wheels of the working tree into dist/, for all machines or those that are named."""
    try:
        python = environment()
        for machine in machines or MACHINES:
            for older in DIST.glob(f"*_{machine}.whl"):
                older.unlink()
            print(build_wheel(machine, python, ROOT, made(DIST)).relative_to(ROOT))
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
