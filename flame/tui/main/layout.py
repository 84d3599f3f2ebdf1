"""What the main screen shows: the views, the details, and the lines around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

from flame.core.analysis.wording import terms_of
from flame.core.model.tree import Order
from flame.core.projection.selection import Selection
from flame.options.config import Config
from flame.tui.details.collector import Collector
from flame.tui.details.pane import details
from flame.tui.session.finder import TreeFinder
from flame.tui.session.projector import Projector
from flame.tui.session.session import Projection, Session
from flame.tui.session.tree_view import TreeView
from flame.tui.shell.actions import Action
from flame.tui.shell.commands import Command, bindings, footer_of
from flame.tui.timeline.pane import TimelinePane
from flame.tui.toolkit.lines import Line, Lines, Piece, palette_of
from flame.tui.toolkit.scroll_pane import ScrollPane, with_more
from flame.tui.toolkit.text import cut, cut_start, width_of
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.pane import Pane
from flame.tui.views.sandwich_pane import SandwichPane
from flame.tui.views.top_pane import TopPane
from flame.tui.widgets import header
from flame.tui.widgets.chips import chips
from flame.tui.widgets.pages import warning_lines
from flame.tui.widgets.search_box import SearchBox, SearchHistory, searches_path

PANES: tuple[type[Pane], ...] = (IciclePane, SandwichPane, TopPane, TimelinePane)


class Face(Screen[None]):
    """The main screen without what its keys do; ``USUAL_ORDER`` is that of siblings at first."""

    USUAL_ORDER: ClassVar[Order] = "weight"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]
    # Instance variables of Screen, whose types ClassVar would contradict.
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (15, "-short"), (22, "-tall")]  # noqa: RUF012

    # As Screen has it, but for the repaint of all cells whenever the search box is entered or left.
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    def __init__(
        self, session: Session, shown: Projection, config: Config, commands: Sequence[Command]
    ) -> None:
        super().__init__()
        self.config = config
        self.commands = commands
        self.projector = Projector(session, shown, self.post_message)
        self.finder = TreeFinder(self.post_message)
        self.collector = Collector(self.post_message)
        self.panes: tuple[Pane, ...] = tuple(kind(shown) for kind in PANES)
        self.pane = self.panes[0]
        self._note: Line = []
        self._hover = -1
        self._detailed: tuple[object, ...] = ()
        self.set_class(not config.details, "-no-details")

    @property
    def session(self) -> Session:
        """What has been loaded, or recorded up to the moment that is shown."""
        return self.projector.session

    @property
    def shown(self) -> Projection:
        """The projection on screen."""
        return self.projector.shown

    @property
    def wanted(self) -> Selection:
        """What was last asked for."""
        return self.projector.wanted

    @property
    def view(self) -> TreeView:
        """What the details are about."""
        return self.pane.view

    @property
    def pane_name(self) -> str:
        """How options and states spell the view that is shown."""
        return self.pane.name_

    @property
    def busy(self) -> bool:
        """Whether something that was asked for is being worked out."""
        return self.projector.busy or self.finder.busy or self.pane.busy

    # Composition

    def compose(self) -> ComposeResult:
        yield Lines(self._header, id="header")
        with Horizontal(id="place"):
            yield Lines(self._tabs, id="tabs")
            yield Lines(self._crumbs, id="crumbs")
        yield Lines(self._chips, id="chips")
        with Container(id="body"):
            with Container(id="views"):
                yield from self.panes
            yield ScrollPane(self._details, id="details")
            yield Lines(self._empty, id="empty")
        with Horizontal(id="bottom"):
            yield SearchBox(id="search", history=SearchHistory(searches_path()))
            yield Lines(self._status, id="status")
        yield Lines(self._keys, id="keys")
        yield Lines(self._too_small, id="small")

    def _header(self, width: int, height: int) -> list[Line]:
        palette, order = palette_of(self), self.USUAL_ORDER
        session, shown = self.session, self.shown
        trace, tree = (session.inputs.title, session.profile), shown.view.tree
        return [header.header(*trace, shown.selection, tree, palette, width, order)]

    def _tabs(self, width: int, height: int) -> list[Line]:
        titles: dict[str, str] = {pane.name_: pane.title for pane in self.panes}
        return [header.tabs(titles, self.pane.name_, width)]

    def _crumbs(self, width: int, height: int) -> list[Line]:
        return [header.breadcrumb(self.shown.view, width)]

    def _chips(self, width: int, height: int) -> list[Line]:
        return [chips(self.wanted.where, self.session.profile, width)]

    def _details(self, width: int, height: int) -> list[Line]:
        own = self.view is self.shown.view
        facts = self.collector.ask(self.shown, self.view)
        terms = terms_of(self.session.profile)
        lines = details(self.view, palette_of(self), width, facts, clicks=own, terms=terms)
        return with_more(lines, width, height)

    def _empty(self, width: int, height: int) -> list[Line]:
        metric = self.shown.metric
        text = "Nothing to show: the trace holds no GPU activity, no range and no call."
        if self.session.profile.resolved:
            text = "Nothing to show: the file holds no stack that weighs anything."
        elif not self._bare:
            text = f"Nothing to show: the {metric.title} is zero everywhere. m: another metric."
        return [[Piece(text, "strong")], [], *warning_lines(self.session.profile, width)]

    @property
    def _bare(self) -> bool:
        return self.shown.metric.table == "host" and not self.session.profile.gpu_time

    def _status(self, width: int, height: int) -> list[Line]:
        if self._hover >= 0:
            return [header.frame_status(self.view, self._hover, width)]
        if self._note:
            return [_shortened(self._note, width)]
        if self.shown.view.matches.result is None and self.pane.hint():
            return [[Piece(cut_start(f" {self.pane.hint()}", width))]]
        return [header.search_status(self.view, width)]

    def _keys(self, width: int, height: int) -> list[Line]:
        keys = footer_of(self.commands, self.pane.name_)
        if self.session.profile.sampling is None:
            keys = [key for key in keys if key.action != Action.SASS]
        return [header.footer(keys, width)]

    def _too_small(self, width: int, height: int) -> list[Line]:
        text = f"flame needs 60 × 15 cells, here are {self.size.width} × {self.size.height}"
        return [[Piece(cut_start(text, width), "warning")]]

    # Showing

    def _show(self, note: str = "", tone: str = "dim", more: str = "") -> None:
        """Bring the screen up to date, with ``note`` in the status line until the next key.

        Where ``more`` (what to do about it) follows, it is the end of the note that is cut.
        """
        self._note = [Piece(f" {note}", tone)] if note else []
        if more:
            self._note.append(Piece(f"  {more}", "key"))
        self._follow()

    def _follow(self) -> None:
        """Bring the screen up to date, whatever the status line says."""
        self._hover = -1
        self.pane.show(self.shown)
        self._begin_details()
        for name in ("#crumbs", "#details", "#status"):
            self.query_one(name, Lines).update()

    def _begin_details(self) -> None:
        """Show the details of another frame from their beginning."""
        frame = (self.shown.selection, self.pane, self.view.tree.names(self.view.cursor.node))
        if frame != self._detailed:
            self._detailed = frame
            self.query_one(ScrollPane).scroll_to(y=0, animate=False)

    def _take(self, note: str = "") -> None:
        """Show a projection that has just arrived."""
        self.set_class(self.shown.empty, "-empty")
        self.set_class(bool(self.shown.selection.where), "-filtered")
        self._show(note)
        for name in ("#header", "#chips", "#empty"):
            self.query_one(name, Lines).update()

    def _turn_to(self, pane: Pane) -> None:
        self.pane = pane
        for one in self.panes:
            one.display = one is pane
        for name in ("#tabs", "#keys"):
            self.query_one(name, Lines).update()


def _shortened(note: Line, width: int) -> Line:
    """``note`` in ``width`` cells: what follows its first piece stays whole."""
    first, *rest = note
    if not rest:
        return [first._replace(text=cut(first.text, width))]
    room = width - sum(width_of(piece.text) for piece in rest)
    return [first._replace(text=cut_start(first.text, max(room, 0))), *rest]
