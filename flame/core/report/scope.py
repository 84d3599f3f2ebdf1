"""Say what a report is about: which activities, and which time of which GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from flame.core.analysis.node_activities import NodeActivities
from flame.core.analysis.utilization import Utilization, utilizations
from flame.core.columns import I8
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.project import project, shown_profile
from flame.core.projection.selection import Selection
from flame.core.report.phase_patterns import Phase
from flame.core.timeline.idle_parts import IdleParts, idle_parts


@dataclass(frozen=True, eq=False)
class Scope:
    """Hold a trace and the selection of it.

    Tables by name are of ``rows``, the activities that pass all filters. How busy a GPU was is of
    all that ran on it, in the time that ``gpus`` have: names and stacks choose nothing of that.
    ``phases`` are those that the user has named.
    """

    profile: Profile
    selection: Selection = field(default_factory=Selection)
    phases: tuple[Phase, ...] = ()

    @cached_property
    def tree(self) -> StackTree:
        """The GPU time that passes, as a tree. Raises NoMatchError where nothing does."""
        return project(self.profile, replace(self.selection, metric="gpu"))

    @cached_property
    def activities(self) -> NodeActivities:
        """What passes, by node of ``tree``."""
        shown = shown_profile(self.profile, self.selection)  # its groups are the tree's
        return NodeActivities.from_tree(shown, self.tree, self.selection.where)

    @property
    def rows(self) -> I8:
        """The activities that pass, i8[n] rows of `Profile.activities` by node."""
        return self.activities.rows

    @cached_property
    def gpus(self) -> tuple[Utilization, ...]:
        """The GPUs and their windows; none of stacks without times."""
        return utilizations(self.profile, self.selection.where)

    def idle(self, gpu: Utilization) -> IdleParts:
        """Get the idle time of a GPU by cause, of all the trace."""
        return next(each for each in idle_parts(self.profile) if each.device == gpu.device)

    def device(self, gpu: Utilization) -> dict[str, object]:
        """Name a GPU in JSON: its number and its file, null where they are not known."""
        if gpu.device < 0:
            return {"id": None, "source": None}
        device = self.profile.devices[gpu.device]
        return {"id": device.id, "source": device.source}
