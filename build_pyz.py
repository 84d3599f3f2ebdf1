#!/usr/bin/env python3
"""Builds flame and all it needs as one file, for machines without pip (``make pyz``).

It runs with the Python that built it, or another of the same version: numpy is compiled for one.
"""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from build_wheels import DIST, PLACE, audit, build, environment, run
from flame._version import __version__

SHIV = "shiv==1.0.8"


def pack(wheel: Path) -> Path:
    """The file with ``wheel`` and what it depends on; children of flame find it, too."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    target = DIST / f"flame-{__version__}-{python}-{platform.machine()}.pyz"
    words = ["--console-script", "flame", "--extend-pythonpath", "--compressed", "--reproducible"]
    words += ["--python", "/usr/bin/env python3", "--output-file", str(target)]
    folder = PLACE / "shiv"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(folder)]
    run(*pip, "--only-binary", ":all:", SHIV)
    shiv = [sys.executable, "-m", "shiv.cli", *words, "--quiet", "--only-binary", ":all:"]
    run(*shiv, str(wheel), PYTHONPATH=str(folder), SOURCE_DATE_EPOCH="315532800")
    return target


def main() -> None:
    """Build the wheel for this machine, and pack it."""
    machine, python = platform.machine(), environment()
    print(pack(audit(build(machine, python), machine, python)).name)


if __name__ == "__main__":
    main()
