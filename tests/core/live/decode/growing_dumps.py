"""Dumps that can be written as they were after any number of records."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from tests.support.writers.fdumpfile import SIZE, START, DumpFile
from tests.support.writers.fdumpscripts import Step, recorded

CHUNK_START = 24  # offset in the header of a chunk


class Put(NamedTuple):
    """A record as it is written, and the latest time in the records so far."""

    key: str
    data: bytes
    tid: int
    latest: int


class Film(DumpFile):
    """A dump that can be written as it was after any number of records; chunks know their times."""

    def __init__(self, rows: int | None = None) -> None:
        super().__init__(rows=rows)
        self.puts: list[Put] = []
        self._latest = START
        self._made: list[int] = []

    def record(self, key: str, /, **fields: int) -> None:
        self._latest = max([self._latest, *(fields.get(k, 0) for k in ("start", "end", "time"))])
        super().record(key, **fields)

    def put(self, key: str, data: bytes, tid: int = 0) -> None:
        # Two threads write the vocabulary by turns.
        tid = tid or 1 + len(self.puts) % 2
        self.puts.append(Put(key, data, tid, self._latest))
        super().put(key, data, tid)
        self._made += [self._latest] * (len(self._chunks) - len(self._made))

    def data(self) -> bytes:
        data = bytearray(super().data())
        for number, made in enumerate(self._made):
            struct.pack_into("<Q", data, SIZE * (number + 1) + CHUNK_START, made)
        return bytes(data)

    def after(self, count: int, ended: bool = False) -> bytes:
        """The file after so many records."""
        film = Film(self._rows)
        for one in self.puts[:count]:
            film._latest = one.latest
            film.put(one.key, one.data, one.tid)
        film.ended = ended
        return film.data()

    def with_late_calls(self, late: Sequence[bool]) -> Film:
        """The same, but some calls are written last thing before the next one of their thread."""
        film, waiting = Film(self._rows), dict[int, Put]()
        film._ids = self._ids
        choices = iter(late)
        for one in self.puts:
            before = waiting.pop(one.tid, None) if one.key == "launch" else None
            now = () if one.key == "launch" and next(choices, False) else (one,)
            if not now:
                waiting[one.tid] = one
            for each in (*((before,) if before else ()), *now):
                film._latest = one.latest
                film.put(each.key, each.data, each.tid)
        for one in waiting.values():
            film.put(one.key, one.data, one.tid)
        return film


def filmed(script: list[Step], rows: int | None, late: Sequence[bool] = ()) -> Film:
    film = Film(rows)
    recorded(script, film)
    return film.with_late_calls(late)


cuts = st.lists(st.floats(0, 1), max_size=6)


def open_ranges(film: Film, *spans: tuple[str, int]) -> Film:
    """``film``, and in its first chunk the ranges that are open now, each in the one before."""
    paths = [[name for name, _ in spans[: depth + 1]] for depth in range(len(spans))]
    known = [(film.range_name(path[-1]), film.nvtx(*path)) for path in paths]
    now = Film()
    now.ended = False
    now.record("open_range", tid=100)
    for (_, start), (name, node) in zip(spans, known, strict=True):
        now.record("open_range", start=START + start, tid=100, name=name, node=node)
    del now._chunks[0][3][0]
    for one in film.puts:
        now.put(one.key, one.data, one.tid)
    return now
