"""Define what all views of the app share: they take the moves that keys ask for, and draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.message import Message

from flame.core.analysis.chains import frames_word
from flame.tui.shell.actions import Move

if TYPE_CHECKING:
    from flame.core.projection.filters import Filter
    from flame.options.state import ViewName
    from flame.tui.session.session import Projection
    from flame.tui.session.tree_view import TreeView

NOT_HERE = "not in this view"


class Pane(Vertical):
    """Show one view of a projection. The moves return a note for the status line, mostly empty.

    ``name_`` is how options and states spell the view, ``title`` how people do. All panes share
    ``shown.view``: its cursor is the selected frame, its search the search, in every view.
    """

    name_: ClassVar[ViewName]
    title: ClassVar[str] = ""
    shown: Projection

    class Changed(Message):
        """Something other than a key has changed what is shown: the screen has to follow.

        Without a ``note`` the one shown stays.
        """

        def __init__(self, note: str | None = None) -> None:
            super().__init__()
            self.note = note

    class Filtered(Message):
        """The user asks for one more filter, which replaces any of its kind."""

        def __init__(self, filter: Filter) -> None:
            super().__init__()
            self.filter = filter

    class StepsAsked(Message):
        """The user asks for the list of steps."""

    def __init__(self, shown: Projection) -> None:
        super().__init__(id=f"{self.name_}-pane")
        self.shown = shown

    @property
    def view(self) -> TreeView:
        """The view in which keys move, and whose selected frame they are about."""
        return self.shown.view

    @property
    def described(self) -> TreeView:
        """The view whose selected frame the details and the status line are about."""
        return self.view

    def show(self, shown: Projection) -> None:
        """Draw ``shown`` as it is now, as far as the screen differs; called after every key."""
        raise NotImplementedError

    def hint(self) -> str:
        """Return what the status line says of this view where it has nothing else to say."""
        return ""

    def enter_label(self) -> str:
        """Return what the footer says of enter where it is another thing than usual."""
        return ""

    def gap_label(self) -> str:
        """Return what the footer says of the key to the longest idle gap, likewise."""
        return ""

    @property
    def busy(self) -> bool:
        """Whether something that this view shows is being worked out."""
        return False

    @property
    def awaits_rows(self) -> bool:
        """Whether there are no rows yet, or those of something else, for a moment."""
        return False

    @property
    def section(self) -> tuple[str, int]:
        """The section of a report that is chosen, and the row in it; none in other views."""
        return "", -1

    def copied(self, what: str) -> tuple[str, str] | None:
        """Return what a view has of its own to be copied, and what it is called; else None."""
        return None

    # Moves; the default is for views in which a key means nothing

    def across(self, step: int) -> str:
        """Move left (-1) or right (+1)."""
        return NOT_HERE

    def up(self) -> str:
        """Move one up on the screen."""
        return NOT_HERE

    def down(self) -> str:
        """Move one down on the screen."""
        return NOT_HERE

    def home(self) -> str:
        """Move to the first of what this view shows."""
        return NOT_HERE

    def end(self) -> str:
        """Move to the last of what this view shows."""
        return NOT_HERE

    def fork(self) -> str:
        """Move down to where the stacks fork."""
        return NOT_HERE

    def page(self, step: int) -> str:
        """Move a screenful up (-1) or down (+1)."""
        return NOT_HERE

    def pan(self, step: int) -> str:
        """Move the zoomed part left (-1) or right (+1), keeping its width."""
        return NOT_HERE

    def enter(self) -> str:
        """Zoom to what is selected, or whatever this view means by enter."""
        return NOT_HERE

    def chain(self) -> str:
        """Open or close the chain of frames that is selected, or all chains."""
        return NOT_HERE

    def closer(self, step: int) -> str:
        """Zoom in (+1) or out (-1) by a fixed factor around what is selected."""
        return NOT_HERE

    def out(self) -> str:
        """Zoom out by one step."""
        return NOT_HERE

    def escape(self) -> str | None:
        """Leave the innermost thing this view is in, then zoom out whole; None if there is none."""
        return None

    def undo(self, forward: bool = False) -> bool:
        """Take back the last zoom, or the last such undo; False if there is none."""
        return False

    def match(self, step: int) -> str:
        """Select the next (+1) or previous (-1) match of the search."""
        return NOT_HERE

    def sort(self, step: int) -> str | None:
        """Choose another order of what is shown; None where the tree's own order is meant."""
        return None

    def mark(self) -> str:
        """Begin, or end, a selection of a stretch."""
        return NOT_HERE

    def kinds(self, step: int) -> str:
        """Show another kind of row."""
        return NOT_HERE

    def column(self, step: int) -> str:
        """Sort by the next (+1) or previous (-1) column."""
        return NOT_HERE

    def sort_by(self, number: int) -> str:
        """Sort by the column with this number, from 1 on; 0 is the last."""
        return NOT_HERE

    def parts(self, step: int) -> str:
        """Show columns of other parts: of GPUs, of files, or none."""
        return NOT_HERE

    def gap(self, step: int) -> str:
        """Select the next (+1) or previous (-1) stretch in which a GPU was idle."""
        return NOT_HERE

    def longest_gap(self, step: int) -> str:
        """Select the longest stretch in which a GPU was idle, then the next longest (+1)."""
        return NOT_HERE

    def thread_rows(self) -> str:
        """Show more, or less, of what a thread did."""
        return NOT_HERE


MOVES: Mapping[Move, Callable[[Pane, int], str]] = {
    Move.ACROSS: lambda pane, step: pane.across(step),
    Move.CHAIN: lambda pane, _: pane.chain(),
    Move.COLUMN: lambda pane, step: pane.column(step),
    Move.CLOSER: lambda pane, step: pane.closer(step),
    Move.DOWN: lambda pane, _: pane.down(),
    Move.END: lambda pane, _: pane.end(),
    Move.ENTER: lambda pane, _: pane.enter(),
    Move.FORK: lambda pane, _: pane.fork(),
    Move.GAP: lambda pane, step: pane.gap(step),
    Move.HOME: lambda pane, _: pane.home(),
    Move.KINDS: lambda pane, step: pane.kinds(step),
    Move.LONGEST_GAP: lambda pane, step: pane.longest_gap(step),
    Move.MARK: lambda pane, _: pane.mark(),
    Move.OUT: lambda pane, _: pane.out(),
    Move.PAGE: lambda pane, step: pane.page(step),
    Move.PAN: lambda pane, step: pane.pan(step),
    Move.PARTS: lambda pane, step: pane.parts(step),
    Move.SORT_BY: lambda pane, number: pane.sort_by(number),
    Move.THREAD_ROWS: lambda pane, _: pane.thread_rows(),
    Move.UP: lambda pane, _: pane.up(),
}
"""What a pane does for each move, by a step of -1 or +1 where the move has one."""

assert set(MOVES) == set(Move)


def switch_chains(view: TreeView, beside: Sequence[TreeView] = ()) -> str:
    """Open or close the chain that is selected in ``view``, or all; return a note of it.

    All chains are also those of the views ``beside`` it.
    """
    chain, everything = view.chain, not view.viewport.opened.everything
    if len(chain):
        view.switch_chain()
        closed = len(view.layout.joined.members(int(chain[0]))) > 1
        word = frames_word(len(chain))
        return f"{word} in one row, E opens it" if closed else f"{word}, a row each, E joins them"
    views = (view, *beside)
    if not any(len(one.layout.joined.chains) for one in views):
        return "no frames to join here: none hands nearly all it holds on"
    for one in views:
        one.switch_all(everything)
    return "all chains open, a row per frame" if everything else "all chains closed"
