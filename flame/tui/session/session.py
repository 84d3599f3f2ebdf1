"""Load a trace for the app and project it; runs in a worker, draws nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from threading import Lock
from typing import TYPE_CHECKING

from flame.core.analysis.node_activities import NodeActivities, chosen_rows
from flame.core.efficiency.colouring import efficiency_colours
from flame.core.efficiency.summary import headline, summarize_work
from flame.core.errors import InputError, NoMatchError, UsageError
from flame.core.frame import EFFICIENCY, IMBALANCE
from flame.core.lazy_dataclass import dataclass
from flame.core.load_progress import LoadPart, WholeLoad
from flame.core.loading.inputs import Inputs
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.options import LoadOptions, Progress
from flame.core.projection.labels import Labels, exact_labels
from flame.core.projection.levels import default_levels, recorded_levels
from flame.core.projection.number_folds import folds_numbers, labels_of
from flame.core.projection.project import project as project_tree
from flame.core.projection.project import shown_profile
from flame.core.projection.selection import Selection
from flame.core.timeline.devices import device_times
from flame.tui.session.node_colours import NodeColours
from flame.tui.session.tree_view import TreeView

if TYPE_CHECKING:
    from flame.core.reopening.profile_cache import ProfileCache

_LOADED, _WEIGHED = 0.9, 0.96
"""Shares of loading, and of summing by metrics, in the time until there is a tree.

