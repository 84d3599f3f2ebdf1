"""Bound what is copied to a disk by the room that it has."""

from __future__ import annotations

from pathlib import Path
from shutil import disk_usage

from flame.core.errors import InputError
from flame.core.units import format_bytes

_FREE, _PART = 5_000_000_000, 10
"""Bytes that stay free, or that part of a smaller disk."""


def room_in(folder: Path) -> int:
    """Return how many bytes may be written into ``folder``, below 0 where there is no room."""
    total, _, free = disk_usage(folder)
    return free - min(_FREE, total // _PART)


def refuse_too_large(what: str, size: int, folder: Path, remedy: str) -> None:
    """Raise InputError where ``size`` more bytes of ``what`` leave too little of the disk free."""
    room = room_in(folder)
    if size > room:
        left = f"the disk of {folder.parent} has room for {format_bytes(max(room, 0))}"
        raise InputError(f"{what}: too large: {left}; {remedy}")
