"""Hold rows back until they are due: work after its call, and all in order of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np

from flame.core.columns import I8, Bool, Column, unique_rows
from flame.core.live.decode.batch import NewActivities, NewCalls
from flame.core.model.raw import TableBuilder

_Table = TypeVar("_Table", bound=Any)
_CORRELATIONS = 1 << 32  # they are counted in 32 bits, and then from 0 on again


class PendingRows(Generic[_Table]):
    """Rows of a table, of which some wait until they are due."""

    def __init__(self, table: type[_Table]) -> None:
        self._table = table
        self._rows = TableBuilder(table)

    def add(self, columns: dict[str, Column]) -> None:
        """Add rows behind those that wait; ``columns`` may hold more than the table has."""
        self._rows.add(**columns)

    def take(self, due: Callable[[_Table], Bool]) -> tuple[_Table, int]:
        """Take the rows that are ``due``; return them, and how many go on waiting."""
        rows = self._rows.build()
        now = due(rows)
        if now.all():
            return rows, 0
        self._rows.add(**_select_rows(rows, ~now))
        return replace(cast("Any", rows), **_select_rows(rows, now)), int((~now).sum())


def _select_rows(table: Any, rows: Bool) -> dict[str, Column]:
    return {column.name: getattr(table, column.name)[rows] for column in fields(table)}


class DeliveredCalls:
    """Knows which launches' calls have been delivered, or never will be.

    A thread's calls are written one after the other. Work may be written before the call that
    launched it has returned; once a later call of that thread is known, that one is as well.
    """

    def __init__(self) -> None:
        self.late = 0
        self._last: I8 = np.zeros(0, np.int64)
        self._known: Bool = np.zeros(0, bool)
        self._alone: I8 = np.zeros(0, np.int64)

    def learn(self, calls: NewCalls) -> None:
        """Note that ``calls`` have been delivered."""
        rows = np.flatnonzero(calls.thread >= 0)
        thread, correlation = calls.thread[rows], calls.correlation[rows]
        self._grow(int(thread.max(initial=-1)) + 1)
        self._count_late(thread, correlation)
        first, _ = unique_rows([thread])
        new = first[~self._known[thread[first]]]
        self._last[thread[new]], self._known[thread[new]] = correlation[new], True
        ahead = np.zeros(len(self._last), np.int64)
        np.maximum.at(ahead, thread, _distance(correlation, self._last[thread]))
        self._last = (self._last + ahead) % _CORRELATIONS

    def _grow(self, size: int) -> None:
        more = max(size - len(self._last), 0)
        self._last = np.append(self._last, np.zeros(more, np.int64))
        self._known = np.append(self._known, np.zeros(more, bool))

    def are_delivered(self, work: NewActivities) -> Bool:
        """Return which rows of ``work`` wait for no call."""
        self._grow(int(work.thread.max(initial=-1)) + 1)
        known = np.append(self._known, False)[work.thread]
        last = np.append(self._last, 0)[work.thread]
        passed = known & (_distance(last, work.correlation) >= 0)
        nobody: Bool = (work.thread < 0) | (work.correlation <= 0)
        return nobody | passed

    def deliver_without_call(self, work: NewActivities, rows: Bool) -> None:
        """Note rows delivered without their calls, which have not come for a long time."""
        self._alone = np.append(self._alone, _key(work.thread[rows], work.correlation[rows]))

    def _count_late(self, thread: Column, correlation: I8) -> None:
        """Count the work that was delivered without its call, which has come now."""
        if len(self._alone):
            late = np.isin(self._alone, _key(thread, correlation))
            self.late += int(late.sum())
            self._alone = self._alone[~late]


def _key(thread: Column, correlation: I8) -> I8:
    key: I8 = thread.astype(np.int64) * _CORRELATIONS + correlation
    return key


def _distance(later: I8, earlier: I8) -> I8:
    """Return by how much ``later`` comes after ``earlier``; negative where it comes before."""
    half = _CORRELATIONS // 2
    ahead: I8 = (later - earlier + half) % _CORRELATIONS - half
    return ahead
