"""Show a sandwich: callers of one frame above it, callees below, over all its places."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.css.scalar import Scalar

from flame.core.projection.selection import Selection
from flame.tui.session.carry import LiveBookmark, carry, select_frame
from flame.tui.session.query import SearchResult
from flame.tui.session.session import Projection
from flame.tui.session.tree_view import TreeView
from flame.tui.toolkit.back_stack import BackStack
from flame.tui.toolkit.background import Done, in_background
from flame.tui.views.icicle import Icicle
from flame.tui.views.pane import NOT_HERE, Pane, switch_chains
from flame.tui.views.sandwich_halves import ReadyHalves, SandwichHalves, SandwichState
from flame.tui.views.sandwich_subject import SandwichSubject, SubjectLine

AT_ONCE = 100_000
"""Tree nodes up to which a sandwich takes a few milliseconds."""

_NONE = -1


class SandwichPane(Pane):
    """Show callers above the subject and callees below; keys move in one of the two halves."""

    name_ = "sandwich"
    title = "Sandwich"

    def __init__(self, shown: Projection) -> None:
        super().__init__(shown)
        self._busy = False
        self._frame = _NONE
        self._asked: int | None = None
        self._left = True
        self._projected: Projection | None = None
        self._halves: SandwichHalves | None = None
        self._last: SandwichHalves | None = None
        self._live = (LiveBookmark(), LiveBookmark())
        self._above = False
        self._marked: SandwichHalves | None = None
        self._found: SearchResult | None = None
        self._ticket = 0
        self._trails: dict[Selection, BackStack[SandwichState]] = {}
        self._trail = BackStack[SandwichState]()

    def compose(self) -> ComposeResult:
        view = self.shown.view
        yield Icicle(view, id="callers", upwards=True, rootless=True)
        yield SubjectLine(id="subject")
        yield Icicle(view, id="callees", rootless=True)

    @property
    def view(self) -> TreeView:
        """The half that is moved in; the projection's own where there is none."""
        if self._halves is None:
            return self.shown.view
        return self._halves.callers if self._above else self._halves.callees

    @property
    def busy(self) -> bool:
        return self._busy

    @property
    def awaits_rows(self) -> bool:
        return self._busy

    # The subject

    def subject(self, frame: int) -> None:
        """Show the sandwich of ``frame`` from the next `show` on."""
        self._asked = frame

    def on_hide(self) -> None:
        self._left = True

    def show(self, shown: Projection) -> None:
        self.shown = shown
        before = self._projected
        if before is not None and shown.follows(before) and self._asked is None and not self._left:
            self._go_on()
        else:
            self._projected = shown
            self._follow(before)
        self._left, self._asked = False, None
        self._draw()

    def _follow(self, before: Projection | None) -> None:
        """Have the subject that was asked for, or else the one that was there, if it was."""
        view, changed = self.shown.view, self.shown is not before
        if changed:
            self._trail = self._trails.setdefault(self.shown.selection, BackStack())
        wanted = self._asked
        if wanted is None and self._left:
            wanted = int(view.tree.frame[view.cursor.node])
        if wanted is not None and wanted != self._frame:
            if not changed:
                self._remember(self._moment())
            self._begin(SandwichState(wanted))
        elif changed:
            self._begin(SandwichState(self._renamed(before)), self._halves)

    def _go_on(self) -> None:
        """Show a later state of the sandwich, unless one is being worked out."""
        if not self._busy:
            self._projected = self.shown
            self._begin(SandwichState(self._frame), goes_on=True)

    def _renamed(self, before: Projection | None) -> int:
        """The subject in a projection after ``before``, which may show other frames as one."""
        if before is None or self._frame == _NONE:
            return _NONE
        return self.shown.frame_as_in(before, self._frame)

    def _begin(
        self, goal: SandwichState, like: SandwichHalves | None = None, goes_on: bool = False
    ) -> None:
        """Work out the sandwich at ``goal``, with the same selected and zoomed as in ``like``.

        One that ``goes_on`` is a later state of the one that is shown.
        """
        self._frame, self._ticket = goal.frame, self._ticket + 1
        view = self.shown.view
        tree, opened = view.tree, view.viewport.opened.everything
        self._busy = bool(len(self.shown.view.places(goal.frame)))

        def work() -> ReadyHalves:
            halves = SandwichHalves.of(view, goal.frame, opened)
            for old, new in zip(like or (), halves, strict=False):
                carry(old, new)
            return ReadyHalves(halves, goal, goes_on)

        if not goes_on:
            select_frame(self.shown.view, goal.frame)
        if not self._busy:
            self._halves = None
        elif len(tree) <= (AT_ONCE // 10 if goes_on else AT_ONCE):
            self._take(work())
        else:
            in_background(work, self._ticket, self.post_message)

    @on(Done)
    def _done(self, message: Done) -> None:
        result = message.result()
        if message.ticket == self._ticket and isinstance(result, ReadyHalves):
            self._take(result)
            self._draw()
            self.post_message(self.Changed())

    def _take(self, ready: ReadyHalves) -> None:
        if ready.goes_on:
            for keeper, old, new in zip(self._live, self._last or (), ready.halves, strict=False):
                keeper.carry(old, new)
        self._busy, self._halves, self._last = False, ready.halves, ready.halves
        self._zoom_to(ready.goal)
        self._above = self._above and ready.halves.callers.cursor.node > 0

    def _moment(self) -> SandwichState:
        if self._halves is None:
            return SandwichState(self._frame)
        states = (half.viewport.anchored(half.viewport.state) for half in self._halves)
        return SandwichState(self._frame, *states)

    def _zoom_to(self, moment: SandwichState) -> None:
        """Zoom and open the halves as they were."""
        for half, state in zip(self._halves or (), (moment.callers, moment.callees), strict=False):
            if state is not None:
                half.show(state)

    # Undoing

    def _remember(self, before: SandwichState) -> None:
        if before.frame != _NONE:
            self._trail.leave(before)

    def _change(self, zoom: Callable[[], object]) -> object:
        """Do ``zoom``, in a way that can be undone."""
        before = self._moment()
        result = zoom()
        if self._moment() != before:
            self._remember(before)
        self._settle()
        return result

    def undo(self, forward: bool = False) -> bool:
        moment = self._trail.go(1 if forward else -1, self._moment())
        if moment is None:
            return False
        if moment.frame != self._frame:
            self._begin(moment)
        else:
            self._zoom_to(moment)
        self._settle()
        return True

    # Moves

    def _settle(self) -> None:
        """Among the callers the subject is not selected, but the widest one of them."""
        if self._above and not self.view.cursor.node:
            self.view.cursor.move_down()
            self._above = self.view.cursor.node > 0

    def across(self, step: int) -> str:
        self.view.cursor.move_across(step)
        return ""

    def up(self) -> str:
        if self._above:
            self.view.cursor.move_down()
        elif self.view.cursor.at_top:
            return self._enter_callers()
        else:
            self.view.cursor.move_up()
        return ""

    def _enter_callers(self) -> str:
        if self._halves is None:
            return ""
        self._above = True
        self.view.cursor.move_to_top()
        self._settle()
        return "" if self._above else "nothing above it"

    def down(self) -> str:
        if not self._above:
            self.view.cursor.move_down()
            return ""
        if self.view.cursor.at_top or self.view.cursor.row == 1:
            return self.home()
        self.view.cursor.move_up()
        return ""

    def home(self) -> str:
        self._above = False
        if self._halves is not None:
            self.view.cursor.move_to_top()
        return ""

    def end(self) -> str:
        if self._halves is not None:
            self.view.cursor.move_to_leaf()
        return ""

    def fork(self) -> str:
        if self._halves is not None:
            self.view.cursor.move_to_fork()
        return ""

    def page(self, step: int) -> str:
        icicle = self.query_one("#callers" if self._above else "#callees", Icicle)
        icicle.scroll_to(y=icicle.scroll_offset.y + step * icicle.size.height, animate=False)
        return ""

    def enter(self) -> str:
        if self._halves is not None and self.view.cursor.node:
            self._change(self.view.zoom_in)
        return ""

    def chain(self) -> str:
        if self._halves is None:
            return NOT_HERE
        other = self._halves[1 if self.view is self._halves[0] else 0]
        return str(self._change(lambda: switch_chains(self.view, [other])))

    def out(self) -> str:
        if self._halves is not None:
            self._change(self.view.zoom_out)
        return ""

    def pan(self, step: int) -> str:
        moved = self._halves is not None and self._change(lambda: self.view.pan(step))
        return "" if moved else "nothing beyond"

    def escape(self) -> str | None:
        """Zoom both halves out, once no search is left; the other views keep their zoom."""
        if self.shown.view.matches.result is not None:
            return None
        if self._halves is not None:
            self._change(self._halves.reset)
        return ""

    def match(self, step: int) -> str:
        if self._halves is None:
            return "" if self.view.next_match(step) else "no match"
        before = self.view.cursor.node
        moved = self.view.next_match(step)
        if not moved or (self.view.cursor.node - before) * step <= 0:
            moved = self._match_beyond(step) or moved
        return "" if moved else "no match in this sandwich"

    def _match_beyond(self, step: int) -> bool:
        """Go on to the first or last match of the other half; stay where there is none."""
        self._above = not self._above
        other, kept = self.view, self.view.cursor.node
        other.cursor.select(-1 if step > 0 else len(other.tree))
        if other.next_match(step):
            return True
        other.cursor.select(kept)
        self._above = not self._above
        return False

    # Drawing

    def on_resize(self) -> None:
        self._share()

    def _draw(self) -> None:
        self._mark()
        for name, half in zip(("#callers", "#callees"), self._halves or (None, None), strict=True):
            icicle = self.query_one(name, Icicle)
            icicle.display = half is not None
            if half is not None:
                icicle.show(half, selecting=half is self.view)
        self._share()
        self.query_one(SubjectLine).show(self._subject())

    def _mark(self) -> None:
        found = self.shown.view.matches.result
        if self._halves is None or (self._marked is self._halves and self._found is found):
            return
        self._marked, self._found = self._halves, found
        self._halves.mark(self.shown.view.tree, found)

    def _share(self) -> None:
        """Share the height out: as much as the callers need, but half where that is too much."""
        if self._halves is None:
            return
        room = max(self.size.height - 1, 0)
        above, below = (len(half.layout.joined.rows) - 1 for half in self._halves)
        height = above if above + below <= room else min(max(room // 2, room - below), above)
        callers = self.query_one("#callers")
        if callers.styles.height != Scalar.from_number(height):
            callers.styles.height = height

    def _subject(self) -> SandwichSubject | None:
        if self._frame == _NONE:
            return None
        selected = not self._above and not self.view.cursor.node
        return SandwichSubject(self.shown.view, self._frame, self._halves, self._busy, selected)

    # Mouse

    @on(Icicle.Chosen)
    def _chosen(self, message: Icicle.Chosen) -> None:
        self._above = message.icicle.id == "callers"
        self.post_message(self.Changed(self.enter() if message.zoom else ""))

    @on(Icicle.Panned)
    def _panned(self, message: Icicle.Panned) -> None:
        self._above = message.icicle.id == "callers"
        self.post_message(self.Changed(self.pan(message.step)))

    @on(Icicle.Hovered)
    def _hovered(self, message: Icicle.Hovered) -> None:
        """Only nodes of the half that is moved in mean anything to the screen."""
        if (message.icicle.id == "callers") != self._above:
            message.stop()

    @on(SubjectLine.Clicked)
    def _subject_clicked(self) -> None:
        if self._halves is not None:
            self._change(self._halves.callees.reset)
        self.post_message(self.Changed(self.home()))
