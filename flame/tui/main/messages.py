"""Word what the main screen says of a trace: a greeting, or why there is nothing to show."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.analysis.words.formats import reworded, terms_of
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.named_levels import explain_missing_levels
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import printable
from flame.tui.widgets.pages import warning_lines


class Greeting(NamedTuple):
    """Hold a note in a tone, and the key that says more."""

    note: str
    tone: str
    more: str


def greeting(profile: Profile, tree: StackTree, misfit: str = "") -> Greeting | None:
    """Say what is wrong with the trace, or that there is more to read of it.

    ``misfit`` says what of the levels that are remembered is.
    """
    warnings = profile.warnings
    if lack := misfit or explain_missing_levels(profile, tree.metric, tree.levels):
        return Greeting(reworded(lack, terms_of(profile)), "warning", "L: levels")
    if warnings:
        more = f"w: all {len(warnings)} notes" if len(warnings) > 1 else "w: notes"
        return Greeting(printable(warnings[0]), "warning", more)
    return None


def empty_lines(profile: Profile, metric: Metric, width: int) -> list[Line]:
    """Say why there is nothing to show."""
    text = "Nothing to show: the trace holds no GPU activity, no range and no call."
    if profile.resolved:
        text = "Nothing to show: the file holds no stack that weighs anything."
    elif metric.table != "host" or profile.gpu_time:
        text = f"Nothing to show: the {metric.title} is zero everywhere. m: another metric."
    return [[Piece(text, "strong")], [], *warning_lines(profile, width)]
