"""The event table of a snapshot: groups are there at once, rows are put together if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flame.core.columns import Column
from flame.core.live.sums.activities import WorkSegment
from flame.core.model.activities import GROUP_COLUMNS, Activities, Groups
from flame.core.model.launches import LaunchConfig, LaunchDetails
from flame.core.model.stacks import StackTable

_TIMES = ("launch_start", "launch_end")
_AS_KEPT = {"duration": "duration", "launch_share": "share", "idle": "idle"}


class KeptRows:
    """The rows of ``segments`` that start at ``begin`` or later, and at or after ``zero`` is 0."""

    def __init__(self, segments: Sequence[WorkSegment], begin: int, zero: int) -> None:
        self._parts = [one.rows_since(begin) for one in segments if one.last >= begin]
        self._zero = zero

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def column(self, name: str) -> Column:
        """One column of `Rows`, of all rows."""
        parts = [getattr(part, name) for part in self._parts]
        return np.concatenate(parts) if parts else np.zeros(0, _DTYPES.get(name, np.int64))

    def of_activities(self, name: str) -> Column:
        """One column of `Activities` that groups do not know, times since ``zero``."""
        if name in _TIMES:
            return np.where(self.column("launch_end") < 0, -1, self.column(name) - self._zero)
        if name == "start":
            return self.column("start") - self._zero
        return self.column(_AS_KEPT[name])

    def launches(self, configs: tuple[LaunchConfig, ...]) -> LaunchDetails:
        """How all of them were launched."""
        return LaunchDetails(self.column("config"), self.column("bytes"), configs)


_DTYPES = {"group": np.int32, "config": np.int32}


class LazyGroups(Groups):
    """Groups whose ``of_row`` is put together when it is first asked for."""

    def __init__(self, rows: KeptRows, columns: dict[str, Column]) -> None:
        self.__dict__.update(columns, _rows=rows)

    def __getattr__(self, name: str) -> Any:
        if name != "of_row":
            raise AttributeError(name)
        found = self.__dict__["of_row"] = self.__dict__["_rows"].column("group")
        return found


class LazyActivities(Activities):
    """A table whose columns are put together when they are first asked for."""

    def __init__(self, rows: KeptRows, groups: Groups, stacks: StackTable) -> None:
        self.__dict__.update(_rows=rows, groups=groups, stacks=stacks, measures={})

    def __len__(self) -> int:
        return len(self.__dict__["_rows"])

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__
        if name in _OF_GROUPS:
            found = getattr(known["groups"], name)[known["groups"].of_row]
        elif name in _OF_ROWS:
            found = known["_rows"].of_activities(name)
        else:
            raise AttributeError(name)
        known[name] = found
        return found


_OF_GROUPS = frozenset((*GROUP_COLUMNS, "launched"))
_OF_ROWS = frozenset(("start", *_TIMES, *_AS_KEPT))
