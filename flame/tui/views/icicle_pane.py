"""Show the icicle, root on top, under an overview of where the zoomed part lies."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.message import Message

from flame.core.model.frames import Kind
from flame.tui.session.session import Projection
from flame.tui.views.icicle import Icicle
from flame.tui.views.overview import Overview
from flame.tui.views.pane import Pane, switch_chains


class IciclePane(Pane):
    """Show the projected tree, and move in it."""

    name_ = "icicle"
    title = "Icicle"

    class Opened(Message):
        """The user asks for the instructions around the selected one."""

    def compose(self) -> ComposeResult:
        yield Overview(self.view, id="overview")
        yield Icicle(self.view, id="icicle")

    def show(self, shown: Projection) -> None:
        self.shown = shown
        self.query_one(Icicle).show(self.view)
        self.query_one(Overview).show(self.view)

    # Moves

    def across(self, step: int) -> str:
        self.view.cursor.move_across(step)
        return ""

    def up(self) -> str:
        top = self.view.cursor.at_top and self.view.viewport.zoom.node != 0
        self.view.cursor.move_up()
        return "u zooms out" if top else ""

    def down(self) -> str:
        self.view.cursor.move_down()
        return ""

    def home(self) -> str:
        self.view.cursor.move_to_top()
        return ""

    def end(self) -> str:
        self.view.cursor.move_to_leaf()
        return ""

    def fork(self) -> str:
        self.view.cursor.move_to_fork()
        return ""

    def page(self, step: int) -> str:
        icicle = self.query_one(Icicle)
        icicle.scroll_to(y=icicle.scroll_offset.y + step * icicle.size.height, animate=False)
        return ""

    def pan(self, step: int) -> str:
        return "" if self.view.pan(step) else "nothing beyond"

    def enter(self) -> str:
        if self._opens():
            self.post_message(self.Opened())
        else:
            self.view.zoom_in()
        return ""

    def _opens(self) -> bool:
        """Whether what is selected is of one instruction: wider it would say no more."""
        view, tree = self.view, self.view.tree
        item = view.viewport.item_of(view.cursor.node)
        if item is None or item.frames > 1:
            return False
        kind, above = (
            tree.kind(view.cursor.node),
            tree.kind(max(int(tree.parent[view.cursor.node]), 0)),
        )
        return kind == Kind.SASS or (kind == Kind.STALL and above == Kind.SASS)

    def chain(self) -> str:
        return switch_chains(self.view)

    def closer(self, step: int) -> str:
        self.view.closer(step)
        return ""

    def out(self) -> str:
        self.view.zoom_out()
        return ""

    def undo(self, forward: bool = False) -> bool:
        return self.view.undo(forward)

    def match(self, step: int) -> str:
        return "" if self.view.next_match(step) else "no match in the zoomed part"

    # Mouse

    @on(Icicle.Chosen)
    def _chosen(self, message: Icicle.Chosen) -> None:
        self.post_message(self.Changed(self.enter() if message.zoom else ""))

    @on(Icicle.Panned)
    def _panned(self, message: Icicle.Panned) -> None:
        self.post_message(self.Changed(self.pan(message.step)))

    @on(Overview.Moved)
    def _moved(self) -> None:
        self.post_message(self.Changed(""))
