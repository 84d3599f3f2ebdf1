"""Choose the columns of the top table, as many as there is room for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flame.core.efficiency.columns import (
    BANDWIDTH,
    BOUND,
    COMPUTE,
    RATED,
    TFLOPS,
    VERDICT,
)
from flame.core.efficiency.measured_frames import MOVED
from flame.core.gpu_metrics.kernels import DRAM, EXPOSURE
from flame.core.gpu_metrics.names import MetricKey
from flame.tui.toolkit.text import cut, printable, width_of

LEAST_NAME = 32
NAME_SHARE = 0.3
LONG_NAME_SHARE = 0.5
"""Cells, and part of the width, that the kind and the name keep when columns are chosen.

The larger part where there are few columns: names of functions are long.
"""

BAR_CELLS = 6
_LONGEST_PART = 12
_LEAST_PART = 10


class Head(NamedTuple):
    """A column: ``sorts`` is the key of the values it sorts by, ``width`` includes a gap."""

    key: str
    title: str
    width: int
    sorts: str


HEADS = (
    Head("own", "self", 9, "own"),
    Head("own share", "%", 8, "own"),
    Head("total", "total", 9, "total"),
    Head("share", "%", 8, "total"),
    Head("bar", "", BAR_CELLS + 1, "total"),
    Head("count", "count", 10, "count"),
    Head("mean", "mean", 9, "mean"),
    Head("p50", "p50", 9, "p50"),
    Head("p95", "p95", 9, "p95"),
    Head("p99", "p99", 9, "p99"),
    Head("maximum", "max", 9, "maximum"),
    Head("tail", "tail", 9, "tail"),
)
NAME = Head("name", "name", 0, "name")
OF_WORK = (
    Head(TFLOPS, "TFLOP/s", 9, TFLOPS),
    Head(COMPUTE, "% peak", 9, COMPUTE),
    Head(BANDWIDTH, "% bandw.", 10, BANDWIDTH),
    Head(BOUND, "% bound", 9, BOUND),
    Head(RATED, "rated", 9, RATED),
    Head(VERDICT, "verdict", 16, VERDICT),
)
"""How near the kernels below a frame are to the peak of the GPU."""
OF_METRICS = (
    Head(MetricKey.SM, "SM", 9, MetricKey.SM),
    Head(MetricKey.TENSOR, "tensor", 9, MetricKey.TENSOR),
    Head(DRAM, "DRAM", 9, DRAM),
    Head(EXPOSURE, "sampled", 10, EXPOSURE),
)
"""What GPU metrics say of the kernels below a frame."""
OF_BOTH = (Head(MOVED, "× bytes", 9, MOVED),)
"""How many times the bytes that were counted memory has moved."""
TITLES = {head.sorts: head.title for head in (*HEADS, NAME) if head.title not in ("", "%")}
"""What to call each order of a table without parts."""

OF_TIMES = ("count", "mean", "p50", "p95", "p99", "maximum", "tail")

_WANTED = (
    "own", "total", "share", "count", "p99", "p50", "maximum",
    "bar", "mean", "tail", "p95", "own share",
)  # fmt: skip

_RATED = ("own", "total", "share", BOUND, RATED, VERDICT, COMPUTE, BANDWIDTH, TFLOPS)
"""What is wanted most where shapes of operators are known."""
_MEASURED = ("own", "total", "share", MetricKey.SM, DRAM, MetricKey.TENSOR, EXPOSURE)
"""What is wanted most where there are GPU metrics."""

_BESIDE_PARTS = ("total", "share")


class TopColumns(NamedTuple):
    """Which columns a table has before the name.

    ``timed``: the metric is a time of single activities, which `wording.lasts` says. ``order`` is
    what the table is sorted by. Where ``parts`` (the devices, or the files, which ``by`` says) have
    a column each, there are no percentiles. ``sized``: shapes of operators are known.
    ``measured``: there are GPU metrics. ``rated``: the peak of a GPU is known, of which are shares.
    """

    timed: bool = True
    order: str = "own"
    by: str = ""
    parts: tuple[str, ...] = ()
    measured: bool = False
    sized: bool = False
    rated: bool = False

    @property
    def heads(self) -> tuple[Head, ...]:
        """All columns but the name, in order."""
        heads = HEADS if self.timed else [*map(_widened, _untimed(HEADS))]
        if not self.parts:
            sized = () if not self.sized else OF_WORK if self.rated else OF_WORK[:1]
            measured = OF_METRICS if self.measured else ()
            both = OF_BOTH if self.sized and self.measured else ()
            return (*heads, *sized, *measured, *both)
        return (*(head for head in heads if head.key in _BESIDE_PARTS), *self._part_heads())

    def _part_heads(self) -> Iterator[Head]:
        key = spread_key(self.by)
        yield Head(key, "max/min", 9, key)
        for place, name in enumerate(self.parts):
            key, title = part_key(self.by, place), cut(printable(name), _LONGEST_PART)
            yield Head(key, title, max(width_of(title) + 2, _LEAST_PART), key)

    @property
    def kept_longest(self) -> tuple[str, ...]:
        """The columns, the one that a narrow table keeps longest first."""
        sized, measured = _RATED if self.sized else (), _MEASURED if self.measured else ()
        return (*sized, *measured, *_WANTED)

    @property
    def titles(self) -> dict[str, str]:
        """What to call each order, as the columns stand, those without room too."""
        heads = (*self.heads, NAME)
        return {
            head.sorts: TITLES.get(head.sorts, head.title)
            for head in heads
            if head.title not in ("", "%")
        }

    def fitting(self, width: int) -> tuple[Head, ...]:
        """Choose the columns that fit ``width`` beside a name; that of ``order`` comes first."""
        fitting = {head.key: head for head in self.heads}
        share = NAME_SHARE if self.timed else LONG_NAME_SHARE
        room = width - max(min(LEAST_NAME, width // 2), int(width * share))
        chosen: set[str] = set()
        for key in dict.fromkeys((self.order, *self.kept_longest, *fitting)):
            if key in fitting:
                room -= fitting[key].width
                if room < 0:
                    break
                chosen.add(key)
        return tuple(head for key, head in fitting.items() if key in chosen)


def part_key(by: str, place: int) -> str:
    """Name the column of the part at ``place`` of those ``by`` which there is one each."""
    return f"{by} {place}"


def spread_key(by: str) -> str:
    """Name the column that says how many times the least part the largest is."""
    return f"{by} spread"


def _untimed(heads: tuple[Head, ...]) -> Iterator[Head]:
    return (head for head in heads if head.key not in OF_TIMES)


def _widened(head: Head) -> Head:
    return head._replace(width=head.width + 3)
