"""Collect what kernels, and the operators that launch them, tell of collectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.model.activities import NONE
from flame.core.model.launches import (
    CollectiveCalls,
    Collectives,
    RawCollectives,
    RecordedCollective,
)
from flame.core.readers.kineto.context import NO_ARGS, AnyEvent, KinetoContext, fill_absent
from flame.core.readers.kineto.events import EventArgs, EventDetails
from flame.core.readers.kineto.vocabulary import amount, text_of

_UNSAID = "undefined"
"""What PyTorch writes of groups that nobody has described."""


class ToldCollectives:
    """Collects the collectives of one trace."""

    def __init__(self, context: KinetoContext) -> None:
        self._context = context
        self._kinds: dict[RecordedCollective, int] = {}
        self._told: list[tuple[Column, ...]] = []
        self._calls: list[tuple[Column, ...]] = []

    def add_activities(
        self, events: Sequence[AnyEvent], args: Sequence[EventArgs], first: int
    ) -> None:
        """Add those of activities with these ``args``, the first of which is the row ``first``."""
        if rows := _telling(args):
            self._told.append((np.array(rows) + first, *self._number(events, rows)))

    def add_calls(
        self,
        events: Sequence[AnyEvent],
        args: Sequence[EventArgs],
        thread: I4,
        start: I8,
        end: I8,
    ) -> None:
        """Add those of operators with these ``args``."""
        if rows := _telling(args):
            times = start[rows], end[rows]
            self._calls.append((thread[rows], *times, *self._number(events, rows)))

    def _number(self, events: Sequence[AnyEvent], rows: Sequence[int]) -> tuple[I4, I8]:
        """The kinds of the events ``rows``, and their sequence numbers."""
        some = [events[row] for row in rows]
        details = self._context.details.of(some)
        kinds = [
            self._kinds.setdefault(_kind(event, one), len(self._kinds))
            for event, one in zip(some, details, strict=True)
        ]
        sequence = fill_absent([amount(one.sequence) for one in details], NONE)
        return np.array(kinds, np.int32), sequence

    def build(self) -> RawCollectives | None:
        """Build the tables; None where the trace tells of none."""
        if not self._kinds:
            return None
        row, kind, sequence = _joined(self._told, (np.int64, np.int32, np.int64))
        calls = _joined(self._calls, (np.int32, np.int64, np.int64, np.int32, np.int64))
        told = Collectives(row, kind, sequence, tuple(self._kinds))
        return RawCollectives(told, CollectiveCalls(*calls))


def _telling(args: Sequence[EventArgs]) -> list[int]:
    return [at for at, one in enumerate(args) if one.collective]


def _joined(parts: Sequence[tuple[Column, ...]], dtypes: Sequence[type]) -> list[Column]:
    none: tuple[Column, ...] = tuple(np.zeros(0, dtype) for dtype in dtypes)
    return [np.concatenate(columns) for columns in zip(none, *parts, strict=True)]


def _kind(event: AnyEvent, details: EventDetails) -> RecordedCollective:
    about = text_of(details.about)
    return RecordedCollective(
        (event.args or NO_ARGS).collective or "",
        text_of(details.dtype),
        amount(details.sent),
        amount(details.received),
        amount(details.ranks),
        text_of(details.group),
        "" if about == _UNSAID else about,
        text_of(details.members),
    )
