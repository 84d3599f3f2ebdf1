"""Build the event table of a snapshot lazily: groups at once, rows when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flame.core.columns import Column
from flame.core.live.sums.activities import ActivitySegment
from flame.core.model.activities import GROUP_COLUMNS, Activities, Groups
from flame.core.model.launches import LaunchConfig, LaunchDetails
from flame.core.model.stacks import StackTable

_TIMES = ("launch_start", "launch_end")
_KEPT_COLUMNS = {"duration": "duration", "launch_share": "share", "idle": "idle"}


class KeptRows:
    """The rows of ``segments`` that start at ``begin`` or later; times count from ``zero``."""

    def __init__(self, segments: Sequence[ActivitySegment], begin: int, zero: int) -> None:
        self._parts = [segment.rows_since(begin) for segment in segments if segment.last >= begin]
        self._zero = zero

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def column(self, name: str) -> Column:
        """Return a column of `ActivityRows`, of all rows."""
        parts = [getattr(part, name) for part in self._parts]
        return np.concatenate(parts) if parts else np.zeros(0, _DTYPES.get(name, np.int64))

    def activity_column(self, name: str) -> Column:
        """Return a column of `Activities` that groups do not have, times since ``zero``."""
        if name in _TIMES:
            return np.where(self.column("launch_end") < 0, -1, self.column(name) - self._zero)
        if name == "start":
            return self.column("start") - self._zero
        return self.column(_KEPT_COLUMNS[name])

    def launches(self, configs: tuple[LaunchConfig, ...]) -> LaunchDetails:
        """Build the table of how all rows were launched."""
        return LaunchDetails(self.column("config"), self.column("bytes"), configs)


_DTYPES = {"group": np.int32, "config": np.int32}


class LazyGroups(Groups):
    """Groups whose ``of_row`` is built when it is first asked for."""

    def __init__(self, rows: KeptRows, columns: dict[str, Column]) -> None:
        self.__dict__.update(columns, _rows=rows)

    def __getattr__(self, name: str) -> Any:
        if name != "of_row":
            raise AttributeError(name)
        column = self.__dict__["of_row"] = self.__dict__["_rows"].column("group")
        return column


class LazyActivities(Activities):
    """A table of activities whose columns are built when they are first asked for."""

    def __init__(self, rows: KeptRows, groups: Groups, stacks: StackTable) -> None:
        self.__dict__.update(_rows=rows, groups=groups, stacks=stacks, measures={})

    def __len__(self) -> int:
        return len(self.__dict__["_rows"])

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__
        if name in _GROUP_COLUMNS:
            column = getattr(known["groups"], name)[known["groups"].of_row]
        elif name in _ROW_COLUMNS:
            column = known["_rows"].activity_column(name)
        else:
            raise AttributeError(name)
        known[name] = column
        return column


_GROUP_COLUMNS = frozenset((*GROUP_COLUMNS, "launched"))
_ROW_COLUMNS = frozenset(("start", *_TIMES, *_KEPT_COLUMNS))
