"""Tell whether a trace is the same file, unchanged, as when it was read."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import BinaryIO

import msgspec

from flame.core.mapped_files import open_regular
from flame.core.readers.shared.packed_files import GZIP, find_packing
from flame.core.readers.sqlite import MAGIC

_COUNTER = slice(24, 28)
_BESIDE = ("-wal", "-journal")
"""Files in which SQLite has what is not in the database yet."""

_USUAL_RATIO = 20
"""What traces packed by zstd or xz unpack to, times their size: these do not say it at a place."""

_GZIP_END = 8

SETTLED = 2.0
"""Seconds: coarse clocks of file systems tick once in two."""


class TraceIdentity(msgspec.Struct, frozen=True, array_like=True):
    """Identify a file and its state. Times are in ns since 1970.

    ``path`` is as it can be read, where its name is no UTF-8.
    ``changed`` is that of its inode, which nothing sets back. ``counter`` is the change counter of
    an SQLite database, else empty. ``unpacked`` is its size without gzip, modulo 4 GiB; with
    zstd or xz what is usual.
    """

    path: str
    device: int
    inode: int
    size: int
    modified: int
    changed: int
    counter: bytes
    unpacked: int

    @property
    def amount(self) -> int:
        """Bytes that a reader has to go through."""
        return max(self.size, self.unpacked)

    def is_settled(self, seconds: float) -> bool:
        """Tell whether nobody has changed it for so many ``seconds``."""
        return time.time() - max(self.changed, self.modified) / 1e9 >= seconds


def identify(path: Path) -> TraceIdentity | None:
    """Identify the trace at ``path``; None where there is none, or it is being written to."""
    try:
        real = os.path.realpath(path)
        if any(_is_filled(Path(real + end)) for end in _BESIDE):
            return None
        with os.fdopen(open_regular(real), "rb", 0) as file:
            return _identify(real, file)
    except (OSError, ValueError):
        return None


def _is_filled(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _identify(real: str, file: BinaryIO) -> TraceIdentity:
    known, head = os.fstat(file.fileno()), file.read(_COUNTER.stop)
    size = known.st_size
    return TraceIdentity(
        path=os.fsencode(real).decode("utf-8", "backslashreplace"),
        device=known.st_dev,
        inode=known.st_ino,
        size=size,
        modified=known.st_mtime_ns,
        changed=known.st_ctime_ns,
        counter=head[_COUNTER] if head.startswith(MAGIC) else b"",
        unpacked=_unpacked_size(file, head, size),
    )


def _unpacked_size(file: BinaryIO, head: bytes, size: int) -> int:
    packing = find_packing(head)
    if packing is None or size <= _GZIP_END:
        return 0
    if packing.magic != GZIP:
        return _USUAL_RATIO * size
    return int.from_bytes(os.pread(file.fileno(), 4, size - 4), "little")
