"""Sum segments of a growing table: what never changes again is added up once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from flame.core.columns import I4, I8, distinct, sum_by
from flame.core.errors import InputError

_SUM_LIMIT = float(1 << 60)


class GroupSums(NamedTuple):
    """Sums of some rows: ``values`` i8[measures, n] of the groups ``group`` i4[n], each once."""

    group: I4
    values: I8

    @classmethod
    def sum_rows(cls, group: I4, measures: Iterable[I8]) -> GroupSums:
        """Sum rows by ``group``, measure by measure."""
        groups, place = distinct(group.astype(np.int64))
        sums = [sum_by(place, values, len(groups)) for values in measures]
        return cls(groups.astype(np.int32), np.array(sums, np.int64).reshape(len(sums), -1))


def refuse_sums(weight: float) -> None:
    """Raise InputError where times of a recording add up to so much that sums might overflow."""
    if weight >= _SUM_LIMIT:
        raise InputError("damaged: the times in it add up to more than a century")


class Segment(Protocol):
    """Some rows of a table. None of them is before ``first`` or after ``last``, ns."""

    def __len__(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def sums(self) -> GroupSums: ...
    def since(self, begin: int) -> GroupSums:
        """Sum the part that belongs to the time from ``begin`` on."""


class WindowExtent(NamedTuple):
    """Times of a snapshot, ns of CLOCK_MONOTONIC: its window, and what is 0 in the profile."""

    begin: int
    end: int
    zero: int


class KeptSegments(NamedTuple):
    """Segments of GPU work, and of calls and ranges."""

    work: Sequence[Segment]
    host: Sequence[Segment]


class SegmentSums:
    """Sums per group of the segments in a window of time.

    From one look to the next only what has entered the window or left it is added or taken away.
    """

    def __init__(self, measures: int) -> None:
        self._values: I8 = np.zeros((measures, 0), np.int64)
        self._whole: set[Segment] = set()

    def look(self, segments: Iterable[Segment], begin: int | None, size: int) -> I8:
        """Return sums i8[measures, size] from ``begin`` on (None: of all), of ``size`` groups."""
        known = list(segments)
        whole = {segment for segment in known if begin is None or segment.first >= begin}
        for segment in self._whole - whole:
            self._add(segment.sums, -1)
        for segment in whole - self._whole:
            self._add(segment.sums, 1)
        self._whole = whole
        result = _widen(self._values, size).copy()
        for segment in known:
            if begin is not None and segment.first < begin <= segment.last:
                group, values = segment.since(begin)
                result[:, group] += values
        return result

    def settle(self, segment: Segment, begin: int | None) -> None:
        """Keep the sums of ``segment`` for good, added if need be: it is not looked at again."""
        if segment in self._whole:
            self._whole.discard(segment)
        elif begin is None or segment.first >= begin:
            self._add(segment.sums, 1)
        elif segment.last >= begin:
            self._add(segment.since(begin), 1)

    def forget(self, segment: Segment) -> None:
        """Subtract the sums of ``segment``: it is before every window to come."""
        if segment in self._whole:
            self._whole.discard(segment)
            self._add(segment.sums, -1)

    def _add(self, sums: GroupSums, sign: int) -> None:
        if len(sums.group):
            self._values = _widen(self._values, int(sums.group[-1]) + 1)
            self._values[:, sums.group] += sign * sums.values


def _widen(values: I8, size: int) -> I8:
    """Return ``values`` with room for ``size`` groups."""
    more = size - values.shape[1]
    return np.pad(values, ((0, 0), (0, more))) if more > 0 else values
