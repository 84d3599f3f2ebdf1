#!/usr/bin/env python3
"""Builds the injection library from the C++ files below it, with nothing but a compiler.

It runs before flame is installed, and so uses nothing but the standard library. All that it needs
of CUDA are headers, from NVIDIA's wheels (`pip install '.[native]'`) or FLAME_CUDA_INCLUDE.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DOUBLE = HERE / "fake"  # what the library is tested against, no part of it
LIBRARY = ROOT / "flame" / "libflameinject.so"
OBJECTS = ROOT / "build" / "objects"
SAMPLES = ROOT / "samples"

MACHINES = ("x86_64", "aarch64")
# One header of each wheel; cuda.h alone would say that a toolkit without CUPTI is enough.
HEADERS = ("cuda.h", "cupti.h", "crt/host_defines.h", "nvtx3/nvToolsExt.h")
# Below site-packages: all wheels of CUDA 13 share a folder, those of CUDA 12 have one each.
LAYOUTS = (
    ("nvidia/cu13/include",),
    (
        "nvidia/cuda_cupti/include",
        "nvidia/cuda_runtime/include",
        "nvidia/cuda_nvcc/include",
        "nvidia/nvtx/include",
    ),
)

LANGUAGE = ("-std=c++17", "-fPIC", "-Wall", "-Wextra")
# initial-exec: a thread-local costs no call; there are few, and the loader keeps room for them.
# nodelete: CUDA may close the library while threads are still inside it.
# The C++ library is linked in: the process it is loaded into may have an older one.
OPTIMIZED = ("-O2", "-fvisibility=hidden", "-ftls-model=initial-exec")
RELEASE = (
    *OPTIMIZED,
    *("-static-libstdc++", "-static-libgcc", "-Wl,-z,nodelete", "-Wl,-z,defs"),
    f"-Wl,--version-script={HERE / 'exports.map'}",
)
# What only the linker heeds: the same object file may be linked into different things.
LINKING = ("-shared", "-static-", "-Wl,")
LIBRARIES = ("-ldl", "-lpthread")


class BuildError(Exception):
    """Nothing was built; the message says why, its first line alone is enough for a user."""


def compiler() -> list[str]:
    """The command of the C++ compiler: that of CXX, else g++."""
    command = shlex.split(os.environ.get("CXX") or "g++")
    if not command or shutil.which(command[0]) is None:
        raise BuildError(f"no C++ compiler: {' '.join(command)} not found (CXX names another)")
    return command


def includes() -> list[Path]:
    """The folders with the headers of CUDA, CUPTI and NVTX."""
    override = os.environ.get("FLAME_CUDA_INCLUDE")
    if override:
        return _whole([Path(folder) for folder in override.split(os.pathsep)])
    for layout in LAYOUTS:
        for site in map(Path, sys.path):
            folders = [site / folder for folder in layout if (site / folder).is_dir()]
            if not _lacking(folders):
                return folders
    raise BuildError(
        "no headers of CUDA: pip install '.[native]' brings them, FLAME_CUDA_INCLUDE names others"
    )


def _lacking(folders: list[Path]) -> list[str]:
    """The headers that none of the folders has."""
    return [
        header for header in HEADERS if not any((folder / header).is_file() for folder in folders)
    ]


def _whole(folders: list[Path]) -> list[Path]:
    lacking = _lacking(folders)
    if lacking:
        raise BuildError(f"FLAME_CUDA_INCLUDE has no {', '.join(lacking)}")
    return folders


def possible() -> bool:
    """Whether the library can be built here, once the headers are there."""
    try:
        compiler()
    except BuildError:
        return False
    return supported()


def supported() -> bool:
    """Whether there is a library for this machine at all: NVIDIA's headers come for glibc."""
    here = sys.platform == "linux" and platform.machine() in MACHINES
    return here and platform.libc_ver()[0] == "glibc"


def sources() -> list[Path]:
    """All C++ files of the library."""
    return _of_the_library("*.cpp")


def _of_the_library(pattern: str) -> list[Path]:
    return sorted(path for path in HERE.rglob(pattern) if path.parent != DOUBLE)


def version() -> str:
    """The version of flame, without importing it."""
    found = re.search(r'__version__ = "(.+)"', (ROOT / "flame" / "_version.py").read_text("utf-8"))
    if found is None:
        raise BuildError("no version in flame/_version.py")
    return found[1]


def compile_to(
    target: Path,
    files: Sequence[Path],
    *flags: str,
    objects: Path | None = None,
    using: Sequence[str] = (),
) -> None:
    """Compiles and links ``files`` to ``target``, which is complete or as it was before.

    Object files in the folder ``objects`` are used again as long as nothing in them has changed.
    ``using`` is the command of another compiler than the usual one.
    """
    command = [*(using or compiler()), *LANGUAGE, *flags]
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=f"{target.name}.") as scratch:
        folder = objects or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(lambda file: str(_object(file, command, folder)), files))
        whole = Path(scratch) / target.name
        _run([*command, *made, "-o", str(whole), *LIBRARIES])
        whole.replace(target)


def _object(file: Path, command: list[str], folder: Path) -> Path:
    """The object file of ``file`` in ``folder``, compiled unless it is there."""
    places = [f"-I{place}" for place in (HERE, *includes())]
    command = [flag for flag in command if not flag.startswith(LINKING)]
    command = [*command, f'-DFLAME_VERSION="{version()}"', *places, "-c", str(file)]
    target = folder / f"{file.stem}-{digest([file], command)}.o"
    if not target.exists():
        part = target.with_suffix(f".{os.getpid()}")
        _run([*command, "-o", str(part)])
        part.replace(target)
    return target


def digest(files: Sequence[Path], command: Sequence[str]) -> str:
    """Hash of the command and of all of flame's own code that it may read."""
    folders = {SAMPLES, *(file.parent for file in files)}
    beside = {header for folder in folders for header in folder.glob("*.h")}
    summed = hashlib.sha256("\n".join(command).encode())
    for path in sorted({*files, *beside, *_of_the_library("*.h")}):
        summed.update(path.read_bytes())
    return summed.hexdigest()[:16]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{command[0]} failed:\n{done.stderr}{shlex.join(command)}")


def build(target: Path = LIBRARY, objects: Path | None = None) -> None:
    """Builds the library as it is shipped."""
    if not supported():
        raise BuildError(f"no library for {sys.platform} on {platform.machine()}")
    compile_to(target, sources(), "-shared", *RELEASE, objects=objects)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=LIBRARY, help="default: %(default)s")
    target = parser.parse_args().output
    try:
        build(target, OBJECTS)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{target}: {target.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
