"""Read files that may be gzipped, whatever they are called."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import BinaryIO, cast

from flame.core.options import Progress

GZIP = b"\x1f\x8b"
_PIECE = 1 << 22
_SHORTEST_STEP, _LONGEST_STEP = 1 << 9, 1 << 13
"""Bytes on disk that are unpacked at a time: of those that are damaged, nothing is had."""

# Traces are packed to a tenth or a fiftieth, a single byte over and over to a thousandth.
_FREE = 64 << 20
_MOST_PER_BYTE = 150


class UnpackedSizeError(gzip.BadGzipFile):
    """Report that a file unpacks to so much that it was made to fill the reader's memory."""

    def __init__(self) -> None:
        super().__init__(f"unpacks to more than {_MOST_PER_BYTE} times its size")


def open_binary(path: Path) -> BinaryIO:
    """Open the file at ``path``, decompressed while it is read where it is gzipped.

    Reading may raise EOFError (cut off), gzip.BadGzipFile or zlib.error (damaged), and OSError.
    What unpacks to `_MOST_PER_BYTE` times its size is damaged too: nobody has the memory for it.
    """
    file = path.open("rb")
    packed = file.read(len(GZIP)) == GZIP
    file.seek(0)
    if not packed:
        return file
    on_disk = file.detach()
    on_disk.seek(0)
    return cast("BinaryIO", _Unpacked(_SteppedFile(on_disk)))


class _SteppedFile(io.BufferedReader):
    """A file that is read in small steps: Python's gzip asks for 8 KiB, from 3.12 on for 128."""

    def read(self, size: int | None = -1) -> bytes:
        """Read a step at most, shorter ones first: there may be no more than a few."""
        step = min(max(self.tell(), _SHORTEST_STEP), _LONGEST_STEP)
        return super().read(step if size is None or size < 0 else min(size, step))


class _Unpacked(gzip.GzipFile):
    """A gzipped file; reading gives up on what was made only to fill the reader's memory."""

    def __init__(self, file: _SteppedFile) -> None:
        super().__init__(fileobj=file)
        self._on_disk = file

    def close(self) -> None:
        """Close the file on disk too, which GzipFile leaves to whoever opened it."""
        super().close()
        self._on_disk.close()

    def read(self, size: int | None = -1) -> bytes:
        """Read as from any file, at most `_FREE` bytes beyond what there may be."""
        return self._check_size(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        """Read what one step of decompression gives, checked as by `read`."""
        return self._check_size(super().read1(size))

    def _check_size(self, data: bytes) -> bytes:
        if self.tell() > _FREE + _MOST_PER_BYTE * raw_position(cast("BinaryIO", self)):
            raise UnpackedSizeError
        return data


def read_whole(path: Path, progress: Progress) -> bytes:
    """Read all of the file at ``path``, with progress in bytes on disk; raises as `open_binary`."""
    pieces = []
    size = path.stat().st_size
    with open_binary(path) as file:
        while piece := file.read(_PIECE):
            pieces.append(piece)
            progress("reading", raw_position(file), size)
    return b"".join(pieces)


def raw_position(file: BinaryIO) -> int:
    """Return how far the file on disk has been read, in its own bytes: for progress."""
    inner = getattr(file, "fileobj", None) or file
    return int(inner.tell())
