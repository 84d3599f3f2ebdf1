"""Hold what a report says as tables, which JSON, text, Markdown, CSV and HTML are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import compress
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from flame.core.columns import Column
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Frame

if TYPE_CHECKING:
    from flame.core.projection.filters import Moment

_Scope = TypeVar("_Scope")

CONTRACT = 1
"""Of the JSON of reports; counts up when something is renamed or goes, not by what is added."""

Value = str | int | float | None
"""A cell; None where it is not known."""

ChangeUnit = Literal[
    "ns_change",
    "bytes_change",
    "FLOP_change",
    "count_change",
    "ratio_change",
    "percent_change",
]
"""What changes are in; they are written with their sign."""

Unit = (
    Literal["ns", "moment", "bytes", "FLOP", "count", "percent", "GB/s", "ratio", "number"]
    | Literal["text", "chart"]
    | ChangeUnit
)
"""What the cells of a column are; a ``moment`` is a time on the trace's clock, ns.

A ``chart`` is a text with a character for each of equal parts of time, of `BLOCKS`.
"""


class TableColumn(NamedTuple):
    """Describe a column: ``key`` in JSON and CSV, with its unit; ``title`` is for people.

    It is empty where they are not to see the column: text and Markdown are narrow. A key with a dot
    is an item of a dictionary in JSON: ``idle_ns.sync``.
    """

    key: str
    title: str
    unit: Unit = "text"

    @property
    def is_number(self) -> bool:
        """Whether its values stand at the right."""
        return self.unit not in ("text", "chart")


class Place(NamedTuple):
    """Say where a row leads: to a frame of the picture, or to a window of time.

    ``frames`` is the path from the root down, by names, of the tree of ``levels`` by ``metric``;
    ``sources`` says of each where it is in the sources, where that tells siblings of one name
    apart. ``window`` is [begin, end) on the trace's clock, ns; ``moment`` is that of memory
    which is not the metric's own. It is in ``file``, where that is not the one that
    is reported on.
    """

    levels: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    metric: str = "gpu"
    window: tuple[int, int] | None = None
    file: str = ""
    sources: tuple[str, ...] = ()
    moment: Moment | int | None = None


def source_of(frame: Frame) -> str:
    """Spell where ``frame`` is in the sources, as `Place.sources` does."""
    return f"{frame.file}:{frame.line}"


@dataclass(frozen=True)
class Table:
    """Hold rows under ``columns``, in the order in which they are shown.

    ``total`` is how many there are, with those that were left out. ``places`` says of each row
    where it leads, None: nowhere; it is empty where no row leads anywhere. Of a table that is
    ``whole`` no rows are left out for people, as they add up.
    """

    key: str
    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Value, ...], ...]
    total: int
    places: tuple[Place | None, ...] = ()
    whole: bool = False

    @classmethod
    def of(
        cls,
        key: str,
        title: str,
        columns: Iterable[TableColumn],
        rows: Iterable[Sequence[Value]],
        places: Iterable[Place | None] = (),
        *,
        whole: bool = False,
    ) -> Table:
        """Make a table of all ``rows``; columns of which nothing is known are left out."""
        columns, cells = tuple(columns), [tuple(row) for row in rows]
        known = [
            not cells or any(row[at] is not None for row in cells) for at in range(len(columns))
        ]
        return cls(
            key,
            title,
            tuple(compress(columns, known)),
            tuple(tuple(compress(row, known)) for row in cells),
            len(cells),
            tuple(places),
            whole,
        )

    @property
    def left_out(self) -> int:
        """How many rows there are besides those that are kept."""
        return self.total - len(self.rows)

    def for_people(self, most: int) -> Table:
        """Keep what people are shown: the first ``most`` rows, of a `whole` table all."""
        return self if self.whole else self.first(most)

    def first(self, most: int) -> Table:
        """Keep the first ``most`` rows."""
        return replace(self, rows=self.rows[:most], places=self.places[:most])


@dataclass(frozen=True)
class Section:
    """Hold what a section says: values by key, as JSON has them, and tables.

    ``why`` is set where the trace cannot tell, and ``how`` says how to record what can. ``notes``
    are sentences for people, below the tables.
    """

    name: str
    title: str
    facts: Mapping[str, object] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    why: str = ""
    how: str = ""

    @property
    def available(self) -> bool:
        """Whether the trace can tell."""
        return not self.why


class SectionKind(NamedTuple, Generic[_Scope]):
    """Describe a section before it is worked out: ``name`` in options and JSON, ``title``."""

    name: str
    title: str
    build: Callable[[_Scope], Section]


def picked(order: Column, *columns: Column | Sequence[Value]) -> Iterator[tuple[Value, ...]]:
    """List rows of ``columns`` in this ``order`` of places."""
    places = order.tolist()
    cells = [
        column[order].tolist() if isinstance(column, np.ndarray) else [column[at] for at in places]
        for column in columns
    ]
    return zip(*cells, strict=True)


def share(part: int, whole: int) -> float | None:
    """Compute a part in percent, to three digits behind the point; None of nothing.

    What is less than that keeps three digits: a part is never 0 that is none.
    """
    if not whole:
        return None
    percent = 100 * part / whole
    return round(percent, 3) or float(f"{percent:.3g}")
