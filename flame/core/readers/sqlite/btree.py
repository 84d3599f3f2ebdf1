"""Find the leaf pages of SQLite tables, and read pages many at a time.

The file format is public and stable (https://sqlite.org/fileformat2.html).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from flame.core.columns import I8, U1, expand_ranges
from flame.core.lazy_dataclass import dataclass
from flame.core.readers.sqlite import MAGIC
from flame.core.readers.sqlite.varints import decode_big_endian, decode_varints

LEAF = 13
_PAGE_SIZES = frozenset(1 << bits for bits in range(9, 17))
_INTERIOR = 5
_FIRST = 1  # the page that begins with the header of the file
_FILE_HEADER = 100  # bytes
_SMALLEST_CELL = 6  # bytes: its pointer, and what SQLite gives a row or a child at least
_FIRST_ROWID, _LAST_ROWID = -(1 << 63), (1 << 63) - 1
_DEEPEST = 20  # a tree of 20 levels would not fit any disk
_PADDING = 16  # bytes behind the pages that may be read: eight from the very last one on


class UnsupportedError(Exception):
    """Raised for a part of the file that is for SQLite itself to read."""


@dataclass(frozen=True)
class Leaves:
    """Hold leaf pages of a table in rowid order, and the largest rowid each may hold."""

    page: I8
    last: I8

    def batches(self, count: int) -> Iterator[tuple[I8, int, int]]:
        """Yield up to ``count`` pages at a time, with the first and last rowid they may hold."""
        before = np.append(_FIRST_ROWID, self.last[:-1] + 1)
        for first in range(0, len(self.page), count):
            pages = self.page[first : first + count]
            yield pages, int(before[first]), int(self.last[first + len(pages) - 1])


def header_at(pages: I8) -> I8:
    """Return where on each of ``pages`` its header begins."""
    return np.where(pages == _FIRST, _FILE_HEADER, 0)


def count_cells(flat: U1, header: I8, size: int) -> I8:
    """Return how many cells the pages say that they have whose headers are at ``header``, i8[n].

    Unsupported where a page of ``size`` bytes has no room for them: they would ask for gigabytes.
    """
    count: I8 = flat[header + 3].astype(np.int64) << 8 | flat[header + 4]
    if (8 + _SMALLEST_CELL * count > size).any():
        raise UnsupportedError
    return count


class PageFile:
    """Read the pages of one SQLite file; their bytes stay valid until the next read."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        head = self._file.read(100).ljust(100, b"\0")  # It may have been cut meanwhile.
        told = int.from_bytes(head[16:18], "big")
        self.page_size = 1 << 16 if told == 1 else told
        self.is_database = head[:16] == MAGIC and self.page_size in _PAGE_SIZES
        self.usable = self.page_size - head[20]
        size = os.fstat(self._file.fileno()).st_size
        self._pages = size // self.page_size if self.is_database else 0
        self._buffer: U1 = np.zeros(_PADDING, np.uint8)
        self._root_of = np.zeros(self._pages + 1, np.uint32)  # 0: not known to be any table's

    def read(self, pages: I8) -> U1:
        """Read ``pages``, u8[bytes]: one behind the other, and some more that mean nothing."""
        if len(pages) == 0 or pages.min() < 1 or pages.max() > self._pages:
            raise UnsupportedError
        size = len(pages) * self.page_size
        if len(self._buffer) < size + _PADDING:
            self._buffer = np.zeros(size + _PADDING, np.uint8)
        memory = self._buffer.data
        starts = np.flatnonzero(np.concatenate([[True], np.diff(pages) != 1]))
        bounds = [*(starts * self.page_size).tolist(), size]
        for page, begin, end in zip(pages[starts].tolist(), bounds, bounds[1:], strict=False):
            offset = (page - 1) * self.page_size
            if os.preadv(self._file.fileno(), [memory[begin:end]], offset) != end - begin:
                raise UnsupportedError
        return self._buffer

    def blocks(self, pages: I8) -> U1:
        """Read ``pages``, u8[len(pages), page size]."""
        flat = self.read(pages)[: len(pages) * self.page_size]
        return flat.reshape(len(pages), self.page_size)

    def find_leaves(self, root: int) -> Leaves:
        """Walk the interior pages of the table at ``root``; Unsupported if they make no tree.

        Damaged where a page has two places. What the leaves hold is looked at by those who decode
        them.
        """
        page, last = np.array([root]), np.array([_LAST_ROWID])
        self._root_of[self._root_of == root] = 0
        for _ in range(_DEEPEST):
            self._claim(page, root)
            # All leaves are equally deep: one tells of all.
            if self.blocks(page[:1])[0, header_at(page[:1])[0]] != _INTERIOR:
                return Leaves(page, last)
            page, last = self._read_children(page, last)
        raise UnsupportedError

    def _claim(self, pages: I8, root: int) -> None:
        """Note that ``pages`` are of the table at ``root``; raise for damage if they are others'.

        They would be read as often as they are named.
        """
        if pages.min() < _FIRST or pages.max() > self._pages:
            raise UnsupportedError
        twice = not np.diff(np.sort(pages)).all()  # np.unique would import masked arrays
        if twice or self._root_of[pages].any():
            raise sqlite3.DatabaseError("a page has two places")
        self._root_of[pages] = root

    def _read_children(self, pages: I8, last: I8) -> tuple[I8, I8]:
        """Return the children of interior ``pages``, and the largest rowid that each may hold."""
        flat = self.read(pages)[: len(pages) * self.page_size + _PADDING]
        base = np.arange(len(pages)) * self.page_size
        header = base + header_at(pages)
        if (flat[header] != _INTERIOR).any():
            raise UnsupportedError
        count = count_cells(flat, header, self.page_size)
        if count.sum() > self._pages:
            raise sqlite3.DatabaseError("a page has two places")
        pointer = expand_ranges(header + 12, 2 * count)[::2]
        cell = np.repeat(base, count) + (flat[pointer].astype(np.int64) << 8 | flat[pointer + 1])
        keys, _ = decode_varints(flat, cell + 4)
        # The rightmost child of each page stands in its header, behind all others.
        behind = np.cumsum(count)
        children = decode_big_endian(flat, cell, 4) & 0xFFFFFFFF
        rightmost = decode_big_endian(flat, header + 8, 4) & 0xFFFFFFFF
        return np.insert(children, behind, rightmost), np.insert(keys, behind, last)

    def close(self) -> None:
        """Release the file."""
        self._file.close()
