"""What to show of a profile: levels, filters, metric, naming and arrangement together."""

from __future__ import annotations

from dataclasses import dataclass, field

from flame.core.arrangement import Arrangement
from flame.core.labels import Naming
from flame.core.profile import Profile
from flame.core.project import project
from flame.core.tree import StackTree
from flame.core.where import Filter


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
