"""Work out the selection that a key asks for, from the one that was asked for last."""

from __future__ import annotations

from dataclasses import replace

from flame.core.analysis.wording import terms_of
from flame.core.model.frames import Kind
from flame.core.model.metrics import metric_of
from flame.core.model.tree import ORDERS, Arrangement
from flame.core.projection.filters import Filter
from flame.core.projection.levels import default_levels
from flame.core.projection.selection import Selection
from flame.tui.dialogs.filters import FiltersDialog
from flame.tui.dialogs.levels import LevelsChoice, LevelsDialog, toggled, why_absent
from flame.tui.session.projector import Projector
from flame.tui.session.tree_view import TreeView
from flame.tui.shell.actions import QuickFilter
from flame.tui.widgets.chips import quick_filter

Outcome = Selection | str
"""A selection, or a note that says why there is no other."""


def filters_dialog(projector: Projector, view: TreeView) -> FiltersDialog:
    """Ask for filters, of the name that is selected in ``view`` if they are of names."""
    tree, node = view.tree, view.cursor.node
    profile, filters = projector.session.profile, projector.wanted.where
    return FiltersDialog(profile, filters, tree.name(node), tree.kind(node))


def levels_dialog(projector: Projector) -> LevelsDialog:
    """Ask for levels, beginning with those on screen."""
    shown, terms = projector.shown, terms_of(projector.session.profile)
    choice = LevelsChoice(shown.view.tree.levels, projector.wanted.naming.fold)
    return LevelsDialog(choice, _usual_levels(projector), shown.recorded, terms)


def _usual_levels(projector: Projector) -> tuple[str, ...]:
    """Return the levels that the metric on screen has where none are chosen."""
    session, wanted = projector.session, projector.wanted
    return default_levels(session.profile, projector.shown.metric, wanted.naming)


def with_level(projector: Projector, level: str) -> Outcome:
    """Switch ``level`` on or off."""
    levels = toggled(projector.wanted.levels or _usual_levels(projector), level)
    if level not in projector.shown.recorded:
        return why_absent(level)
    return replace(projector.wanted, levels=levels) if levels else "the last level stays on"


def with_levels(wanted: Selection, choice: LevelsChoice) -> Selection:
    """Show the levels of ``choice``."""
    return replace(wanted, levels=choice.levels, naming=replace(wanted.naming, fold=choice.fold))


def with_metric(projector: Projector, step: int) -> list[Selection]:
    """Return selections of the other metrics, the next one first; none where there is no other."""
    others = projector.session.others(projector.wanted, step)
    return [_with_own_levels(projector, selection) for selection in others]


def _with_own_levels(projector: Projector, selection: Selection) -> Selection:
    """``selection`` with the levels last chosen for the metric's table."""
    table = metric_of(selection.metric or "", projector.session.profile.metrics).table
    return replace(selection, levels=projector.levels_of(table))


def with_filter(wanted: Selection, filter_: Filter) -> Selection:
    """Add ``filter_`` in place of any of its kind."""
    others = [other for other in wanted.where if type(other) is not type(filter_)]
    return replace(wanted, where=(*others, filter_))


def without_filter(wanted: Selection, place: int) -> Selection:
    """Take the filter at ``place`` away."""
    return replace(wanted, where=wanted.where[:place] + wanted.where[place + 1 :])


def with_quick_filter(wanted: Selection, view: TreeView, kind: QuickFilter) -> Outcome | None:
    """Add a filter made of the name that is selected in ``view``; None if it is there."""
    tree, node = view.tree, view.cursor.node
    if tree.kind(node) == Kind.ROOT:
        return "select a frame first: this is the root"
    filter_ = quick_filter(kind, tree.name(node))
    return None if filter_ in wanted.where else replace(wanted, where=(*wanted.where, filter_))


def with_next_order(wanted: Selection, step: int) -> Selection:
    """Order siblings by the next of the orders."""
    place = ORDERS.index(wanted.arrangement.order) + step
    return with_arrangement(wanted, order=ORDERS[place % len(ORDERS)])


def with_arrangement(wanted: Selection, **changes: object) -> Selection:
    """Arrange the tree with ``changes`` to how it is arranged."""
    arrangement: Arrangement = replace(wanted.arrangement, **changes)  # type: ignore[arg-type]
    return replace(wanted, arrangement=arrangement)
