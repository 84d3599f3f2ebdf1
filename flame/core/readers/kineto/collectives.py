"""Collect what kernels, and the operators that launch them, tell of collectives."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.model.launches import (
    CollectiveCalls,
    Collectives,
    RawCollectives,
    RecordedCollective,
)
from flame.core.readers.kineto.context import fill_absent
from flame.core.readers.kineto.events import EventArgs, Text

_UNSAID = "undefined"
"""What PyTorch writes of groups that nobody has described."""


class ToldCollectives:
    """Collects the collectives of one trace; those of nothing cost a look at each event."""

    def __init__(self) -> None:
        self._kinds: dict[RecordedCollective, int] = {}
        self._told: list[tuple[Column, ...]] = []
        self._calls: list[tuple[Column, ...]] = []

    def add_activities(self, first: int, args: Sequence[EventArgs]) -> None:
        """Add those of activities, the first of which is the row ``first``."""
        rows = [at for at, one in enumerate(args, first) if one.collective]
        if rows:
            self._told.append((np.array(rows, np.int64), *self._number(args)))

    def add_calls(self, args: Sequence[EventArgs], thread: I4, start: I8, end: I8) -> None:
        """Add those of operators."""
        rows = [at for at, one in enumerate(args) if one.collective]
        if rows:
            self._calls.append((thread[rows], start[rows], end[rows], *self._number(args)))

    def _number(self, args: Iterable[EventArgs]) -> tuple[I4, I8]:
        """The kinds of those of ``args`` that tell of any, and their numbers."""
        some = [one for one in args if one.collective]
        kinds = [self._kinds.setdefault(_kind(one), len(self._kinds)) for one in some]
        sequence = fill_absent([one.number for one in some], -1)
        return np.array(kinds, np.int32), np.maximum(sequence, -1)

    def build(self) -> RawCollectives | None:
        """Build the tables; None where the trace tells of none."""
        if not self._kinds:
            return None
        told = _joined(self._told, (np.int64, np.int32, np.int64))
        calls = _joined(self._calls, (np.int32, np.int64, np.int64, np.int32, np.int64))
        return RawCollectives(Collectives(*told, tuple(self._kinds)), CollectiveCalls(*calls))


def _joined(parts: Sequence[tuple[Column, ...]], dtypes: Sequence[type]) -> list[Column]:
    none = tuple(np.zeros(0, dtype) for dtype in dtypes)
    return [np.concatenate(columns) for columns in zip(none, *parts, strict=True)]


def _kind(args: EventArgs) -> RecordedCollective:
    about = _text(args.about)
    return RecordedCollective(
        args.collective or "",
        args.dtype or "",
        _amount(args.elements),
        _amount(args.received),
        _amount(args.group_size),
        _text(args.group),
        "" if about == _UNSAID else about,
        _text(args.members),
    )


def _amount(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


def _text(value: Text) -> str:
    """A value as text, whatever JSON it is; empty where it is absent."""
    if value is msgspec.UNSET:
        return ""
    try:
        found = msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) else "" if found is None else json.dumps(found)
