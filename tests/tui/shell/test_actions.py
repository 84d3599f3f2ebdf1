"""Actions by name: how they are spelled, and that screens without them are refused."""

from __future__ import annotations

import pytest
from textual.screen import Screen

from flame.tui.shell.actions import Action, Move, QuickFilter, check_actions


class OneAction(Screen[None]):
    def action_metric(self, step: int) -> None:
        raise NotImplementedError


def test_actions_are_spelled_as_textual_reads_them() -> None:
    assert Action.METRIC(-1) == "metric(-1)"
    assert Action.QUICK(QuickFilter.ONLY) == "quick('only')"
    assert Action.LEVEL("nvtx").replace('"', "'") == "level('nvtx')"
    assert Move.ACROSS(-1) == "move('across', -1)"
    assert Move.UP() == "move('up')"
    assert Action.FILTERS.click() == "screen.filters"
    assert Action.UNFILTER.click(2) == "screen.unfilter(2)"


def test_a_screen_with_a_method_for_each_action_is_accepted() -> None:
    check_actions(OneAction, [Action.METRIC(1)])


def test_an_action_that_a_screen_does_not_have_is_refused() -> None:
    with pytest.raises(AttributeError, match="action_undo"):
        check_actions(OneAction, [Action.UNDO])


@pytest.mark.parametrize("action", [Action.METRIC, Action.METRIC(1, 2)])
def test_an_action_with_other_arguments_is_refused(action: str) -> None:
    with pytest.raises(TypeError):
        check_actions(OneAction, [action])
