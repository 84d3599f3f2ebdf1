"""Projections one after the other, the way back, and what is carried over."""

from __future__ import annotations

import queue
from dataclasses import replace
from pathlib import Path

import pytest
from textual.message import Message

from flame.core.errors import NoMatchError
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions, silent
from flame.core.projection.filters import HideFrames, ShowStacks
from flame.core.projection.selection import Selection
from flame.tui.session.projector import Projected, Projector, ReadyProjection
from flame.tui.session.query import Query
from flame.tui.session.session import open_session
from tests.support.waiting import PATIENCE

GEMM = Selection(where=(ShowStacks("gemm"),))


class Desk:
    """A projector and what it posts."""

    def __init__(self, path: Path) -> None:
        self.inbox: queue.Queue[Message] = queue.Queue()
        session, shown = open_session(Inputs((path,)), LoadOptions(), Selection(), silent)
        self.projector = Projector(session, shown, self.inbox.put)

    def take(self) -> object:
        message = self.inbox.get(timeout=PATIENCE)
        assert isinstance(message, Projected)
        return self.projector.take(message)

    def show(self, selection: Selection, query: Query | None = None) -> object:
        self.projector.ask([selection], query)
        return self.take()

    def back(self, step: int = -1) -> bool:
        if not self.projector.back(None, step):
            return False
        assert isinstance(self.take(), ReadyProjection)
        return True


@pytest.fixture
def desk(decode: Path) -> Desk:
    return Desk(decode)


def test_what_is_asked_for_is_shown_with_what_the_search_finds(desk: Desk) -> None:
    assert isinstance(desk.show(GEMM, Query("gemm")), ReadyProjection)
    shown = desk.projector.shown
    assert shown.selection == GEMM
    assert shown.view.tree.total[0] == 280_000
    assert shown.view.matches.result is not None and shown.view.matches.result.matches.nodes == 2
    assert not desk.projector.busy


def test_only_the_last_of_several_wishes_counts(desk: Desk) -> None:
    desk.projector.ask([GEMM], None)
    desk.projector.ask([Selection(metric="count")], None)
    outcomes = [desk.take(), desk.take()]
    assert sum(isinstance(outcome, ReadyProjection) for outcome in outcomes) == 1
    assert desk.projector.shown.selection.metric == "count"


def test_what_leaves_nothing_changes_nothing(desk: Desk) -> None:
    before = desk.projector.shown
    outcome = desk.show(Selection(where=(ShowStacks("no such frame"),)))
    assert isinstance(outcome, NoMatchError)
    assert desk.projector.shown is before
    assert desk.projector.wanted == before.selection
    assert not desk.back()


def test_undo_goes_back_through_all_selections_and_redo_forward(desk: Desk) -> None:
    wishes = [GEMM, replace(GEMM, metric="count"), Selection(levels=("kernel",))]
    for wish in wishes:
        desk.show(wish)
    for wish in [wishes[1], wishes[0], Selection()]:
        assert desk.back()
        assert desk.projector.shown.selection == wish
    assert not desk.back()
    for wish in wishes:
        assert desk.back(1)
        assert desk.projector.shown.selection == wish
    assert not desk.back(1)


def test_a_new_wish_forgets_what_could_be_redone(desk: Desk) -> None:
    desk.show(GEMM)
    desk.back()
    desk.show(Selection(metric="count"))
    assert not desk.back(1)
    assert desk.back() and desk.projector.shown.selection == Selection()


def test_undo_brings_the_zoom_of_before_a_new_wish_takes_the_zoom_along(desk: Desk) -> None:
    view = desk.projector.shown.view
    generate = view.tree.find(("cudaLaunchKernel", "generate"))
    assert generate
    view.zoom_to(view.viewport.zoom_of(generate))
    desk.show(GEMM)
    other = desk.projector.shown.view
    assert other.tree.name(other.viewport.zoom.node) == "generate"
    other.reset()
    desk.back()
    assert desk.projector.shown.view is view
    assert view.viewport.zoom.node == generate


def test_the_selected_frame_is_kept_by_path(desk: Desk) -> None:
    view = desk.projector.shown.view
    view.cursor.select(view.places(int(view.tree.frame[view.tree.find(("cudaLaunchKernel",))]))[0])
    desk.show(Selection(where=(HideFrames("^generate$"),)))
    other = desk.projector.shown.view
    assert other.tree.name(other.cursor.node) == "cudaLaunchKernel"
