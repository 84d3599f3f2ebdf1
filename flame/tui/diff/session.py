"""Hold two sides that have been loaded, and project what has changed between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from flame.core.analysis.node_activities import NodeActivities
from flame.core.compare.basis import BASES, Per
from flame.core.compare.colouring import Colouring
from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.levels import common_levels
from flame.core.compare.noise.beyond_noise import noise_marks
from flame.core.compare.sided_tree import sided
from flame.core.compare.sides import BASE, NEW, Sides
from flame.core.errors import NoMatchError, UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.metrics import Metric
from flame.core.projection.labels import Labels
from flame.core.projection.levels import recorded_levels
from flame.core.projection.number_folds import folds_numbers, labels_of
from flame.core.projection.selection import Selection
from flame.tui.diff.selection import DiffSelection
from flame.tui.session.carry import same_frame
from flame.tui.session.session import Projection, Session, metrics_of, prepared
from flame.tui.session.tree_view import TreeView


@dataclass(frozen=True, eq=False)
class DiffProjection(Projection):
    """Show the union of two sides; ``profile`` is that of the new one.

    Its frames are those of the union: none of their ids means anything to a profile.
    """

    comparison: Comparison = field(kw_only=True, repr=False)

    @property
    def chosen(self) -> DiffSelection:
        """What is selected."""
        assert isinstance(self.selection, DiffSelection)
        return self.selection

    @property
    def run_over_time(self) -> int:
        """The place of the run that is shown over time: the first of its side."""
        side = BASE if self.chosen.timeline == "base" else NEW
        return self.comparison.sides.side_of_run.index(side)

    def alone(self, at: int) -> Projection:
        """Return what is shown of the run at the place ``at``, without what it is compared to."""
        given = self.comparison
        run, tree = given.sides.runs[at], given.trees[at]
        return Projection(
            run.selection(given.selection),
            TreeView(tree),
            recorded_levels(run.profile, tree.metric),
            run.profile,
            folds_numbers(run.profile, given.selection.naming, tree),
        )

    @property
    def colouring(self) -> Colouring:
        """How the frames have changed."""
        assert isinstance(self.view.colouring, Colouring)
        return self.view.colouring

    @property
    def labels(self) -> Labels:
        return self._labels

    @property
    def exact(self) -> Labels:
        return self._labels

    @cached_property
    def _labels(self) -> Labels:
        """The names of the union's frames, of which each is shown as itself."""
        text = self.view.tree.text
        return Labels(text, np.arange(len(text), dtype=np.int32), dict(self._stars()))

    def _stars(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The parts of folded names, from the runs that fold them."""
        given, union = self.comparison, self.comparison.union
        for run, tree, node in zip(given.sides.runs, given.trees, union.node, strict=True):
            naming, table = given.selection.naming, run.profile.table(tree.metric)
            place = np.zeros(len(tree.frames), np.int32)
            place[tree.frame] = union.tree.frame[node]
            for frame, parts in labels_of(run.profile, naming, table).stars.items():
                if frame < len(place) and place[frame]:
                    yield int(place[frame]), parts

    def members(self) -> NodeActivities:
        raise TypeError("the union of two trees has no rows of its own")

    def frame_as_in(self, before: Projection, frame: int) -> int:
        return same_frame(before.view.tree, frame, self.view.tree)


@dataclass(frozen=True)
class DiffSession(Session):
    """Hold two ``sides``; ``profile`` is that of the new one, ``given`` the basis asked for."""

    sides: Sides = field(kw_only=True)
    given: Per = ""

    @cached_property
    def bases(self) -> tuple[Per, ...]:
        """The bases to choose from, the one in units of the user's last; some may be impossible."""
        usual = tuple(per for per in BASES if per != "rank" or self.sides.has_summary)
        return usual if self.given in ("", *usual) else (*usual, self.given)

    @property
    def is_sampled(self) -> bool:
        return any(run.profile.sampling is not None for run in self.sides.runs)

    @property
    def usual_metric(self) -> str:
        return self.sides.metric(None).key

    def usual_levels(self, selection: Selection, metric: Metric) -> tuple[str, ...]:
        return common_levels(self.sides, metric, replace(selection, levels=None))[0]

    def project(self, candidates: Iterable[Selection]) -> Projection:
        """Return the first of ``candidates`` that is possible and not empty."""
        refused: UsageError | None = None
        for selection in candidates:
            try:
                projection = super().project([selection])
                assert isinstance(projection, DiffProjection)
                projection.colouring.strength.any()  # one that was kept may have others by now
                return projection
            except NoMatchError:
                continue
            except UsageError as error:
                refused = refused or error
        raise refused or NoMatchError("nothing in either trace is left to show with that")

    def _recoloured(self, selection: Selection) -> Projection | None:
        """What is kept of the same comparison, drawn in another way."""
        chosen = _chosen(selection)
        for kept in self._kept.values():
            assert isinstance(kept, DiffProjection)
            if kept.chosen.compared == chosen.compared:
                return replace(kept, selection=chosen, view=_view(kept.comparison, chosen))
        return None

    def _projected(self, selection: Selection) -> Projection:
        chosen = _chosen(selection)
        comparison = compare(self.sides, *chosen.compared)
        runs, naming = comparison.sides.runs, comparison.selection.naming
        metric = comparison.union.tree.metric
        pairs = zip(runs, comparison.trees, strict=True)
        return DiffProjection(
            chosen,
            _view(comparison, chosen),
            frozenset().union(*(recorded_levels(run.profile, metric) for run in runs)),
            self.profile,
            any(folds_numbers(run.profile, naming, tree) for run, tree in pairs),
            comparison=comparison,
        )


def _chosen(selection: Selection) -> DiffSelection:
    assert isinstance(selection, DiffSelection)
    return selection


def _view(comparison: Comparison, chosen: DiffSelection) -> TreeView:
    tree = comparison.tree(chosen.width)
    colouring = Colouring(
        sided(comparison, tree),
        chosen.measured,
        chosen.all_changes,
        chosen.limits,
        noise_marks(comparison),
    )
    return prepared(tree, colouring)


def metrics_of_both(sides: Sides) -> tuple[str, ...]:
    """Return the metrics that all runs have, and by which any has something to show."""
    weighing = [metrics_of(run.profile) for run in sides.runs]
    known = [{metric.key for metric in run.profile.metrics} for run in sides.runs]
    return tuple(
        metric.key
        for metric in sides.new[0].profile.metrics
        if all(metric.key in keys for keys in known)
        and any(metric.key in keys for keys in weighing)
    )
