"""Tell which cubins a PC sample may be of: those with its checksum that were loaded then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Side, distinct, pack, run_starts, unique, unique_rows

LOADS = ("crc", "hash", "time", "context", "module")
ENDS = ("time", "context", "module")
"""Fields of the records that `ModuleLives` learns from, see ``inject/dump/dump.h``."""

MOST_ALIKE = 64
"""Cubins of one checksum that are looked at for one function."""

_EVER = (1 << 63) - 1
_64_BITS = (1 << 64) - 1
_NS = 1_000  # in the unit of a sample's span
_MOST_WORK = 1 << 26  # comparisons of lives with times, for the samples of one checksum


class CubinId(NamedTuple):
    """A cubin: CUPTI's checksum of it, which many share, and a hash of its content.

    ``content`` 0: that was not recorded (dumps of older versions). ``crc`` 0: nor was the checksum.
    """

    crc: int
    content: int = 0

    @property
    def stem(self) -> str:
        """The name of its files, as the library calls them."""
        return f"{self.crc:016x}" + (f"-{self.content:016x}" if self.content else "")


Cubins = tuple[CubinId, ...]
"""Cubins, sorted, one of which is meant. `MOST_ALIKE` and one more stand for any greater number."""


class _Lives(NamedTuple):
    """Contents of cubins, and from when to when each was loaded in which context (0: any)."""

    content: I8
    context: I8
    start: I8
    end: I8

    def take(self, rows: I8 | slice) -> _Lives:
        return _Lives(*(column[rows] for column in self))


class ModuleLives:
    """The modules that one process has loaded and unloaded; numbers sets of cubins.

    ``cubins`` has the sets by their numbers.
    """

    def __init__(self) -> None:
        self.cubins: list[Cubins] = []
        self._numbers: dict[Cubins, int] = {}
        self._loads: dict[str, I8] = {name: np.zeros(0, np.int64) for name in LOADS}
        self._ends: dict[str, I8] = {name: np.zeros(0, np.int64) for name in ENDS}
        self._crc: I8 = np.zeros(0, np.int64)
        self._lives = _Lives(*(np.zeros(0, np.int64) for _ in _Lives._fields))
        self._stale = False

    def __len__(self) -> int:
        """Return how many loads and unloads there are."""
        return len(self._loads["time"]) + len(self._ends["time"])

    def learn(self, loads: Mapping[str, I8], ends: Mapping[str, I8]) -> None:
        """Add records, columns `LOADS` and `ENDS`. The same record may come again."""
        if len(loads["time"]) + len(ends["time"]) == 0:
            return
        self._loads = _join(self._loads, loads)
        self._ends = _join(self._ends, ends)
        self._stale = True

    def numbers(self, samples: Mapping[str, I8]) -> I8:
        """Number the set of cubins that each sample may be of, i8.

        ``samples`` are columns ``crc``, ``context``, ``time`` and ``span`` of their records.
        """
        if self._stale:
            self._crc, self._lives = _build_lives(self._loads, self._ends)
            self._stale = False
        time, span = samples["time"], samples["span"]
        since = np.where(span > 0, time - span * _NS, -_EVER)
        number = np.zeros(len(time), np.int64)
        first, kind = unique_rows([samples["crc"], samples["context"]])
        crc, context = (samples[name][first].tolist() for name in ("crc", "context"))
        for own_crc, own_context, rows in zip(crc, context, _rows_by_kind(kind), strict=True):
            number[rows] = self._numbers_of_pair(own_crc, own_context, since[rows], time[rows])
        return number

    def _numbers_of_pair(self, crc: int, context: int, since: I8, time: I8) -> I8 | int:
        """Number the sets of samples in one ``context`` with one ``crc``."""
        sides: tuple[Side, Side] = ("left", "right")
        low, high = (int(np.searchsorted(self._crc, crc, side)) for side in sides)
        lives = self._lives.take(slice(low, high))
        if not len(lives.start):
            return self._number((CubinId(crc & _64_BITS),) if crc else ())
        if context:
            lives = lives.take(np.flatnonzero((lives.context == context) | (lives.context == 0)))
        if (
            len(unique(lives.content)) <= 1
        ):  # Then it is that, even where its life is not known well.
            return self._number_contents(crc, lives.content)
        return self._numbers_by_time(crc, lives, since, time)

    def _numbers_by_time(self, crc: int, lives: _Lives, since: I8, time: I8) -> I8 | int:
        """Number the sets of those that lived at some time from ``since`` to ``time``."""
        ended = np.searchsorted(np.sort(lives.end), since)
        begun = np.searchsorted(np.sort(lives.start), time, "right")
        first, kind = unique_rows([ended, begun])
        if len(first) * len(lives.start) > _MOST_WORK:
            return self._number_contents(crc, lives.content)
        numbers = [
            self._number_contents(
                crc, lives.content[(lives.start <= time[row]) & (lives.end >= since[row])]
            )
            for row in first.tolist()
        ]
        return np.array(numbers, np.int64)[kind]

    def _number_contents(self, crc: int, contents: I8) -> int:
        found = unique(contents)[: MOST_ALIKE + 1].tolist()
        return self._number(tuple(CubinId(crc & _64_BITS, one & _64_BITS) for one in found))

    def _number(self, cubins: Cubins) -> int:
        number = self._numbers.setdefault(cubins, len(self.cubins))
        if number == len(self.cubins):
            self.cubins.append(cubins)
        return number


def _join(known: Mapping[str, I8], more: Mapping[str, I8]) -> dict[str, I8]:
    joined = {name: np.concatenate([column, more[name]]) for name, column in known.items()}
    first, _ = unique_rows(list(joined.values()))
    return {name: column[first] for name, column in joined.items()}


def _rows_by_kind(kind: I8) -> Iterator[I8]:
    """Yield the rows of each kind, in the order of their numbers."""
    order = np.argsort(kind, kind="stable")
    yield from np.split(order, run_starts(kind[order])[1:]) if len(kind) else ()


def _build_lives(loads: Mapping[str, I8], ends: Mapping[str, I8]) -> tuple[I8, _Lives]:
    """Return the lives of modules with a known content, by their checksums: these come first."""
    end = _find_ends(loads, ends)
    rows = np.flatnonzero(loads["hash"] != 0)
    rows = rows[np.argsort(loads["crc"][rows], kind="stable")]
    lives = _Lives(loads["hash"], loads["context"], loads["time"], end)
    return loads["crc"][rows], lives.take(rows)


def _find_ends(loads: Mapping[str, I8], ends: Mapping[str, I8]) -> I8:
    """Return when each loaded module was unloaded.

    Never, where that was not seen, or the number was used again without.
    """
    both = {name: np.concatenate([loads[name], ends[name]]) for name in ENDS}
    _, module = distinct(pack([both["context"], both["module"]]))
    is_end = np.arange(len(module)) >= len(loads["time"])
    order = np.lexsort([is_end, both["time"], module])
    following = np.append(order[1:], order[:1])
    over = is_end[following] & (module[following] == module[order]) & ~is_end[order]
    over[-1:] = False
    end = np.full(len(module), _EVER)
    end[order[over]] = both["time"][following[over]]
    return end[: len(loads["time"])]
