"""Files that may be gzipped, whatever they are called."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import BinaryIO, cast

GZIP = b"\x1f\x8b"


def open_binary(path: Path) -> BinaryIO:
    """The bytes of the file at ``path``, decompressed while they are read where it is gzipped.

    Reading may raise EOFError (cut off), gzip.BadGzipFile or zlib.error (damaged), and OSError.
    """
    file = path.open("rb")
    if file.read(len(GZIP)) != GZIP:
        file.seek(0)
        return file
    file.close()
    return cast(BinaryIO, gzip.open(path, "rb"))


def raw_position(file: BinaryIO) -> int:
    """How far the file on disk has been read, in its own bytes: for progress."""
    inner = getattr(file, "fileobj", None) or file
    return int(inner.tell())
