"""Prepare, in a thread, what a timeline needs before it can be drawn."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from threading import Event
from time import monotonic
from typing import NamedTuple

from flame.core.analysis.utilization import (
    DeviceGaps,
    Utilization,
    chosen_window,
    utilizations,
)
from flame.core.columns import Bool
from flame.core.errors import InputError, UsageError
from flame.core.gpu_metrics.samples import SampledMetric
from flame.core.lazy_dataclass import dataclass
from flame.core.model.profile import Profile
from flame.core.model.threads.states import StateSpans
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.gap_causes import GapCauses, causes_of_gaps
from flame.core.timeline.highlight import (
    Highlight,
    category_looks,
    highlight,
    matching_intervals,
    passing_intervals,
)
from flame.core.timeline.intervals import Timeline, timeline
from flame.core.timeline.thread_states.lanes import find_metrics, with_metrics, with_states
from flame.core.timeline.thread_states.spans import state_spans
from flame.tui.session.session import Projection
from flame.tui.timeline.viewport import SHORTEST


class LaidOut(NamedTuple):
    """Hold a timeline and what is bright in it.

    ``home`` is the window that filters choose, ``gaps`` are those of each GPU that they leave, and
    ``busy`` says how busy it was. There are none of a recording that does not keep all rows.
    ``causes`` say why each GPU was idle, once that is known.
    """

    timeline: Timeline
    highlight: Highlight
    home: TimeWindow
    busy: tuple[Utilization, ...]
    gaps: tuple[DeviceGaps, ...]
    causes: tuple[GapCauses, ...]


@dataclass(frozen=True)
class Reasons:
    """Say why threads and GPUs of ``profile`` did nothing, as far as the trace tells.

    ``metrics`` are what was sampled of GPUs, with their labels. ``unread`` says why that could not
    be read; else it is empty.
    """

    profile: Profile
    states: StateSpans | None = None
    causes: tuple[GapCauses, ...] = ()
    metrics: tuple[tuple[str, SampledMetric], ...] = ()
    unread: str = ""


def find_reasons(profile: Profile) -> Reasons:
    """Find what held threads of ``profile`` up, and why its GPUs were idle; may read the file."""
    try:
        found = Reasons(profile, state_spans(profile), causes_of_gaps(profile))
    except InputError as error:
        return Reasons(profile, unread=str(error))
    try:
        return replace(found, metrics=find_metrics(profile))
    except InputError as error:
        return replace(found, unread=str(error))


class TimelineWork:
    """Work out the rows of ``shown``'s trace and what is bright in them, after ``before``.

    With its ``reasons``, where they are known; they are found first where it ``explains``.
    """

    def __init__(
        self,
        shown: Projection,
        before: TimelineWork | None,
        reasons: Reasons | None = None,
        explains: bool = False,
    ) -> None:
        self._shown, self._explains = shown, explains
        self.reasons = reasons
        self._found = shown.view.matches.result
        self._before = before
        self._done = Event()
        self._timeline: Timeline | None = None
        self._passing: Bool | None = None
        self._light: Highlight | None = None
        self._chosen: tuple[tuple[Utilization, ...], tuple[DeviceGaps, ...]] | None = None
        self._error: Exception | None = None
        self.seconds = 0.0
        """What it has taken."""

    def fits(self, shown: Projection) -> bool:
        """Tell whether this is about what ``shown`` shows now."""
        return self._shown is shown and self._found is shown.view.matches.result

    def precedes(self, shown: Projection) -> bool:
        """Tell whether ``shown`` is the same, and its search, of a later state of the trace."""
        queries = [
            found.query if found else None for found in (self._found, shown.view.matches.result)
        ]
        return shown.follows(self._shown) and queries[0] == queries[1]

    def run(self) -> None:
        """Work it out; an error is kept for `result`."""
        begin = monotonic()
        try:
            self._run()
        except Exception as error:
            self._error = error
        self.seconds = monotonic() - begin
        self._done.set()

    def _run(self) -> None:
        shown, before = self._shown, self._before
        self._before = None  # or every work would keep all earlier ones
        profile, tree = shown.profile, shown.view.tree
        if self._explains:
            self.reasons = find_reasons(profile)
        if before is not None:
            before._done.wait()
            self._take_over(before)
        rows = self._timeline = self._with_states(self._timeline or timeline(profile))
        if self._passing is None:
            self._passing = passing_intervals(rows, profile, tree, shown.selection.where)
        if self._chosen is None:
            busy = utilizations(profile, shown.selection.where)
            self._chosen = (busy, tuple(DeviceGaps(profile, each) for each in busy))
        found, hits = self._found, None
        if found:
            pattern, exact = found.query.compile(), found.query.exact
            unfolded = shown.exact.text if shown.folds_numbers else ()
            mask = found.matches.mask
            with suppress(UsageError):  # too long for the names here, if not for those of the tree
                hits = matching_intervals(rows, tree, mask, pattern, exact, unfolded)
        looks = category_looks(rows, profile) if shown.selection.colours == "category" else None
        self._light = highlight(rows, self._passing, hits, looks)

    def _take_over(self, before: TimelineWork) -> None:
        """Take over what ``before`` has worked out of the same trace."""
        shown, where = self._shown, before._shown.selection.where
        if before._shown.profile is shown.profile:
            self._timeline = before._timeline
            self._chosen = before._chosen if where == shown.selection.where else None
        if before._shown is shown and before.reasons is self.reasons:
            self._passing = before._passing

    def _with_states(self, timeline: Timeline) -> Timeline:
        """``timeline`` with lanes of what held threads up and was sampled, if that is known."""
        if self.reasons is None or timeline.states is not None or timeline.metrics:
            return timeline
        return with_metrics(with_states(timeline, self.reasons.states), self.reasons.metrics)

    @property
    def profile(self) -> Profile:
        """The trace that it is about."""
        return self._shown.profile

    @property
    def unread(self) -> str:
        """Why the trace, which came from the cache, could not be read for this; else empty."""
        return str(self._error) if isinstance(self._error, InputError) else ""

    def result(self) -> LaidOut:
        """Return what `run` has worked out."""
        if self._error is not None:
            raise self._error
        assert self._timeline is not None and self._light is not None and self._chosen is not None
        home = self._home(self._timeline)
        causes = self.reasons.causes if self.reasons else ()
        return LaidOut(self._timeline, self._light, home, *self._chosen, causes)

    def _home(self, timeline: Timeline) -> TimeWindow:
        """The window that filters choose; all of the trace without any."""
        window = chosen_window(self._shown.profile, self._shown.selection.where)
        if window is None:
            return timeline.whole
        low, high = window.moved(-timeline.origin)
        whole = timeline.whole
        low = min(max(low, whole.low), max(whole.high - SHORTEST, whole.low))
        return TimeWindow(low, min(max(high, low + SHORTEST), whole.high))
