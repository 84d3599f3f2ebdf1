"""What to show of a profile: levels, filters, metric, naming and arrangement together."""

from __future__ import annotations

from dataclasses import dataclass, field

from flame.core.model.profile import Profile
from flame.core.model.tree import Arrangement, StackTree
from flame.core.projection.filters import Filter
from flame.core.projection.labels import Naming
from flame.core.projection.project import project


@dataclass(frozen=True)
class Selection:
    """One view of a profile; None stands for the metric's or the profile's default."""

    levels: tuple[str, ...] | None = None
    where: tuple[Filter, ...] = ()
    metric: str | None = None
    naming: Naming = field(default_factory=Naming)
    arrangement: Arrangement = field(default_factory=Arrangement)

    def tree(self, profile: Profile) -> StackTree:
        """The stack tree of ``profile`` under this selection."""
        return project(profile, self.levels, self.where, self.metric, self.naming, self.arrangement)
