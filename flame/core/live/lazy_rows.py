"""Give the rows of a snapshot when they are asked for: its groups are there at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, Column
from flame.core.live.sums.activities import ActivitySegment
from flame.core.model.launches import LaunchConfig, LaunchDetails

_TIMES = ("launch_start", "launch_end")
_KEPT_COLUMNS = {"duration": "duration", "launch_share": "share", "idle": "idle"}


class SegmentRows:
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

    def groups(self) -> I4:
        """Return the group of each row."""
        return self.column("group")

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
