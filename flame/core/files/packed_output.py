"""Write output that is packed as its name says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from flame.core.files.atomic import atomic_output

GZIP = ".gz"
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
        from gzip import GzipFile

        with GzipFile("", "wb", fileobj=file, mtime=0) as packing:
            yield cast("BinaryIO", packing)
