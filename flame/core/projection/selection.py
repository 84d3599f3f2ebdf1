"""Say what to show of a profile: levels, filters, metric, naming and layout of the tree."""

from __future__ import annotations

from dataclasses import field, replace

from flame.core.errors import UsageError
from flame.core.frame import COLOURS, EFFICIENCY, IMBALANCE
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import TreeLayout
from flame.core.names.rename import Rename
from flame.core.nearest import did_you_mean
from flame.core.projection.filters import At, Filter, Moment
from flame.core.projection.labels import Naming
from flame.core.projection.levels import add_shapes, parse_levels


@dataclass(frozen=True)
class Selection:
    """Select what to show of a profile; None stands for the metric's or profile's default.

    ``colours`` say whether what ran on a GPU is drawn in the colour of its level or its category,
    or all frames by efficiency, and those of a summary of ranks by their imbalance.
    ``forward`` leaves backward passes below their forward operators, where these have been read
    (see `flame.core.options.LoadOptions`).
    """

    levels: tuple[str, ...] | None = None
    where: tuple[Filter, ...] = ()
    metric: str | None = None
    naming: Naming = field(default_factory=Naming)
    layout: TreeLayout = field(default_factory=TreeLayout)
    colours: str = "level"
    forward: bool = True

    def __post_init__(self) -> None:
        known = (*COLOURS, EFFICIENCY, IMBALANCE)
        if self.colours not in known:
            choices = ", ".join(known) + did_you_mean(self.colours, known)
            raise UsageError(f"--colours: unknown '{self.colours}': choose from {choices}")


def with_moment(selection: Selection, moment: Moment | int | None) -> Selection:
    """Show memory at ``moment``, or where it is None at that of its metric."""
    others = tuple(one for one in selection.where if not isinstance(one, At))
    return replace(selection, where=(*others, *([] if moment is None else [At(moment)])))


def moment_of(selection: Selection) -> Moment | int | None:
    """Return the moment at which memory is asked for; None: that of its metric."""
    return next((one.moment for one in selection.where if isinstance(one, At)), None)


def select(
    levels: str | tuple[str, ...] | None = None,
    where: tuple[Filter, ...] = (),
    metric: str | None = None,
    *,
    kernel_names: str = "base",
    shapes: bool = False,
    rename: tuple[Rename, ...] = (),
    fold: bool = False,
    fold_numbers: bool = False,
    layout: TreeLayout | None = None,
    forward: bool = True,
) -> Selection:
    """Make a `Selection` from values as users write them; ``levels`` may be ``"nvtx,kernel"``.

    Raises UsageError for unknown levels and unknown kernel names.
    """
    if isinstance(levels, str):
        levels = parse_levels(levels)
    if levels and shapes:
        levels = add_shapes(levels)
    naming = Naming(kernel_names, shapes, rename, fold, fold_numbers)
    how = layout or TreeLayout()
    return Selection(levels, where, metric, naming, how, forward=forward)
