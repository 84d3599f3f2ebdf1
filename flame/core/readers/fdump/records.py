"""Decode the records in pieces of a dump's chunks into columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flame.core.columns import I8, Column
from flame.core.readers.fdump.layout import RecordLayout

NamedColumns = dict[str, Column]
"""Columns of equal length by name."""

AT_ONCE = 64
"""Pieces whose records are decoded together."""


class RecordPiece(NamedTuple):
    """Records of one chunk: the bytes from ``begin`` to ``end`` of the file.

    ``damaged``: the chunk says that it holds what cannot be. ``made``: when it was made, ns.
    """

    begin: int
    end: int
    damaged: bool
    made: int


class Records:
    """The records of a dump up to one moment; the file may go on growing.

    ``read`` gives bytes of it by offset and size.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        layouts: Mapping[str, RecordLayout],
        pieces: Mapping[str, Sequence[RecordPiece]],
    ) -> None:
        self._read = read
        self._layouts = layouts
        self._pieces = pieces

    def pieces(self, key: str) -> Sequence[RecordPiece]:
        """Return where the records of one kind are, in their order in the file."""
        return self._pieces.get(key, ())

    def content(self, piece: RecordPiece) -> bytes:
        """Read the bytes of ``piece``, fewer where the file ends before."""
        return self._read(piece.begin, piece.end - piece.begin)

    def columns(self, key: str, names: Sequence[str]) -> Iterator[dict[str, I8]]:
        """Yield the fields ``names`` of all records of a kind, i8 each, some thousand at a time.

        Fields that this dump does not record are 0.
        """
        pieces = self.pieces(key)
        for low in range(0, len(pieces), AT_ONCE):
            dtype = self._layouts[key].dtype
            data = b"".join(self._rows(piece, dtype) for piece in pieces[low : low + AT_ONCE])
            yield _select_fields(np.frombuffer(data, dtype), names)

    def table(self, key: str, names: Sequence[str]) -> dict[str, I8]:
        """Return the fields ``names`` of all records of a kind together, i8 each."""
        parts, nothing = list(self.columns(key, names)), np.zeros(0, np.int64)
        return {name: np.concatenate([nothing, *(part[name] for part in parts)]) for name in names}

    def _rows(self, piece: RecordPiece, dtype: np.dtype[Any]) -> bytes:
        data = self.content(piece)
        size = len(data) // dtype.itemsize * dtype.itemsize
        if not piece.damaged:
            return data[:size]
        # What has never been written is zero, and no record is.
        rows = np.frombuffer(data[:size], np.uint8).reshape(-1, dtype.itemsize)
        return rows[rows.any(axis=1)].tobytes()


def _select_fields(records: Any, names: Sequence[str]) -> dict[str, I8]:
    have = records.dtype.names
    return {
        name: records[name].astype(np.int64) if name in have else np.zeros(len(records), np.int64)
        for name in names
    }
