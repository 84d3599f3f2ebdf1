"""Sum the rows of every window of a live recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from flame.core.columns import I8
from flame.core.live.sums import activities as work
from flame.core.live.sums import host_spans as spans
from flame.core.live.sums.segment import KeptSegments, Segment, SegmentSums
from flame.core.live.window import LiveWindow


class WindowTotals(NamedTuple):
    """Sums of a window by group: i8[measures, groups] of GPU work and of calls and ranges."""

    work: I8
    host: I8


class _SumPair:
    """The sums of one window."""

    def __init__(self) -> None:
        self.work = SegmentSums(len(work.MEASURES))
        self.host = SegmentSums(len(spans.MEASURES))

    def look(self, kept: KeptSegments, begin: int | None, sizes: tuple[int, int]) -> WindowTotals:
        return WindowTotals(
            self.work.look(kept.work, begin, sizes[0]), self.host.look(kept.host, begin, sizes[1])
        )


class WindowSums:
    """Sums of all windows. ``mark``: when the window since the mark begins."""

    def __init__(self, mark: int) -> None:
        self._all = _SumPair()
        self._sliding: dict[str, _SumPair] = {}
        self.set_mark(mark)

    def set_mark(self, mark: int) -> None:
        """Begin the window since the mark at ``mark``: nothing of it may have been settled."""
        self._mark, self._marked = mark, _SumPair()

    def begin(self, window: LiveWindow, now: int) -> int | None:
        """Return when ``window`` begins; None for the window of all."""
        if window.marked:
            return self._mark
        return now - window.length if window.length else None

    def look(
        self, window: LiveWindow, begin: int | None, kept: KeptSegments, sizes: tuple[int, int]
    ) -> WindowTotals:
        """Return the sums of ``window`` from ``begin`` on; ``sizes`` are numbers of groups."""
        if window.marked:
            pair = self._marked
        elif begin is None:
            pair = self._all
        else:
            pair = self._sliding.setdefault(window.key, _SumPair())
        return pair.look(kept, begin, sizes)

    def settle(self, gone: KeptSegments) -> None:
        """Add up for good the segments that will not be kept any longer."""
        for segment in gone.work:
            self._settle([pair.work for pair in self._pairs()], segment)
        for other in gone.host:
            self._settle([pair.host for pair in self._pairs()], other)

    def _pairs(self) -> Iterable[_SumPair]:
        return (self._all, self._marked, *self._sliding.values())

    def _settle(self, sums: Sequence[SegmentSums], segment: Segment) -> None:
        """Add a segment to windows that do not move, and take it from those that do."""
        whole, marked, *sliding = sums
        whole.settle(segment, None)
        marked.settle(segment, self._mark)
        for window in sliding:
            window.forget(segment)
