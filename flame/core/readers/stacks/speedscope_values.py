"""Convert what the profiles of a speedscope file measure to whole numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, sum_by
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.meta import Thread
from flame.core.model.metrics import ALL_METRICS
from flame.core.model.raw import Measure
from flame.core.readers.shared import decimals
from flame.core.readers.shared.decimals import MAX_DECIMALS
from flame.core.readers.stacks.metric_keys import MetricKeys
from flame.core.readers.stacks.speedscope_schema import Number

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Dtype = TypeVar("_Dtype", bound=np.generic)

_LIMIT = 1 << 62
_AT_ONCE = 1 << 16
_ROUNDED = 1e-6
"""Part of the sum of all weights by which rounding may change them without a warning."""

_FREE_VALUES, _VALUES_PER_ROW = 1_000_000, 32
"""Values that all measures of a file may have, and those for each of its rows: every measure has
one for every stack, and in a file that flame wrote they are of the same stacks."""

TIME, PLAIN = "time", "none"


@dataclass(frozen=True)
class SpeedscopeUnit:
    """A unit: the key of its quantity, and 10**scale of flame's whole numbers make one unit."""

    quantity: str
    scale: int = 0


_UNITS = {
    "nanoseconds": SpeedscopeUnit(TIME),
    "microseconds": SpeedscopeUnit(TIME, 3),
    "milliseconds": SpeedscopeUnit(TIME, 6),
    "seconds": SpeedscopeUnit(TIME, 9),
    "bytes": SpeedscopeUnit("bytes"),
    "none": SpeedscopeUnit(PLAIN),
}


def parse_unit(name: str) -> SpeedscopeUnit:
    """Return the unit called ``name``; InputError where the format has none such."""
    if name not in _UNITS:
        raise InputError(f"unit: '{name[:40]}' is none of {', '.join(_UNITS)}")
    return _UNITS[name]


def number_column(name: str, values: Sequence[Number]) -> Column:
    """Return ``values`` as int64 where they are whole numbers of that size, else as float64."""
    try:
        column: Column = np.array(values) if values else np.zeros(0, np.int64)
        return column if column.dtype == np.int64 else column.astype(np.float64)
    except OverflowError:
        raise InputError(f"{name}: a number of more than 300 digits") from None


@dataclass(frozen=True, eq=False)
class ProfileRows:
    """The rows of one profile: stacks, and the numbers that say how much each of them counts.

    ``stack`` i4[n]. ``numbers`` are the weights of the rows or, where ``lasting`` i8[n] is given,
    the values at all events: row i counts from the event lasting[i] to the one after it.
    """

    name: str
    unit: SpeedscopeUnit
    start: Number
    stack: I4
    numbers: Column
    lasting: I8 | None = None

    def spans(self, scale: int) -> tuple[I8, I8]:
        """Return begin and length of every row, counted in parts of 10**-scale."""
        counted = _scale_values(self.numbers, scale)
        if self.lasting is None:
            begin = np.cumsum(counted)
            begin -= counted
            begin += _scale_values(number_column("startValue", [self.start]), scale)
            return begin, counted
        begin = counted[self.lasting]
        return begin, counted[self.lasting + 1] - begin

    @property
    def most(self) -> float:
        """The value that no value and no sum of rows exceeds."""
        if self.lasting is None:
            return float(np.abs(self.numbers.astype(np.float64)).sum())
        return 2 * _largest(self.numbers)


@dataclass(frozen=True)
class SpeedscopeTable:
    """The columns of `RawStacks` that all profiles of a file make up."""

    stack: I4
    measures: tuple[Measure, ...]
    start: I8 | None = None
    thread: I4 | None = None
    threads: tuple[Thread, ...] = ()
    warnings: tuple[str, ...] = ()


def merge_as_threads(profiles: Sequence[ProfileRows], shown: int) -> SpeedscopeTable:
    """Give every profile rows of its own: profiles of one quantity are threads.

    The quantity of the profile with the index ``shown`` is the first measure. Times count from the
    earliest start; there are none unless all profiles measure time.
    """
    scale, warnings = _plain_scale(
        [profile for profile in profiles if profile.unit.quantity == PLAIN]
    )
    spans = [
        profile.spans(scale if profile.unit.quantity == PLAIN else profile.unit.scale)
        for profile in profiles
    ]
    quantities = list(dict.fromkeys(profile.unit.quantity for profile in profiles))
    if 0 <= shown < len(profiles):
        quantities.sort(key=lambda quantity: quantity != profiles[shown].unit.quantity)
    thread, threads = _row_threads(profiles)
    return SpeedscopeTable(
        stack=join([profile.stack for profile in profiles]),
        measures=tuple(_build_measure(quantity, profiles, spans, scale) for quantity in quantities),
        start=_row_starts(profiles, spans) if quantities == [TIME] else None,
        thread=thread,
        threads=threads,
        warnings=warnings,
    )


def _build_measure(
    quantity: str, profiles: Sequence[ProfileRows], spans: Sequence[tuple[I8, I8]], scale: int
) -> Measure:
    """Build the measure of a quantity; rows of profiles of another quantity have 0."""
    columns = [
        length if profile.unit.quantity == quantity else np.zeros_like(length)
        for profile, (_, length) in zip(profiles, spans, strict=True)
    ]
    title, unit = _title_and_unit(quantity, scale)
    return Measure(title, title, unit, join(columns))


