"""Share the state of reading an export: strings, processes, threads, devices, frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from flame.core.columns import I4, I8, distinct
from flame.core.model.activities import NONE
from flame.core.model.frames import FrameBuilder
from flame.core.model.stacks import StackBuilder
from flame.core.options import LoadOptions, Progress
from flame.core.readers.shared import cupti
from flame.core.readers.sqlite.source import NULL, TableSource

TIME_LIMIT = 1 << 61
"""Times beyond 73 years are damage; the difference of two within fits 63 bits."""

_PROCESS_MASK = ~0xFFFFFF
_24_BITS = 0xFFFFFF


class DenseNumbers:
    """Dense numbers for sparse keys, in order of appearance; `NULL` is -1."""

    def __init__(self) -> None:
        self._ids: dict[int, int] = {NULL: NONE}

    def __call__(self, keys: I8) -> I4:
        """Return the numbers of ``keys``, new or known, i4[n]."""
        values, place = distinct(keys)
        ids = [self._ids.setdefault(key, len(self._ids) - 1) for key in values.tolist()]
        return np.array(ids, np.int32)[place]

    def known(self, keys: I8) -> I4:
        """Return the numbers of ``keys`` that have one, -1 of others, i4[n]."""
        values, place = distinct(keys)
        ids = [self._ids.get(key, NONE) for key in values.tolist()]
        return np.array(ids, np.int32)[place]

    @property
    def keys(self) -> list[int]:
        """Return all keys, by number."""
        return list(self._ids)[1:]


def pid_of(key: int) -> int:
    """Return the operating-system pid of a globalPid or globalTid (bits 24 to 47)."""
    return (key >> 24) & _24_BITS


def tid_of(key: int) -> int:
    """Return the operating-system tid of a globalTid (bits 0 to 23)."""
    return key & _24_BITS


def process_keys(keys: I8) -> I8:
    """Return the globalPid of each globalTid or globalPid."""
    return np.where(keys == NULL, NULL, keys & _PROCESS_MASK)


class NsysContext:
    """State of reading one export; ``domains`` of NVTX are by pid and number, once read."""

    def __init__(self, source: TableSource, options: LoadOptions, progress: Progress) -> None:
        self.source = source
        self.options = options
        self.frames = FrameBuilder()
        self.stacks = StackBuilder()
        self.warnings: list[str] = []
        self.last_time = -TIME_LIMIT
        self._untimed: Counter[str] = Counter()
        self.processes = DenseNumbers()
        self.threads = DenseNumbers()
        self.devices = DenseNumbers()
        self.domains: Mapping[tuple[int, int], str] = {}
        self.strings = self._read_strings()
        self._progress = progress
        self._done = 0
        self._expected = 0
        self._weights: Mapping[str, int] = {}

    def _read_strings(self) -> dict[str, str]:
        """Read all strings by their ids as texts: a file can choose numbers whose hashes collide.

        Those of texts have a secret in Python.
        """
        return {
            str(key): value
            for key, value in self.source.rows("StringIds", ["id", "value"])
            if isinstance(key, int) and isinstance(value, str)
        }

    def text_of(self, key: object) -> str:
        """Return the text with string id ``key``; empty where there is none."""
        return self.strings.get(str(key), "") if isinstance(key, int) else ""

    def expect_rows_of(self, tables: Mapping[str, int]) -> None:
        """Have the progress count the rows of ``tables``, each with its weight."""
        self._weights = tables
        self._expected = sum(self.source.size(table) * weight for table, weight in tables.items())

    def advance(self, stage: str, table: str, rows: int) -> None:
        """Report ``rows`` more of ``table`` as read; CancelledError when the user gave up."""
        self._done += rows * self._weights[table]
        self._progress(stage, min(self._done, self._expected), self._expected)

    def spans(self, what: str, start: I8, end: I8) -> tuple[I8, I8]:
        """Return starts and ends of ``what``; a missing one is taken from the other: 0 ns."""
        start, end = self.times(start), self.times(end)
        if start.min(initial=0) > NULL and end.min(initial=0) > NULL:  # as mostly
            self._untimed[what] += 0
            return start, end
        self._untimed[what] += int(((start == NULL) | (end == NULL)).sum())
        return cupti.complete_spans(start, start != NULL, end, end != NULL)

    def time_warnings(self) -> list[str]:
        """Return a warning for each kind of row without usable times."""
        return list(cupti.untimed_warnings(self._untimed))

    def times(self, column: I8) -> I8:
        """Return recorded times, `NULL` where there is none or only an absurd one."""
        latest = int(column.max(initial=NULL))
        if latest > TIME_LIMIT or column.min(initial=0) < -TIME_LIMIT:
            column = np.where((column < -TIME_LIMIT) | (column > TIME_LIMIT), NULL, column)
            latest = int(column.max(initial=NULL))
        self.last_time = max(self.last_time, latest)
        return column

    def process_numbers(self, keys: I8) -> I4:
        """Return the process numbers of globalTids."""
        return self.processes(process_keys(keys))

    def thread_numbers(self, keys: I8) -> I4:
        """Return the thread numbers of globalTids, and register their processes."""
        self.process_numbers(keys)
        return self.threads(keys)
