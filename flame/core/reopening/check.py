"""Check that the parts of a kept profile refer to what there is."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.model.frames import Kind
from flame.core.model.grouping import Grouping
from flame.core.model.lazy_rows import ROW_COLUMNS
from flame.core.model.stacks import StackTable
from flame.core.reopening.column_file import ColumnFile, DamagedError
from flame.core.reopening.profile_head import ProfileHead

_LISTS = ("process", "thread", "device")
_STACKS = ("python", "native", "nvtx", "stack", "own_python", "own_nvtx", "nested", "own_nested")


def require(is_sound: bool | np.bool_) -> None:
    """Raise DamagedError unless all is well."""
    if not is_sound:
        raise DamagedError("what does not fit together")


def check_stacks(stacks: StackTable, frames: int) -> None:
    """Raise DamagedError unless parents come before children, and all frames are there."""
    parent, frame, depth = stacks.parent, stacks.frame, stacks.depth
    require(0 < len(parent) == len(frame) == len(depth))
    require(parent[0] == frame[0] == -1 and depth[0] == 0)
    require(_are_within(parent[1:], 0, len(parent)) and _are_within(frame[1:], 0, frames))
    require((parent[1:] < np.arange(1, len(parent))).all())
    require((depth[1:] == depth[parent[1:]] + 1).all())


def check_grouping(grouping: Grouping, stacks: StackTable, frames: I4) -> None:
    """Raise DamagedError where it does not know ``frames`` of activities, or those of stacks."""
    require(len(grouping.shapes) > stacks.frame.max())
    require(_are_within(frames, 0, len(grouping.category)))
    require((grouping.category[frames] >= 0).all())


def _are_within(column: Column, low: int, high: int) -> bool:
    return not len(column) or bool(low <= column.min() and column.max() < high)


class Checked:
    """Reads the columns of ``file`` that are small, each with what its numbers may be."""

    def __init__(self, file: ColumnFile, head: ProfileHead) -> None:
        self._file, self._frames = file, len(head.frames)
        lists = (head.processes, head.threads, head.devices)
        self._sizes = dict(zip(_LISTS, map(len, lists), strict=True))
        self._groups = file.length("groups.kind")
        require(_are_sound_lists(head) and head.rest < self._frames)
        for name in ROW_COLUMNS:
            require(file.length(f"rows.{name}") == file.length("rows.group"))

    def group(self, name: str, stacks: int) -> Column:
        """Read a column of groups, where there are so many ``stacks``."""
        dtype = {"kind": "u1", "launched": "b1"}.get(name, "i4")
        column = self._file.read(f"groups.{name}", dtype)
        require(len(column) == self._groups)
        if name == "kind":
            require(_are_within(column, 0, len(Kind)))
        elif name == "launched":
            require(_are_within(column.view(np.uint8), 0, 2))
        elif name in _STACKS:
            require(_are_within(column, 0, stacks))
        elif name in ("launch", "frame"):
            require(_are_within(column, -1, self._frames))
        elif name in self._sizes:
            require(_are_within(column, -1, self._sizes[name]))
        return column

    def grouping(self, name: str) -> Column:
        """Read a column of `Grouping`."""
        column = self._file.read(f"grouping.{name}", "i4")
        if name == "stream_ids":
            require(len(column) == self._file.length("grouping.stream"))
            require((np.diff(column) > 0).all())
            return column
        size = (
            self._sizes["process" if name == "rank" else name] if name in (*_LISTS, "rank") else -1
        )
        require(size in (-1, len(column)) and len(column) <= self._frames + max(size, 0))
        require(_are_within(column, -1, self._frames))
        return column

    def sums(self, name: str) -> I8:
        """Read a sum for each group."""
        column = self._file.read(name, "i8")
        require(len(column) == self._groups and _are_within(column, 0, 1 << 62))
        return column

    def event(self, name: str, dtype: str) -> Column:
        """Read a column of iterations or of steps."""
        column = self._file.read(name, dtype)
        what = name.rpartition(".")[2]
        if what in ("frame", "frames"):
            require(_are_within(column, -1, self._frames))
        elif what in self._sizes:
            require(_are_within(column, -1, self._sizes[what]))
        return column


def _are_sound_lists(head: ProfileHead) -> bool:
    """Whether threads are of processes that there are, and all is of the one source."""
    sources = [each.source for each in head.processes] + [each.source for each in head.devices]
    known = all(-1 <= thread.process < len(head.processes) for thread in head.threads)
    return known and not any(sources) and all(-1 <= one < len(head.devices) for one in head.busy)
