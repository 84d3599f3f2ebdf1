"""Put the rows of a table together when they are asked for: its groups are known before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from flame.core.columns import I4, I8, Column
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import FOUND_COLUMNS, GROUP_COLUMNS, Activities, Groups
from flame.core.model.stacks import StackTable

if TYPE_CHECKING:
    from flame.core.model.iterations import Iterations

ROW_COLUMNS = ("start", "duration", "launch_start", "launch_end", "launch_share", "idle")
"""Columns that differ within a group."""

_OF_GROUP = frozenset((*GROUP_COLUMNS, "launched"))


class Rows(Protocol):
    """Hold the rows of a table, from which its columns are made."""

    def __len__(self) -> int: ...

    def groups(self) -> I4:
        """Return the group of each row."""
        ...

    def activity_column(self, name: str) -> Column:
        """Return one of `ROW_COLUMNS`."""
        ...


class LazyGroups(Groups):
    """Groups whose ``of_row`` is built when it is first asked for."""

    def __init__(self, rows: Rows, columns: dict[str, Column]) -> None:
        self.__dict__.update(columns, _rows=rows)

    def __getattr__(self, name: str) -> Any:
        if name != "of_row":
            raise AttributeError(name)
        column = self.__dict__["of_row"] = self.__dict__["_rows"].groups()
        return column


class LazyActivities(Activities):
    """A table of activities whose columns are built when they are first asked for."""

    def __init__(self, rows: Rows, groups: Groups, stacks: StackTable) -> None:
        self.__dict__.update(_rows=rows, groups=groups, stacks=stacks, measures={})

    def __len__(self) -> int:
        return len(self.__dict__["_rows"])

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__
        if name in _OF_GROUP:
            column = getattr(known["groups"], name)[known["groups"].of_row]
        elif name in ROW_COLUMNS:
            column = known["_rows"].activity_column(name)
        else:
            raise AttributeError(name)
        known[name] = column
        return column


def _found_column(table: LazyActivities, name: str) -> I4 | None:
    known = table.__dict__
    if name not in known:
        of_group = getattr(known["groups"], name)
        known[name] = None if of_group is None else of_group[known["groups"].of_row]
    column: I4 | None = known[name]
    return column


for _name in FOUND_COLUMNS:  # `__getattr__` is not asked for them: the class has None
    setattr(LazyActivities, _name, property(partial(_found_column, name=_name)))


class KnownBusy(NamedTuple):
    """Say when a GPU ran anything, as `timeline.devices.DeviceTime` and `BusyTime` do."""

    device: int
    low: I8
    before: I8


@dataclass(frozen=True, eq=False)
class KnownSums:
    """Hold what has been worked out of all rows of a profile, so that nobody has to read these.

    ``values`` (i8[groups]) by metric, ``counts`` (i8[groups]) and ``busy`` are those of the GPU
    table.
    """

    values: Mapping[str, I8]
    counts: I8
    busy: Callable[[], Sequence[KnownBusy]]
    iterations: Iterations
