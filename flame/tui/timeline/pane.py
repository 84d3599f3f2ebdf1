"""Show ranges and GPU work, or samples, over time, by thread and by stream."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.timer import Timer

from flame.core.analysis.words.formats import reworded, terms_of
from flame.core.projection.filters import At, Time
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.lanes import STATES, Track
from flame.core.units import format_count
from flame.tui.session.session import Projection
from flame.tui.timeline import header as timeline_head
from flame.tui.timeline.entering import entered
from flame.tui.timeline.gap_lines import GapLines, ToldGap
from flame.tui.timeline.layouts import DRAWN, Layouts, Ready
from flame.tui.timeline.rows import TimelineRows
from flame.tui.timeline.time_view import TimeView
from flame.tui.timeline.tree_link import item_of, node_of
from flame.tui.toolkit.background import Done, call_once
from flame.tui.toolkit.lines import Line, Lines, Piece
from flame.tui.toolkit.text import cut_start
from flame.tui.views.pane import NOT_HERE, Pane

_HEAD = 2
_NOT_IN_TREE = (Track.CALLS, Track.MEMORY, *STATES)
"""A call need not have launched anything; states are no frames."""
_LATER = "…"
_ONLY_SUMS = "a summary of ranks has sums only: open the file of a rank"
_NO_TIMES = "this file has no times: it says how much every stack weighs, but not when"


class TimelinePane(Pane):
    """Show what ran when; a brushed window becomes a filter of all views.

    A window that is ``wanted``, on the trace's clock, is brushed when the view is shown.
    """

    name_ = "timeline"
    title = "Timeline"
    DEFAULT_CSS: ClassVar[str] = """
    #timeline-head { height: 2; overflow-y: hidden; }
    #timeline-rows { height: 1fr; }
    #timeline-gap { height: auto; max-height: 7; display: none; overflow-y: hidden; }
    """

    def __init__(self, shown: Projection) -> None:
        super().__init__(shown)
        self._time: TimeView | None = None
        self._layouts = Layouts(self.post_message)
        self._followed: tuple[object, ...] = (None, ())
        self._timer: Timer | None = None
        self._away = True
        self._told = ToldGap()
        self.wanted: TimeWindow | None = None

    def compose(self) -> ComposeResult:
        yield Lines(self._head, id="timeline-head")
        yield TimelineRows(id="timeline-rows")
        yield Lines(self._gap_lines, id="timeline-gap")

    @property
    def rows(self) -> TimelineRows:
        """The rows below the axis."""
        return self.query_one(TimelineRows)

    @property
    def busy(self) -> bool:
        """Whether rows, or reasons, are being worked out."""
        return self._layouts.busy

    @property
    def awaits_rows(self) -> bool:
        return self._layouts.laying

    # Showing

    def show(self, shown: Projection) -> None:
        self._present(shown)

    def _present(self, shown: Projection) -> None:
        """Draw ``shown``, and work out what is not known of it."""
        self.shown = shown
        if not shown.profile.timed:
            pass
        elif self._layouts.precedes(shown):
            self._go_on(shown)
        elif not self._layouts.fits(shown):
            self._begin(shown)
        self._draw()

    def _go_on(self, shown: Projection) -> None:
        """Work out a later state, but none of what is being brushed."""
        if self.busy or (self._time is not None and self._time.viewport.brush is not None):
            return
        wait = self._layouts.wait
        if wait:
            self._timer = self._timer or call_once(self, wait, self._again)
            return
        self._begin(shown)

    def _again(self) -> None:
        self._timer = None
        if self.display:
            self._present(self.shown)

    def _begin(self, shown: Projection) -> None:
        if self._layouts.begin(shown):
            self._take()

    @on(Ready)
    def _ready(self, message: Ready) -> None:
        message.stop()
        if self._layouts.awaits(message.work):
            self._take()
            self.post_message(self.Changed())

    def _take(self) -> None:
        work = self._layouts.take()
        if work.unread:
            return
        laid_out = work.result()
        if self._time is None:
            self._time = TimeView(laid_out.timeline, laid_out.highlight)
        self._time.take(laid_out)
        self._ask_why()

    def _ask_why(self) -> None:
        """Have the reasons found where they are not known, once what is known is drawn.

        Not after the refresh: there is none as long as a dialog lies over the screen.
        """
        if self._layouts.want_reasons():
            call_once(self, DRAWN, self._layouts.find_reasons)

    @on(Done)
    def _explained(self, message: Done) -> None:
        reasons = self._layouts.take_reasons(message)
        if reasons.profile is self.shown.profile:
            self._begin(self.shown)
            self.post_message(self.Changed(reasons.unread or None))
        elif self._layouts.fits(self.shown):
            self._ask_why()
        else:  # The trace has grown meanwhile: its later state brings its own.
            self._present(self.shown)

    def _draw(self) -> None:
        if self.rows.display == bool(self._lack):  # to set it anew lays the screen out again
            self.rows.display = not self._lack
        if self._time is not None:
            if not self._layouts.laying:
                self._brush(self._time)
                self._follow(self._time)
            self.rows.show(self._time, self.shown.view.tree.frames, self.shown.exact.text)
        self.query_one("#timeline-head", Lines).update()
        gap = self.query_one("#timeline-gap", Lines)
        gap.display = self._gap is not None
        gap.update()

    def on_resize(self) -> None:
        """Draw the axis anew once the rows know how much room their labels leave it."""
        self.call_after_refresh(self._draw)

    @property
    def _nothing(self) -> str:
        """Why nothing moves."""
        return self._lack or _LATER

    @property
    def _lack(self) -> str:
        """Why there is no timeline; empty where there is one, or will be."""
        if self.shown.profile.ranks is not None:
            return _ONLY_SUMS
        if not self.shown.profile.timed:
            return _NO_TIMES
        taken = self._layouts.taken
        return taken.unread if taken else ""

    def _head(self, width: int, height: int) -> list[Line]:
        if self._lack or self._time is None:
            return [[], [Piece(cut_start(f" {self._lack}", width))]]
        folded = self._time.lanes.folded
        note = f" +{format_count(folded)} folded: V" if folded else ""
        note = " working …" if self._layouts.laying else note
        return timeline_head.head(self._time, self.rows.labels, note, width)

    def hint(self) -> str:
        if self._time is None:
            return "" if self._lack else "laying out the trace over time …"
        gap = self._gap
        if gap is not None and self._time.cursor.item < 0 and self._time.viewport.brush is None:
            return gap.summary()
        return timeline_head.hint(self._time, self.shown.exact.text)

    # The selected idle gap

    @property
    def _gap(self) -> GapLines | None:
        """What there is to say of the selected idle gap."""
        return self._told.of(self._time, self.shown)

    def _gap_lines(self, width: int, height: int) -> list[Line]:
        most = max((self.size.height - _HEAD) // 2, 1)  # half of the room is the rows' own
        return self._gap.lines(width)[:most] if self._gap else []

    # The selected frame, here and in the tree

    def on_hide(self) -> None:
        self._away = True

    def _brush(self, time: TimeView) -> None:
        """Brush the window that is wanted, whatever is selected in the tree."""
        window, self.wanted = self.wanted, None
        if window is not None:
            time.brush(window.moved(-time.timeline.origin))
            view = self.shown.view
            self._followed = (self.shown.selection, view.tree.names(view.cursor.node))

    def _follow(self, time: TimeView) -> None:
        """Select what has been selected in another view, or is so in another projection.

        Only the first moves the window: a filter set in this view leaves it where it is.
        """
        view = self.shown.view
        away, self._away = self._away, False
        place = (self.shown.selection, view.tree.names(view.cursor.node))
        before, self._followed = self._followed, place
        if before == place or not view.cursor.node:
            return
        item, drawn = time.cursor.item, (time.timeline, time.highlight)
        here = node_of(self.shown, *drawn, item) if item >= 0 else -1
        # In another projection, what is selected here may be below what is left of it there.
        same = before[0] == place[0]
        last = view.cursor.node + 1 if same else int(view.tree.end[view.cursor.node])
        if not view.cursor.node <= here < last:
            item = item_of(self.shown, *drawn, view.cursor.node, time.viewport.window)
            if away or same:
                time.cursor.select(item)
            else:
                time.cursor.select_in_sight(item)

    def _selected(self, note: str = "") -> str:
        """Select in the tree what is selected over time."""
        time, view = self._time, self.shown.view
        if time is None or time.cursor.item < 0:
            return note
        node = node_of(self.shown, time.timeline, time.highlight, time.cursor.item)
        if node < 0 and time.timeline.track[time.cursor.item] in _NOT_IN_TREE:
            return note
        if node < 0:
            return note or "not part of the tree: nothing in it passes"
        if not view.viewport.holds(node):
            view.reset()
        view.cursor.select(node)
        self._followed = (self.shown.selection, view.tree.names(node))
        return note

    # Moves

    def across(self, step: int) -> str:
        return self._selected(self._time.move_across(step)) if self._time else self._nothing

    def up(self) -> str:
        return self._selected(self._time.move_row(-1)) if self._time else self._nothing

    def down(self) -> str:
        return self._selected(self._time.move_row(1)) if self._time else self._nothing

    def home(self) -> str:
        return self._selected(self._time.cursor.move_home(False)) if self._time else self._nothing

    def end(self) -> str:
        return self._selected(self._time.cursor.move_home(True)) if self._time else self._nothing

    def page(self, step: int) -> str:
        rows = max(self.rows.size.height, 1)
        return self._selected(self._time.move_row(step * rows)) if self._time else self._nothing

    def pan(self, step: int) -> str:
        return self._time.viewport.pan(step) if self._time else self._nothing

    def closer(self, step: int) -> str:
        return self._time.closer(step) if self._time else self._nothing

    def out(self) -> str:
        return self._time.viewport.out() if self._time else self._nothing

    def enter(self) -> str:
        if self._time is None:
            return self._nothing
        if self._time.viewport.brush is None:
            return self._enter_selected(self._time)
        origin, window = self._time.timeline.origin, self._time.viewport.brush.window
        self._time.viewport.brush = None
        self.post_message(self.Filtered(Time(origin + window.low, origin + window.high)))
        return ""

    def _enter_selected(self, time: TimeView) -> str:
        """Filter by the selected step or moment, or zoom to what else is selected."""
        filters = entered(self.shown, time)
        for filter_ in filters:
            self.post_message(self.Filtered(filter_))
        is_moment = time.selects_memory and time.cursor.item >= 0
        return "" if filters or is_moment else time.zoom_in()

    def enter_label(self) -> str:
        filters = entered(self.shown, self._time)
        if not filters:
            return ""
        return "this moment" if isinstance(filters[-1], At) else "this step"

    def gap_label(self) -> str:
        return "peak" if self._time is not None and self._time.selects_memory else ""

    def escape(self) -> str | None:
        if self._time is None:
            return None
        if self._time.viewport.brush is not None:
            self._time.viewport.brush = None
            return ""
        if self._time.gaps.of is not None:
            self._time.gaps.clear()
            return ""
        return "" if self._time.viewport.reset() else None

    def undo(self, forward: bool = False) -> bool:
        return self._time is not None and self._time.undo(forward)

    def match(self, step: int) -> str:
        if self._layouts.laying:
            return self._nothing
        return self._selected(self._time.cursor.match(step)) if self._time else self._nothing

    def sort(self, step: int) -> str | None:
        return NOT_HERE

    def mark(self) -> str:
        return self._time.mark() if self._time else self._nothing

    def gap(self, step: int) -> str:
        return self._time.next_gap(step) if self._time else self._nothing

    def longest_gap(self, step: int) -> str:
        return self._time.longest_gap(step) if self._time else self._nothing

    def thread_rows(self) -> str:
        return self._switch_rows(self._time) if self._time else self._nothing

    def _switch_rows(self, time: TimeView) -> str:
        return reworded(time.switch_rows(), terms_of(self.shown.profile))

    # Mouse

    @on(TimelineRows.Switched)
    def _switched(self, message: TimelineRows.Switched) -> None:
        time = self._time
        if time is None or message.row >= len(time.lanes.rows):
            return
        time.lanes.lane = time.lanes.rows[message.row]
        self.post_message(self.Changed(self._switch_rows(time)))

    @on(TimelineRows.Pointed)
    def _pointed(self, message: TimelineRows.Pointed) -> None:
        time = self._time
        if time is None or message.row >= len(time.lanes.rows):
            return
        time.point(message.row, message.cell, message.gap)
        note = self._selected()
        if time.selects_memory:
            note = self._enter_selected(time) if message.cell >= 0 else note
        elif message.zoom and (time.cursor.item >= 0 or message.gap >= 0):
            note = time.zoom_in()
        self.post_message(self.Changed(note))

    @on(TimelineRows.Dragged)
    def _dragged(self, message: TimelineRows.Dragged) -> None:
        if self._time is not None:
            self._time.viewport.brush_cells(message.left, message.right)
            self.post_message(self.Changed(""))

    @on(TimelineRows.Wheeled)
    def _wheeled(self, message: TimelineRows.Wheeled) -> None:
        time = self._time
        if time is None:
            return
        if message.pan:
            note = time.viewport.pan(-message.step / 2)
        else:
            at = time.viewport.grid.time(message.cell + 0.5)
            note = time.viewport.zoom_at(at, 0.8**message.step)
        self.post_message(self.Changed(note))
