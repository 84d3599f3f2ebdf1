"""Hold the stacks of a projection with their weights, and which groups they are of."""

from __future__ import annotations

from dataclasses import replace

from flame.core.columns import Column
from flame.core.lazy_dataclass import dataclass
from flame.core.projection.level_columns import StackColumns
from flame.core.projection.weights import Weights


@dataclass(frozen=True, eq=False)
class WeightedStacks:
    """Hold stacks, each with a part of the weight of a unit: groups that share all parts.

    ``columns.rows`` number the stacks, of which each has its weights and its ``unit``, a number.
    ``unit_of_group`` is that of each group, -1 for those that are not shown. ``split``: units have
    several stacks. ``share`` is which part of a collective each stack is, as in `GroupParts`.
    """

    columns: StackColumns
    weights: Weights
    unit: Column
    unit_of_group: Column
    split: bool = False
    share: Column | None = None

    def drop_columns(self) -> WeightedStacks:
        """Keep which group is which unit, without stacks and weights: they are large."""
        nothing = self.unit[:0]
        return replace(self, columns=StackColumns(nothing, ()), weights=Weights(nothing, nothing))
