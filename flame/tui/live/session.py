"""Hold what has been recorded up to one moment: nothing to show is no error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flame.core.errors import NoMatchError
from flame.core.lazy_dataclass import dataclass
from flame.core.live.window import ALL, LiveWindow
from flame.core.model.profile import Profile
from flame.core.projection.levels import recorded_levels
from flame.core.projection.project import empty_tree
from flame.core.projection.selection import Selection
from flame.tui.session.session import Projection, Session, project
from flame.tui.session.tree_view import TreeView


@dataclass(frozen=True)
class LiveSession(Session):
    """Hold one window of a recording; ``usual`` is the metric of selections that name none."""

    window: LiveWindow = ALL
    usual: str = "gpu"

    @property
    def usual_metric(self) -> str:
        return self.usual

    @property
    def bare(self) -> bool:
        """Whether nothing at all is in the window."""
        return not has_anything(self.profile)

    def project(self, candidates: Iterable[Selection]) -> Projection:
        """Project as for a trace; of a bare window show the first of ``candidates``, empty."""
        candidates = list(candidates)
        try:
            return super().project(candidates)
        except NoMatchError:
            if self.bare:
                return self.latest(candidates[0])
            raise

    def latest(self, selection: Selection) -> Projection:
        """Return what ``selection`` shows, which may be nothing at the moment."""
        try:
            return self._projected(selection)
        except NoMatchError:
            view = TreeView(empty_tree(self.profile, self._named(selection)))
            view.prepare()
            recorded = recorded_levels(self.profile, view.tree.metric)
            return Projection(selection, view, recorded, self.profile)

    def _projected(self, selection: Selection) -> Projection:
        return replace(project(self.profile, self._named(selection)), selection=selection)

    def _named(self, selection: Selection) -> Selection:
        return selection if selection.metric else replace(selection, metric=self.usual)


def has_anything(profile: Profile) -> bool:
    """Tell whether anything ran or was called or open in ``profile``."""
    tables = {metric.table: metric for metric in profile.metrics}
    return any(profile.totals_by_group(metric)[1].any() for metric in tables.values())
