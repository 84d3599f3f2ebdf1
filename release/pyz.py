"""Build flame and all it needs as one file, for machines without pip (``make pyz``).

It runs with the Python that built it, or another of the same version: numpy is compiled for one.
"""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from flame._version import __version__
from release.tools import LOCKED_DEPENDENCIES, PLACE, ROOT, ReleaseError, environment, run
from release.wheels import DIST, build_wheel, made

# Where installing would put files beside the packages: the one file has no such places.
_BESIDE = {"data", "headers", "scripts"}


def pack(wheel: Path, python: Path, folder: Path) -> Path:
    """Pack ``wheel`` and what it depends on, as locked, into a file in ``folder``.

    The wheels are unpacked and not installed: pip would note where it got them from.
    """
    here = f"cp{sys.version_info.major}{sys.version_info.minor}-{platform.machine()}"
    target = folder / f"flame-{__version__}-{here}.pyz"
    with TemporaryDirectory(prefix="pyz.", dir=made(PLACE)) as scratch:
        wheels, packages = Path(scratch, "wheels"), Path(scratch, "packages")
        pip = (python, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes")
        run(*pip, "--only-binary", ":all:", "-r", LOCKED_DEPENDENCIES, "-d", wheels)
        for one in sorted([wheel, *wheels.iterdir()]):
            run(sys.executable, "-m", "zipfile", "-e", one, packages)
        for data in packages.glob("*.data"):
            if kept := {path.name for path in data.iterdir()} - _BESIDE:
                raise ReleaseError(f"{data.name} has {', '.join(sorted(kept))}: not to be packed")
            shutil.rmtree(data)
        shiv = (python, "-m", "shiv.cli", "--reproducible", "--compressed", "--extend-pythonpath")
        start = ("--console-script", "flame", "--python", "/usr/bin/env python3")
        run(*shiv, *start, "--site-packages", packages, "--output-file", target)
    return target


def main() -> int:
    """Build the wheel of the working tree for this machine, and pack it into dist/."""
    try:
        python = environment()
        with TemporaryDirectory(prefix="wheel.", dir=made(PLACE)) as scratch:
            wheel = build_wheel(platform.machine(), python, ROOT, Path(scratch))
            print(pack(wheel, python, made(DIST)).relative_to(ROOT))
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