def _title_and_unit(quantity: str, scale: int) -> tuple[str, str]:
    """Return title and unit of a quantity of which parts of 10**-scale are counted."""
    if quantity == PLAIN:
        return "samples", decimals.decimal_unit(scale)
    return quantity, "ns" if quantity == TIME else quantity


def _row_starts(profiles: Sequence[ProfileRows], spans: Sequence[tuple[I8, I8]]) -> I8:
    begins = [begin for begin, _ in spans]
    origins = [
        _scale_values(number_column("startValue", [profile.start]), profile.unit.scale)
        for profile in profiles
    ]
    earliest = min(int(column.min()) for column in (*begins, *origins) if len(column))
    starts = join(begins)
    starts -= earliest
    return starts


def _row_threads(profiles: Sequence[ProfileRows]) -> tuple[I4 | None, tuple[Thread, ...]]:
    """Return the thread of every row, where more than one profile measures the same.

    Profiles of different quantities are of one thread where their names are the same.
    """
    seen: Counter[tuple[str, str]] = Counter()
    index: dict[tuple[str, int], int] = {}
    numbers = []
    for profile in profiles:
        seen[profile.unit.quantity, profile.name] += 1
        key = profile.name, seen[profile.unit.quantity, profile.name]
        numbers.append(index.setdefault(key, len(index)))
    if max(Counter(profile.unit.quantity for profile in profiles).values()) == 1:
        return None, ()
    lengths = [len(profile.stack) for profile in profiles]
    threads = tuple(Thread(NONE, tid + 1, name) for (name, _), tid in index.items())
    return np.repeat(np.array(numbers, np.int32), lengths), threads


def merge_as_measures(profiles: Sequence[ProfileRows]) -> SpeedscopeTable:
    """Make every profile a measure, by its name, of the same stacks."""
    stacks, place = distinct(
        np.concatenate([profile.stack.astype(np.int64) for profile in profiles])
    )
    if len(profiles) * len(stacks) > _FREE_VALUES + _VALUES_PER_ROW * len(place):
        raise InputError("profiles: too many of them are of other stacks than the others")
    bounds = np.cumsum([len(profile.stack) for profile in profiles])[:-1]
    measures: list[Measure] = []
    warnings: list[str] = []
    keys = MetricKeys("-")
    for profile, rows in zip(profiles, np.split(place, bounds), strict=True):
        plain = profile.unit.quantity == PLAIN
        scale, warned = _plain_scale([profile] if plain else [])
        warnings += warned
        values = sum_by(rows, profile.spans(scale if plain else profile.unit.scale)[1], len(stacks))
        key = keys.take(_metric_key(profile.name))
        unit = _title_and_unit(profile.unit.quantity, scale)[1]
        measures.append(Measure(key, profile.name, unit, values))
    return SpeedscopeTable(stacks.astype(np.int32), tuple(measures), warnings=tuple(warnings))


def _metric_key(title: str) -> str:
    """Return the key of the metric with that title, or one made of its words."""
    known = next((metric.key for metric in ALL_METRICS if metric.title == title), "")
    return known or "-".join(re.findall(r"\w+", title.lower())) or "value"


def _plain_scale(profiles: Sequence[ProfileRows]) -> tuple[int, tuple[str, ...]]:
    """Return the decimals that all numbers need, and a warning where there are too many."""
    columns = [profile.numbers.astype(np.float64) for profile in profiles]
    values = np.concatenate([np.zeros(0), *columns])
    exact = next((scale for scale in range(MAX_DECIMALS) if _is_whole(values, scale)), MAX_DECIMALS)
    room = _LIMIT / max(1.0, sum(profile.most for profile in profiles))
    scale = min(exact, int(math.log10(max(room, 1.0))))
    counted = np.rint(values * 10.0**scale) / 10.0**scale
    if np.abs(counted - values).sum() <= _ROUNDED * np.abs(values).sum():
        return scale, ()
    return scale, (f"weights are rounded to {scale} decimals",)


def _is_whole(values: Column, scale: int) -> bool:
    """Return whether ``values`` are what decimals of ``scale`` digits behind the point are read as.

    Division rounds correctly, and so does the reading of such a number below 2**53.
    """
    return bool((np.rint(values * 10.0**scale) / 10.0**scale == values).all())


def _scale_values(values: Column, scale: int) -> I8:
    """Count ``values`` in parts of 10**-scale; InputError where 64 bits do not hold them."""
    largest = _largest(values)
    if largest * 10.0**scale >= _LIMIT:
        raise InputError(f"holds the value {largest:g}, which is too large")
    if values.dtype == np.int64:
        whole: I8 = values * 10**scale
    else:
        whole = np.empty(len(values), np.int64)
        for at in range(0, len(values), _AT_ONCE):
            whole[at : at + _AT_ONCE] = np.rint(values[at : at + _AT_ONCE] * 10.0**scale)
    return whole


def _largest(values: Column) -> float:
    """Return the largest of ``values`` without their signs, 0 where there is none."""
    return max(float(values.max(initial=0)), -float(values.min(initial=0)))


def join(columns: list[NDArray[_Dtype]]) -> NDArray[_Dtype]:
    """Join the ``columns``, of which there is one at least, and empty their list."""
    joined = columns[0] if len(columns) == 1 else np.concatenate(columns)
    columns.clear()
    return joined
