"""Write output that is packed as its name says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

from flame.core.files.atomic import atomic_output

if TYPE_CHECKING:
    from io import RawIOBase

GZIP = ".gz"
_LEVEL = 6
"""What gzip itself takes: a million stacks are 14.33 MB; with Python's own default, 9, 14.31."""

_AT_ONCE = 1 << 16

_NOT_WRITTEN = (".zst", ".xz", ".bz2", ".zip")


def packing_problem(path: str) -> str:
    """Say why nothing is written to ``path``: its name promises another packing; else nothing."""
    ending = next((each for each in _NOT_WRITTEN if path.endswith(each)), "")
    return f"flame packs by gzip only: end the name with {GZIP}" if ending else ""


@contextmanager
def packed_output(path: str, *, replace: bool = True) -> Iterator[BinaryIO]:
    """Open a file as `atomic_output` does, packed by gzip where its name ends with ``.gz``."""
    with atomic_output(path, replace=replace) as file:
        if not path.endswith(GZIP):
            yield file
            return
        with open_gzip(file) as packing:
            yield packing


@contextmanager
def open_gzip(file: BinaryIO) -> Iterator[BinaryIO]:
    """Pack by gzip into ``file`` what is written; the same is the same bytes every time."""
    from gzip import GzipFile
    from io import BufferedWriter

    # To pack every message of 20 bytes by itself takes as long as all the rest.
    packing = cast("RawIOBase", GzipFile("", "wb", _LEVEL, file, 0))
    with BufferedWriter(packing, _AT_ONCE) as buffer:
        yield buffer
