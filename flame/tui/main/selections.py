"""Work out the selections that keys ask for, from the one that was asked for last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from flame.core.analysis.words.formats import terms_of
from flame.core.frame import COLOURS, EFFICIENCY
from flame.core.model.frames import Kind
from flame.core.model.metrics import metric_of
from flame.core.model.tree import ORDERS, TreeLayout
from flame.core.names.framework import joined
from flame.core.projection.filters import Filter, HideFramework, Moment, Steps
from flame.core.projection.named_levels import arrange, levels_called
from flame.core.projection.selection import Selection, with_moment
from flame.tui.main.actions import ShownScreen
from flame.tui.session.query import SelectedName
from flame.tui.session.session import Session
from flame.tui.shell.actions import Action, QuickFilter
from flame.tui.shell.command import Offer
from flame.tui.toolkit.text import printable
from flame.tui.widgets.chips import quick_filter

if TYPE_CHECKING:
    from flame.tui.dialogs.filters import FiltersDialog
    from flame.tui.dialogs.levels import LevelsChoice, LevelsDialog
    from flame.tui.dialogs.metrics import MetricDialog
    from flame.tui.dialogs.steps import StepsDialog

_CODE = ("python", "native", "stack")

Outcome = Sequence[Selection] | str
"""Selections of which the first that has anything is wanted, or a note; nothing where empty."""


# Filters


def filters_dialog(screen: ShownScreen) -> FiltersDialog:
    """Ask for filters, of the name that is selected if they are of names."""
    from flame.tui.dialogs.filters import FiltersDialog

    return FiltersDialog(screen.session.profile, screen.wanted.where, _selected(screen))


def steps_dialog(screen: ShownScreen) -> StepsDialog | str:
    """Ask for steps; a note where the trace has none."""
    if not len(screen.session.profile.iterations):
        return "no steps in this trace: none of the PyTorch profiler, no ranges such as `step 3`"
    from flame.tui.dialogs.steps import StepsDialog

    chosen = next((one for one in screen.wanted.where if isinstance(one, Steps)), None)
    return StepsDialog(screen.session.profile, chosen)


def choose_steps(screen: ShownScreen, steps: Steps) -> Outcome:
    """Show ``steps`` alone, all of them where it has no span."""
    if steps.spans:
        return [replace_filter(screen.wanted, steps)]
    others = tuple(one for one in screen.wanted.where if not isinstance(one, Steps))
    return [replace(screen.wanted, where=others)]


def add_quick_filter(screen: ShownScreen, kind: str) -> Outcome:
    """Add the `QuickFilter` called ``kind`` for the name that is selected, unless it is there."""
    wanted, selected = screen.wanted, _selected(screen)
    if selected.kind == Kind.ROOT:
        return "select a frame first: this is the root"
    filter_ = quick_filter(QuickFilter(kind), selected)
    return [] if filter_ in wanted.where else [replace(wanted, where=(*wanted.where, filter_))]


def _selected(screen: ShownScreen) -> SelectedName:
    tree, node = screen.view.tree, screen.view.cursor.node
    stars = screen.shown.labels.stars.get(int(tree.frame[node]), ())
    return SelectedName(tree.name(node), tree.kind(node), stars)


def replace_filter(wanted: Selection, filter_: Filter) -> Selection:
    """Add ``filter_`` in place of any of its kind."""
    others = [other for other in wanted.where if type(other) is not type(filter_)]
    return replace(wanted, where=(*others, filter_))


def remove_filter(screen: ShownScreen, place: int) -> Outcome:
    """Take the filter at ``place`` away."""
    filters = screen.wanted.where
    return [replace(screen.wanted, where=filters[:place] + filters[place + 1 :])]


def switch_framework(screen: ShownScreen) -> Outcome:
    """Hide the frames of frameworks, or show them again."""
    wanted, hidden = screen.wanted, HideFramework(joined(screen.config.framework))
    others = tuple(one for one in wanted.where if not isinstance(one, HideFramework))
    if len(others) < len(wanted.where):
        return [replace(wanted, where=others)]
    if not screen.config.framework:
        return "no frames count as those of frameworks: the configuration lists none"
    if screen.shown.recorded.isdisjoint(_CODE):
        return "no frames of Python or native code in this trace"
    return [replace(wanted, where=(*others, hidden))]


# Metric and levels


def change_metric(screen: ShownScreen, step: int) -> Outcome:
    """Show the next metric that has anything, with the levels last chosen for its table."""
    others = screen.session.others(screen.wanted, step)
    selections = [_with_own_levels(screen, selection) for selection in others]
    return selections or "no other metric in this trace"


def metric_dialog(screen: ShownScreen) -> MetricDialog:
    """Ask for a metric, beginning with the one on screen."""
    from flame.tui.dialogs.metrics import MetricDialog

    session = screen.session
    return MetricDialog(session.profile, session.metrics, screen.shown.metric.key)


def choose_metric(screen: ShownScreen, key: str) -> Outcome:
    """Show the metric called ``key``, with the levels last chosen for its table."""
    if key == (screen.wanted.metric or screen.session.usual_metric):
        return []
    return [_with_own_levels(screen, replace(screen.wanted, metric=key))]


def offered_metrics(session: Session) -> list[Offer]:
    """Offer each metric of the trace by its name."""
    from flame.tui.dialogs.metrics import about_metric

    return [
        Offer(f"Measure {printable(one.title)}", about_metric(one), Action.SHOW_METRIC(one.key))
        for one in session.profile.metrics
        if one.key in session.metrics
    ]


def offered_moments(session: Session) -> list[Offer]:
    """Offer the moments at which memory can be shown, where it is known who held it."""
    profile = session.profile
    if profile.memory_builder is None:
        return []
    # Only snapshots tell of requests that failed, and have worked them out already.
    memory = profile.memory if profile.resolved else None
    failed = memory is not None and any(one.out_of_memory for one in memory.devices)
    return [
        Offer(title, about, Action.SHOW_MOMENT(moment))
        for moment, (title, about) in _MOMENTS.items()
        if moment != "oom" or failed
    ]


_MOMENTS: dict[Moment, tuple[str, str]] = {
    "peak": ("Show memory at the peak", "who held it when most was in use"),
    "oom": ("Show memory when the last request failed", "who held it when memory ran out"),
    "end": ("Show memory at the end", "who still holds it"),
}
_OF_MOMENT: dict[Moment, tuple[str, Moment | None]] = {
    "peak": ("peak", None),
    "oom": ("peak", "oom"),
    "end": ("live", None),
}
"""The metric that shows each moment, and what is to be asked for, where it is not its own."""


def choose_moment(screen: ShownScreen, moment: Moment) -> Outcome:
    """Show who held memory at ``moment``."""
    metric, asked = _OF_MOMENT[moment]
    selection = with_moment(replace(screen.wanted, metric=metric), asked)
    return [] if selection == screen.wanted else [_with_own_levels(screen, selection)]


def _with_own_levels(screen: ShownScreen, selection: Selection) -> Selection:
    """``selection`` with the levels last chosen for the metric's table."""
    table = metric_of(selection.metric or "", screen.session.profile.metrics).table
    return replace(selection, levels=screen.projector.levels_of(table))