Of traces they are 0.9 to 0.98 and 0.96, of many stacks 0.6.
"""

NO_SHAPES = "no operator has shapes: torch.profiler.profile(record_shapes=True) records them"

_KEPT_NODES = 3_000_000
"""Tree nodes, about 100 bytes each, in projections kept so that going back to them is immediate."""


SessionOf = Callable[[Inputs, Profile, "tuple[str, ...]", LoadOptions], "Session"]
"""Makes a session of what has been loaded, and of the metrics that have something to show."""

Recall = Callable[[Selection, Profile], Selection]
"""Makes of what is asked for what is to be shown of a trace."""


@dataclass(frozen=True, eq=False)
class Projection:
    """What a selection shows: a prepared view, and the levels that its table has any frame for.

    ``folds_numbers``: it has frames that stand for several, which differ only in numbers.
    """

    selection: Selection
    view: TreeView
    recorded: frozenset[str]
    profile: Profile
    folds_numbers: bool = False
    _members: list[NodeActivities] = field(default_factory=list, repr=False)
    _headlines: list[str] = field(default_factory=list, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def headline(self) -> str:
        """Say how near the GPUs were to their peak, empty where not known; may read the file."""
        with self._lock:
            if not self._headlines:
                self._headlines.append(_headline(self) if self.tells_work else "")
        return self._headlines[0]

    def headline_now(self) -> str | None:
        """Return the same if it is there already."""
        return self._headlines[0] if self._headlines else None

    @property
    def tells_work(self) -> bool:
        """Whether there may be work of operators in what is shown; False while that grows."""
        profile, is_gpu = self.profile, self.metric.table == "gpu"
        return is_gpu and profile.totals is None and bool(profile.sized_operators)

    def members(self) -> NodeActivities:
        """Return the activities below every node; takes its time when first asked for."""
        with self._lock:
            if not self._members:
                where = self.selection.where
                self._members.append(NodeActivities.from_tree(self.profile, self.view.tree, where))
        return self._members[0]

    def follows(self, before: Projection) -> bool:
        """Tell whether this is the same of a later state of the recording."""
        return self.profile is not before.profile and self.selection == before.selection

    @property
    def metric(self) -> Metric:
        """The metric shown."""
        return self.view.tree.metric

    @property
    def labels(self) -> Labels:
        """How the frames of the trace are shown."""
        return labels_of(self.profile, self.selection.naming, self.profile.table(self.metric))

    @property
    def exact(self) -> Labels:
        """How they would be shown with all numbers in their names."""
        return exact_labels(self.profile.frames, self.selection.naming)

    def frame_as_in(self, before: Projection, frame: int) -> int:
        """Find what ``frame`` of ``before`` is shown as here; -1 where it may be nothing."""
        return int(self.labels.shown[frame])

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.view.tree.total[0]


@dataclass(frozen=True)
class Session:
    """A trace and the metrics that may have something to show."""

    inputs: Inputs
    profile: Profile
    metrics: tuple[str, ...]
    options: LoadOptions
    _kept: dict[Selection, Projection] = field(default_factory=dict, repr=False)

    def project(self, candidates: Iterable[Selection]) -> Projection:
        """Return the first of ``candidates`` that is not empty; NoMatchError if all are."""
        for selection in candidates:
            try:
                projection = (
                    self._kept.get(selection)
                    or self._recoloured(selection)
                    or self._projected(selection)
                )
            except NoMatchError:
                continue
            if not projection.empty:
                self.keep(projection)
                return projection
        raise NoMatchError("nothing in this trace is left to show with that")

    def first(self, selection: Selection) -> Projection:
        """Project ``selection``, even to nothing; NoMatchError if no activity passes its filters.

        UsageError for what this trace cannot be asked.
        """
        return self._projected(selection)

    def _projected(self, selection: Selection) -> Projection:
        if selection.colours == IMBALANCE:
            raise UsageError("--colours imbalance: only of a summary of ranks: flame ranks")
        return _by_efficiency(project(self.profile, selection))

    def _recoloured(self, selection: Selection) -> Projection | None:
        """The same tree as one that is kept in other colours, if there is one."""
        for kept in self._kept.values():
            if replace(kept.selection, colours=selection.colours) == selection:
                same = replace(kept, selection=selection, view=prepared(kept.view.tree))
                return _by_efficiency(same)
        return None

    @property
    def is_sampled(self) -> bool:
        """Whether there are PC samples."""
        return self.profile.sampling is not None

    @property
    def usual_metric(self) -> str:
        """The metric of selections that name none."""
        return self.profile.default_metric

    def usual_levels(self, selection: Selection, metric: Metric) -> tuple[str, ...]:
        """The levels of ``metric`` where ``selection`` chooses none."""
        return default_levels(self.profile, metric, selection.naming)

    def keep(self, projection: Projection) -> None:
        """Remember ``projection``, and forget those longest unused when there are too many."""
        self._kept.pop(projection.selection, None)
        self._kept[projection.selection] = projection
        nodes = sum(len(kept.view.tree) for kept in self._kept.values())
        for selection in list(self._kept)[:-1]:
            if nodes <= _KEPT_NODES:
                break
            nodes -= len(self._kept.pop(selection).view.tree)

    def others(self, selection: Selection, step: int) -> list[Selection]:
        """``selection`` with each other metric, beginning ``step`` (+1 or -1) further."""
        shown = selection.metric or self.usual_metric
        ring = self.metrics if shown in self.metrics else (shown, *self.metrics)
        at = ring.index(shown)
        keys = [ring[(at + step * far) % len(ring)] for far in range(1, len(ring))]
        return [replace(selection, metric=key) for key in keys]


def open_session(
    inputs: Inputs,
    options: LoadOptions,
    selection: Selection,
    progress: Progress,
    recall: Recall | None = None,
    cache: ProfileCache | None = None,
    session_of: SessionOf | None = None,
) -> tuple[Session, Projection]:
    """Load ``inputs`` and project them; FlameError if one cannot be read or nothing matches.

    What ``recall`` makes of ``selection`` is shown, if that is anything. What ``cache`` has is not
    read again. ``session_of`` makes the session of what has been loaded.
    """
    from flame.core.loading.many import load_inputs

    whole = WholeLoad(progress)
    profile = load_inputs(inputs, options, LoadPart(whole, 0, _LOADED), cache)
    whole("building the tree", round(100 * _LOADED), 100)
    metrics = metrics_of(profile)
    whole("building the tree", round(100 * _WEIGHED), 100)
    session = (session_of or Session)(inputs, profile, metrics, options)
    recalled = recall(selection, profile) if recall else selection
    shown = _recalled(session, recalled, selection) or session.first(selection)
    session.keep(shown)
    device_times(profile)  # what the header says of them is at hand then
    return session, shown


def _recalled(session: Session, recalled: Selection, selection: Selection) -> Projection | None:
    """What is ``recalled`` in place of ``selection``; None if it is the same or shows nothing."""
    if recalled == selection:
        return None
    try:
        shown = session.first(recalled)
    except NoMatchError:
        return None
    return None if shown.empty else shown


def metrics_of(profile: Profile) -> tuple[str, ...]:
    """Return the metrics by which ``profile`` may have something to show."""
    return tuple(metric.key for metric in profile.metrics if _weighs(profile, metric))


def _weighs(profile: Profile, metric: Metric) -> bool:
    """Whether ``metric`` may be above zero anywhere; nothing is made just to find out."""
    if metric.when_asked:
        return profile.size > 0
    if metric.table == "memory" and not profile.resolved:
        return True  # of a trace from the cache it would be read again
    return metric.table == "host" or bool(profile.totals_by_group(metric)[0].any())


def project(profile: Profile, selection: Selection) -> Projection:
    """Project and work out everything that grows with the tree."""
    profile = shown_profile(profile, selection)
    view = prepared(project_tree(profile, selection))
    recorded = recorded_levels(profile, view.tree.metric)
    folds = folds_numbers(profile, selection.naming, view.tree)
    return Projection(selection, view, recorded, profile, folds)


def _headline(shown: Projection) -> str:
    profile, tree = shown.profile, shown.view.tree
    try:
        summary = summarize_work(profile, rows=chosen_rows(profile, tree, shown.selection.where))
    except InputError:
        return ""  # the details say so
    return headline(summary) if summary is not None else ""


def _by_efficiency(shown: Projection) -> Projection:
    """The same in the colours of efficiency, if it asks for these; may read the file."""
    if shown.selection.colours != EFFICIENCY:
        return shown
    profile, tree = shown.profile, shown.view.tree
    if not profile.sized_operators:
        raise UsageError(f"--colours {EFFICIENCY}: {NO_SHAPES}")
    colours = efficiency_colours(profile, tree, shown.selection.where)
    return replace(shown, view=prepared(tree, colours))


def prepared(tree: StackTree, colouring: NodeColours | None = None) -> TreeView:
    """View ``tree``, with everything worked out that grows with it."""
    view = TreeView(tree, 0, colouring)
    view.prepare()
    return view
