"""The built library itself: what of it other code in the process can see."""

from __future__ import annotations

import subprocess
from pathlib import Path

ENTRY_POINTS = {
    "InitializeInjection",
    "InitializeInjectionNvtx2",
    "InitializeInjectionNvtxExtension",
    "flame_attach",
}


def test_nothing_but_the_entry_points_is_exported(library: Path) -> None:
    # Least of all the C++ library that is linked in: the program's own must stay the program's.
    listed = subprocess.run(
        ["nm", "--dynamic", "--defined-only", "--format=posix", library],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {line.split()[0] for line in listed.stdout.splitlines()} == ENTRY_POINTS


def test_it_needs_nothing_but_the_c_library(library: Path) -> None:
    listed = subprocess.run(
        ["objdump", "--private-headers", library], capture_output=True, text=True, check=True
    )
    needed = [line.split()[1] for line in listed.stdout.splitlines() if "NEEDED" in line]
    assert set(needed) <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"} | {
        name for name in needed if name.startswith("ld-linux")
    }
