"""Link operators of the backward pass to the forward operators that made them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, I8, Column, pack, unique, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.raw import RawRanges
from flame.core.readers.kineto.context import AnyEvent, KinetoContext, fill_absent, place_key
from flame.core.readers.kineto.events import EventArgs, to_nanoseconds

FLOWS = frozenset({"fwdbwd", "fwd_bwd", "forward_backward"})
"""Categories of the arrows from forward to backward operators; the name has changed twice."""


class SequenceNumbers:
    """Collects the sequence numbers that autograd gives operators, row by row of the ranges.

    An operator of the backward pass has the number of the forward one, and the number of the
    thread that ran that: PyTorch's own count, from 1. Forward operators have 0 there.
    """

    def __init__(self) -> None:
        self._number: list[Column] = [np.zeros(0, np.int64)]
        self._thread: list[Column] = [np.zeros(0, np.int64)]

    def add(self, args: Sequence[EventArgs]) -> None:
        """Add rows."""
        self._number.append(fill_absent([event_args.sequence for event_args in args], NONE))
        self._thread.append(fill_absent([event_args.forward_thread for event_args in args], 0))

    def link_operators(self, ranges: RawRanges, process_of: I4, arrows: I8) -> I8:
        """Return the row of each row's forward operator, -1 where there is none.

        ``arrows`` are such rows that are known already. Of several operators with one number it is
        the one that started last, which is the innermost. Which thread PyTorch's number means shows
        in where arrows come from, then in whose operators fit most often, and most recently.
        """
        number, home = np.concatenate(self._number), np.concatenate(self._thread)
        process = process_of[ranges.thread]
        forward = np.flatnonzero((number >= 0) & (home <= 0))
        backward = np.flatnonzero((number >= 0) & (home > 0))
        links = arrows.copy()
        _, group = unique_rows([process[backward], home[backward]])
        for group_number in range(int(group.max(initial=NONE)) + 1):
            rows = backward[group == group_number]
            near = forward[process[forward] == process[rows[0]]]
            shown = ranges.thread[arrows[rows[arrows[rows] >= 0]]]
            candidates = []
            for thread in unique(ranges.thread[near]):
                linked = _last_forward_rows(
                    number, ranges, near[ranges.thread[near] == thread], rows
                )
                candidates.append(
                    (int((shown == thread).sum()), *_rate_fit(ranges, linked), linked)
                )
            if candidates:
                *_, linked = max(candidates, key=lambda candidate: candidate[:3])
                links[rows] = np.where(arrows[rows] >= 0, arrows[rows], linked)
        return links


def _rate_fit(ranges: RawRanges, forward: I8) -> tuple[int, int]:
    """Count the forward operators in ``found``, and return when the last of them started."""
    starts = ranges.start[forward[forward >= 0]]
    return len(starts), int(starts.max(initial=np.iinfo(np.int64).min))


def _last_forward_rows(number: I8, ranges: RawRanges, forward: I8, backward: I8) -> I8:
    """For each row of ``backward`` find the last row of ``forward`` with its number before it."""
    rows = np.concatenate([forward, backward])
    keys = pack([number[rows], ranges.start[rows]])
    have, want = keys[: len(forward)], keys[len(forward) :]
    order = np.lexsort((ranges.start[forward] - ranges.end[forward], have))  # inner ones behind
    last = forward[order[np.maximum(np.searchsorted(have[order], want, "right") - 1, 0)]]
    fits = (number[last] == number[backward]) & (ranges.start[last] <= ranges.start[backward])
    return np.where(fits, last, NONE)


@dataclass(frozen=True)
class _ArrowEnd:
    """One end of an arrow: where and when an operator starts."""

    thread: int
    start: int


class ForwardFlows:
    """Collects the arrows from forward to backward operators, by process and number."""

    def __init__(self, context: KinetoContext) -> None:
        self._context = context
        self._ends: dict[str, dict[str, _ArrowEnd]] = {"s": {}, "f": {}}

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Add ends of arrows."""
        threads = self._context.threads
        starts, known = to_nanoseconds([event.ts for event in events])
        for event, start, timed in zip(events, starts.tolist(), known.tolist(), strict=True):
            if timed and event.ph in self._ends and event.id is not None:
                thread = threads[event.pid, event.tid]
                process, _ = threads.places[thread]
                key = place_key((process, event.id))
                self._ends[event.ph][key] = _ArrowEnd(thread, start)

    def forward_rows(self, ranges: RawRanges) -> I8:
        """Return the row of each row's forward operator where an arrow shows it, else -1."""
        sources, targets = self._ends["s"], self._ends["f"]
        both = [number for number in targets if number in sources]
        forward = _rows_starting_at(ranges, [sources[number] for number in both], innermost=True)
        backward = _rows_starting_at(ranges, [targets[number] for number in both], innermost=False)
        known = (forward >= 0) & (backward >= 0)
        result = np.full(len(ranges.start), NONE, np.int64)
        result[backward[known]] = forward[known]
        return result


def _rows_starting_at(ranges: RawRanges, ends: Sequence[_ArrowEnd], innermost: bool) -> I8:
    """Return the row starting at each of ``ends``: of several the shortest, or longest; or -1."""
    if not len(ranges.start):
        return np.full(len(ends), NONE, np.int64)
    length = ranges.end - ranges.start
    order = np.lexsort((length if innermost else -length, ranges.start, ranges.thread))
    thread = np.array([end.thread for end in ends], np.int64)
    start = np.array([end.start for end in ends], np.int64)
    keys = pack([np.append(ranges.thread[order], thread), np.append(ranges.start[order], start)])
    have, want = keys[: len(order)], keys[len(order) :]
    place = np.minimum(np.searchsorted(have, want), len(have) - 1)
    return np.where(have[place] == want, order[place], NONE)
