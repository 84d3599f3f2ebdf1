"""Tell files apart by their contents, at a bounded price."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

_PIECE = 1 << 20
_MOST_PIECES = 256
"""256 MiB, which take half a second or less: a report is larger only where its conversion takes
minutes, and that of such a one, which is checked as well, takes longer to load."""


def file_digest(path: Path, tick: Callable[[], None]) -> str:
    """Return a digest of what the file at ``path`` holds; ``tick`` is called between pieces.

    Up to 256 MiB all of it counts. Of a larger file its size, its modification time and 256 pieces
    do, the first and the last among them. Raises OSError, and what ``tick`` does.
    """
    # A pipe would be waited for.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", 0) as file:
        known = os.fstat(file.fileno())
        whole = known.st_size <= _PIECE * _MOST_PIECES
        return _digest(file, known.st_size, b"" if whole else b"%d" % known.st_mtime_ns, tick)


def contents_digest(file: BinaryIO) -> str:
    """Return a digest of what an open file holds, as `file_digest` but for its times."""
    return _digest(file, os.fstat(file.fileno()).st_size, b"", lambda: None)


def _digest(file: BinaryIO, size: int, more: bytes, tick: Callable[[], None]) -> str:
    digest = hashlib.sha256(b"%d %b\n" % (size, more))
    for start in _starts(size):
        tick()
        file.seek(start)
        digest.update(file.read(_PIECE))
    return digest.hexdigest()[:32]


def _starts(size: int) -> Iterator[int]:
    """Where pieces of the file begin: every one, or as many as are read, evenly spread."""
    count = -(-size // _PIECE)
    if count <= _MOST_PIECES:
        yield from range(0, size, _PIECE)
        return
    for number in range(_MOST_PIECES):
        yield number * (size - _PIECE) // (_MOST_PIECES - 1)