def levels_dialog(screen: ShownScreen) -> LevelsDialog:
    """Ask for levels, beginning with those on screen."""
    from flame.tui.dialogs.levels import LevelsChoice, LevelsDialog

    shown, profile, wanted = screen.shown, screen.session.profile, screen.wanted
    choice = LevelsChoice(shown.view.tree.levels, wanted.naming.fold, wanted.forward)
    usual, terms = _usual_levels(screen), terms_of(profile)
    is_snapshot = profile.resolved and profile.memory_builder is not None
    return LevelsDialog(choice, usual, shown.recorded, terms, profile.has_forward, is_snapshot)


def choose_levels(screen: ShownScreen, choice: LevelsChoice) -> Outcome:
    """Show the levels of ``choice``, as those that are usual where they are."""
    levels = None if choice.levels == _usual_levels(screen) else choice.levels
    naming = replace(screen.wanted.naming, fold=choice.fold)
    return [replace(screen.wanted, levels=levels, naming=naming, forward=choice.forward)]


def arrange_levels(screen: ShownScreen, name: str) -> Outcome:
    """Show the levels called ``name``."""
    from flame.tui.dialogs.levels import why_absent

    named = levels_called(name)
    if named.needs and screen.shown.recorded.isdisjoint(named.needs):
        return f"{name}: {why_absent(terms_of(screen.session.profile), *named.needs)}"
    return [arrange(screen.wanted, named)]


