"""Change what a screen shows of a trace: by keys, by clicks, and in dialogs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from flame.core.projection.filters import Filter, Steps
from flame.options.config import Config
from flame.options.preferences import Memory
from flame.options.state import AppState
from flame.tui.main import actions, selections
from flame.tui.main.projection_screen import ProjectionScreen
from flame.tui.session.tree_view import TreeView
from flame.tui.shell.command import Offer
from flame.tui.views.pane import Pane

if TYPE_CHECKING:
    from flame.tui.dialogs.levels import LevelsChoice

_P = ParamSpec("_P")


def applied(
    action: Callable[Concatenate[actions.ShownScreen, _P], selections.Outcome],
) -> Callable[Concatenate[SelectionScreen, _P], None]:
    """Make a method of ``action`` that shows what it comes to."""

    @wraps(action)
    def method(screen: SelectionScreen, /, *arguments: _P.args, **named: _P.kwargs) -> None:
        screen.apply(action(screen, *arguments, **named))

    return method


class SelectionScreen(ProjectionScreen):
    """Show a projection in ``pane``, and do what asks for another one."""

    config: Config
    keymap: Mapping[str, str]
    memory: Memory
    pane: Pane

    @property
    def view(self) -> TreeView:
        """What the details are about."""
        return self.pane.view

    def state(self) -> AppState:
        """Tell where the app is, as far as the selection does not say it."""
        raise NotImplementedError

    action_unfilter = applied(selections.remove_filter)
    action_quick = applied(selections.add_quick_filter)
    action_framework = applied(selections.switch_framework)
    action_metric = applied(selections.change_metric)
    action_show_metric = applied(selections.choose_metric)
    action_show_moment = applied(selections.choose_moment)
    action_level = applied(selections.switch_level)
    action_arrange = applied(selections.arrange_levels)
    action_forward = applied(selections.switch_forward)
    action_numbers = applied(selections.fold_numbers)
    action_invert = applied(selections.invert)
    action_collapse = applied(selections.collapse)
    action_sort = applied(selections.change_order)
    action_kernel_names = applied(selections.change_kernel_names)
    action_colours = applied(selections.change_colours)

    def action_filters(self) -> None:
        self.app.push_screen(selections.filters_dialog(self), self._set_filters)

    def _set_filters(self, where: tuple[Filter, ...] | None) -> None:
        if where is not None and where != self.wanted.where:
            self._project(replace(self.wanted, where=where))

    def action_metrics(self) -> None:
        self.app.push_screen(selections.metric_dialog(self), self._set_metric)

    def _set_metric(self, key: str | None) -> None:
        if key is not None:
            self.action_show_metric(key)

    @property
    def offered(self) -> dict[str, list[Offer]]:
        """What the palette has besides keys, by the command that it follows."""
        return {
            "metrics": selections.offered_metrics(self.session),
            "filters": selections.offered_moments(self.session),
        }

    def action_steps(self) -> None:
        dialog = selections.steps_dialog(self)
        if isinstance(dialog, str):
            self._show(dialog)
        else:
            self.app.push_screen(dialog, self._set_steps)

    def _set_steps(self, steps: Steps | None) -> None:
        if steps is not None:
            self.apply(selections.choose_steps(self, steps))

    def action_levels(self) -> None:
        self.app.push_screen(selections.levels_dialog(self), self._set_levels)

    def _set_levels(self, choice: LevelsChoice | None) -> None:
        if choice:
            self.apply(selections.choose_levels(self, choice))
