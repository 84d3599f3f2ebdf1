"""Build the event tables of snapshots from the groups of all rows there ever were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flame.core.attribution.thread_pieces import call_pieces, range_pieces
from flame.core.columns import I4, I8, Column, distinct
from flame.core.live.lazy_rows import SegmentRows
from flame.core.live.sums import activities as work
from flame.core.live.sums import host_spans as spans
from flame.core.live.sums.groups import ActivityGroups, HostGroups
from flame.core.live.sums.segment import WindowExtent
from flame.core.live.sums.window_sums import WindowTotals
from flame.core.live.vocabulary import SnapshotVocabulary
from flame.core.model.activities import NONE, Activities, GroupTotals, ThreadPieces
from flame.core.model.lazy_rows import LazyActivities, LazyGroups
from flame.core.model.meta import GraphNodes
from flame.core.model.raw import RawCalls, RawRanges
from flame.core.model.stacks import EMPTY, StackTable

_NO_ROWS = SegmentRows((), 0, 0)


class EventTables:
    """Builds tables whose groups are ``work_groups`` and ``host_groups``."""

    def __init__(self, work_groups: ActivityGroups, host_groups: HostGroups) -> None:
        self._work = work_groups
        self._host = host_groups
        self._streams: I8 = np.zeros(0, np.int64)
        self._grouped = 0

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of groups of GPU work, and of calls and ranges."""
        return len(self._work), len(self._host)

    @property
    def streams(self) -> I8:
        """The ids of all streams that anything ran on."""
        new = self._work.column("stream")[self._grouped :]
        if len(new):
            self._streams, _ = distinct(np.append(self._streams, new[new >= 0]))
            self._grouped += len(new)
        return self._streams

    def activity_table(self, rows: SegmentRows, vocabulary: SnapshotVocabulary) -> Activities:
        """Build the table of GPU activities."""
        known = self._work
        columns = _fill_columns(
            len(known),
            kind=known.column("kind"),
            process=vocabulary.process[known.column("process")],
            **{name: known.column(name) for name in ("thread", "device", "stream")},
            **known.joined_stacks,
            **{name: known.column(name) for name in ("launch", "frame")},
        )
        columns["launched"] = known.column("launched").astype(bool)
        return LazyActivities(rows, LazyGroups(rows, columns), vocabulary.stacks)

    def host_table(self, vocabulary: SnapshotVocabulary) -> Activities:
        """Build the host table: it has no rows, only groups."""
        known = self._host
        columns = _fill_columns(
            len(known),
            process=vocabulary.process[known.column("process")],
            **{name: known.column(name) for name in ("kind", "thread", "nvtx", "launch")},
        )
        return LazyActivities(_NO_ROWS, LazyGroups(_NO_ROWS, columns), vocabulary.stacks)

    def totals(self, window: WindowTotals, since: int) -> GroupTotals:
        """Return the sums of a window, in which all rows ``since`` then are kept.

        Where a range is known only by what was in it, there is nothing to take the time of that
        from: such a place has none of its own.
        """
        count, *values = window.work
        often, host = window.host
        by_metric = dict(zip(work.MEASURES, (count, *values), strict=True))
        by_metric["host"] = np.maximum(host, 0)
        return GroupTotals(by_metric, {"gpu": count, "host": often}, since)

    def graph_nodes(self, window: WindowTotals) -> GraphNodes:
        """Count how much of a window was replayed from graphs."""
        replayed = self._work.column("graph") > 0
        captured = replayed & (self._work.column("captured_nvtx") != EMPTY)
        count = window.work[0]
        return GraphNodes(int(count[replayed].sum()), int(count[captured].sum()))

    def range_pieces(
        self, parts: Sequence[spans.SpanRows], stacks: StackTable, extent: WindowExtent
    ) -> ThreadPieces:
        """Build the pieces of the ranges among the rows of ``parts``, as a timeline has them."""
        rows = self._spans(parts, extent, calls=False)
        frame = stacks.frame[self._host.column("nvtx")[rows.group]]
        end = rows.end - extent.zero
        ranges = RawRanges(rows.start - extent.zero, end, self._threads(rows), frame)
        return range_pieces(ranges, int(end.max(initial=0)))

    def call_pieces(self, parts: Sequence[spans.SpanRows], extent: WindowExtent) -> ThreadPieces:
        """Build the pieces of the outermost API calls among the rows of ``parts``."""
        rows = self._spans(parts, extent, calls=True)
        none, size = np.full(len(rows), EMPTY, np.int32), len(rows)
        return call_pieces(
            RawCalls(
                start=rows.start - extent.zero,
                end=rows.end - extent.zero,
                thread=self._threads(rows),
                correlation=np.zeros(size, np.int64),
                frame=self._host.column("launch")[rows.group].astype(np.int32),
                python=none,
                native=none,
                chain_only=np.zeros(size, bool),
            )
        )

    def _spans(
        self, parts: Sequence[spans.SpanRows], extent: WindowExtent, calls: bool
    ) -> spans.SpanRows:
        """The calls, or else the ranges, of which some are in the window."""
        rows = spans.SpanRows.concatenate(parts)
        is_call = self._host.column("launch") != NONE
        return rows.take((rows.end > extent.begin) & (is_call[rows.group] == calls))

    def _threads(self, rows: spans.SpanRows) -> I4:
        return self._host.column("thread")[rows.group].astype(np.int32)


def _fill_columns(size: int, **known: Column) -> dict[str, Any]:
    """Return all columns of groups but ``of_row``, empty where they are not ``known``."""
    none, empty = np.full(size, NONE, np.int32), np.full(size, EMPTY, np.int32)
    columns: dict[str, Any] = {
        **dict.fromkeys(("device", "stream", "frame"), none),
        **dict.fromkeys(("python", "native", "nvtx", "stack"), empty),
        "launched": np.zeros(size, bool),
        **{name: column.astype(np.int32, copy=False) for name, column in known.items()},
    }
    columns["kind"] = columns["kind"].astype(np.uint8)
    return columns