def switch_forward(screen: ShownScreen) -> Outcome:
    """Put backward passes below their forward operators, or back where they were launched."""
    if not screen.session.profile.has_forward:
        return "no links from backward to forward operators in this trace"
    return [replace(screen.wanted, forward=not screen.wanted.forward)]


def switch_level(screen: ShownScreen, level: str) -> Outcome:
    """Switch ``level`` on or off."""
    from flame.tui.dialogs.levels import toggled, why_absent

    levels = toggled(screen.wanted.levels or _usual_levels(screen), level)
    if level not in screen.shown.recorded:
        return why_absent(terms_of(screen.session.profile), level)
    return [replace(screen.wanted, levels=levels)] if levels else "the last level stays on"


def fold_numbers(screen: ShownScreen) -> Outcome:
    """Show names as one of which many siblings differ only in numbers, or all of them again."""
    naming = screen.wanted.naming
    if naming.numbers and not screen.shown.folds_numbers:
        return "no names here that differ only in numbers, or few"
    return [replace(screen.wanted, naming=replace(naming, numbers=not naming.numbers))]


def _usual_levels(screen: ShownScreen) -> tuple[str, ...]:
    """The levels that the metric on screen has where none are chosen."""
    return screen.session.usual_levels(screen.wanted, screen.shown.metric)


# Layout of the tree


def invert(screen: ShownScreen) -> Outcome:
    """Turn the tree upside down, or back."""
    return _lay_out(screen.wanted, inverted=not screen.wanted.layout.inverted)


def collapse(screen: ShownScreen) -> Outcome:
    """Collapse frames directly below themselves, or no longer."""
    return _lay_out(screen.wanted, collapsed=not screen.wanted.layout.collapsed)


def change_order(screen: ShownScreen, step: int) -> Outcome:
    """Sort what the view has of its own, or else siblings by the next of the orders."""
    note = screen.pane.sort(step)
    if note is not None:
        return note
    place = ORDERS.index(screen.wanted.layout.order) + step
    return _lay_out(screen.wanted, order=ORDERS[place % len(ORDERS)])


def _lay_out(wanted: Selection, **changes: object) -> Outcome:
    layout: TreeLayout = replace(wanted.layout, **changes)  # type: ignore[arg-type]
    return [replace(wanted, layout=layout)]


# Names and colours

_TURNED = ("short", "base", "demangled")
"""Names of kernels in the order in which a key turns them; from mangled names to the first."""


def change_kernel_names(screen: ShownScreen, step: int) -> Outcome:
    """Call kernels by the next kind of names."""
    naming = screen.wanted.naming
    here = _TURNED.index(naming.kernel_names) if naming.kernel_names in _TURNED else -step
    names = _TURNED[(here + step) % len(_TURNED)]
    return [replace(screen.wanted, naming=replace(naming, kernel_names=names))]


def change_colours(screen: ShownScreen) -> Outcome:
    """Colour by category of kernels, by efficiency where that is known, or by level again."""
    ring = (*COLOURS, EFFICIENCY) if screen.session.profile.sized_operators else COLOURS
    here = ring.index(screen.wanted.colours) if screen.wanted.colours in ring else -1
    return [replace(screen.wanted, colours=ring[(here + 1) % len(ring)])]
