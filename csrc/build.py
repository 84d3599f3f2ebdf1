#!/usr/bin/env python3
"""Builds libflamecore from the C files beside it, with nothing but a C compiler."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parent / "flame" / "libflamecore.so"

LANGUAGE = ("-std=c11", "-fPIC", "-Wall", "-Wextra", "-fvisibility=hidden")
RELEASE = ("-O3", "-shared", "-Wl,-z,defs")


class BuildError(Exception):
    """Nothing was built; the message says why, its first line alone is enough for a user."""


def compiler() -> list[str]:
    """The command of the C compiler: that of CC, else cc."""
    command = shlex.split(os.environ.get("CC") or "cc")
    if not command or shutil.which(command[0]) is None:
        raise BuildError(f"no C compiler: {' '.join(command)} not found (CC names another)")
    return command


def sources() -> list[Path]:
    """All C files of the library."""
    return sorted(HERE.glob("*.c"))


def build(target: Path = LIBRARY, flags: Sequence[str] = RELEASE) -> None:
    """Compiles and links the library to ``target``, which is complete or as it was before."""
    if sys.platform != "linux":
        raise BuildError(f"no library for {sys.platform}")
    with TemporaryDirectory(dir=target.parent, prefix=f"{target.name}.") as scratch:
        whole = Path(scratch) / target.name
        command = [*compiler(), *LANGUAGE, *flags, *map(str, sources()), "-o", str(whole)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{command[0]} failed:\n{done.stderr}{shlex.join(command)}")
        whole.replace(target)


def main() -> int:
    """The command line."""
    try:
        build()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{LIBRARY}: {LIBRARY.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
