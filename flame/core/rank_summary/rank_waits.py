"""Hold how long ranks waited in collectives, and how far their clocks are apart."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.columns import I8

UNKNOWN = -1
"""A time that is not known."""


class RankWaitTable(NamedTuple):
    """Hold what the collectives of all ranks tell of each; columns are i8, times in ns.

    ``wait`` i8[ranks] is how long a rank waited, `UNKNOWN` where that is so. Its clock is behind by
    ``offset`` i8[ranks], compared with the rank that is ahead of all in its ``part`` i8[ranks]:
    ranks that no chain of collectives joins have different parts. ``error`` i8[ranks] is what 95 %
    of the ends of its collectives are within, `UNKNOWN` of a clock that no collective tells.

    ``step_wait`` has how long each rank waited in each of its steps, one rank after another, or
    `UNKNOWN`. ``group`` (places among the groups of the summary) are those in which each rank has
    collectives whose waiting was measured: those of rank r are from ``group_start[r]`` on
    (i8[ranks + 1]), and rise. Each has ``group_calls`` of them, which took ``group_wait`` and
    ``group_transfer`` together. They are empty unless the waiting of all ranks was measured.

    It is of these ranks together: with one more it is to be measured anew.
    """

    wait: I8
    offset: I8
    error: I8
    part: I8
    step_wait: I8
    group_start: I8
    group: I8
    group_calls: I8
    group_wait: I8
    group_transfer: I8

    @property
    def by_group(self) -> bool:
        """Whether the waiting of all ranks is known by groups."""
        return len(self.group) > 0


OF_RANKS = ("wait", "offset", "error", "part")
"""Columns that have a row for each rank."""

OF_GROUPS = ("group", "group_calls", "group_wait", "group_transfer")
"""Columns that have a row for each group of each rank."""
