"""Projections are kept for a while, so that going back to them is immediate."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.errors import NoMatchError
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions, silent
from flame.core.projection.filters import ShowStacks
from flame.core.projection.selection import Selection
from flame.tui.session import session
from flame.tui.session.session import Session, open_session


@pytest.fixture
def opened(decode: Path) -> Session:
    return open_session(Inputs((decode,)), LoadOptions(), Selection(), silent)[0]


def test_a_selection_shown_again_is_not_worked_out_again(opened: Session) -> None:
    first = opened.project([Selection(metric="count")])
    assert opened.project([Selection(metric="count")]) is first


def test_those_longest_unused_are_forgotten_when_there_are_too_many(
    opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (opened.project([Selection(metric=key)]) for key in ("count", "queue"))
    monkeypatch.setattr(session, "_KEPT_NODES", len(first.view.tree) + len(second.view.tree))
    opened.project([Selection(metric="count")])
    assert opened.project([Selection(metric="launch")]).metric.key == "launch"
    assert opened.project([Selection(metric="count")]) is first
    assert opened.project([Selection(metric="queue")]) is not second


def test_the_first_selection_that_has_anything_is_shown(opened: Session) -> None:
    nothing = Selection(where=(ShowStacks("no such frame"),))
    assert opened.project([nothing, Selection(metric="count")]).metric.key == "count"
    with pytest.raises(NoMatchError, match="nothing in this trace is left to show"):
        opened.project([nothing])


def test_the_activities_below_a_node_are_worked_out_once(opened: Session) -> None:
    shown = opened.project([Selection()])
    members = shown.members()
    assert members is shown.members()
    assert len(members.below(0)) == len(opened.profile.activities) == 66
