"""Show the report on what is shown: findings and sections beside the one that is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message

from flame.tui.report.lines import ChosenLines
from flame.tui.report.worker import FINDINGS, ReportWorker
from flame.tui.toolkit.lines import Line, Lines, Piece, SomeLines, palette_of
from flame.tui.toolkit.text import wrap
from flame.tui.views.pane import NOT_HERE, Pane

if TYPE_CHECKING:
    from flame.core.report.table import Place
    from flame.tui.report.content import ReportContent
    from flame.tui.report.export import ReportExportDialog
    from flame.tui.session.session import Projection, Session

_LIVE = (
    "The report is of what is complete: not of a recording that goes on. S saves what has been"
    " recorded; flame view, or flame report, tells of that."
)
_RANKS = (
    "The report is of activities, and a summary of ranks has only sums: flame ranks tells of it."
)
_BAR_LINES = 8
"""Lines of the view to each bar of a GPU: of many GPUs there are as many as leave room."""


class ReportPane(Pane):
    """Show a list of findings and sections, and at its side, or below, the one that is chosen.

    What keys move in is the list, or the rows of what is chosen. Everything that a report is made
    of is imported when the view is first shown.
    """

    name_ = "report"
    title = "Report"
    DEFAULT_CSS: ClassVar[str] = """
    #report-bars { height: 0; overflow-y: hidden; }
    #report-body { height: 1fr; layout: horizontal; }
    #report-list { width: 40%; max-width: 64; background: $surface; }
    #report-page { width: 1fr; padding: 0 0 0 1; }
    """

    class Jumped(Message):
        """The user asks for the place that a row leads to."""

        def __init__(self, place: Place) -> None:
            super().__init__()
            self.place = place

    def __init__(self, shown: Projection, worker: ReportWorker) -> None:
        super().__init__(shown)
        self._worker = worker
        self._content: ReportContent | None = None
        self._wanted = ("", -1)
        self._bar_lines = 0

    def compose(self) -> ComposeResult:
        yield Lines(self._bars, id="report-bars")
        with Container(id="report-body"):
            yield ChosenLines(self._list, id="report-list")
            yield ChosenLines(self._page, self._pinned, id="report-page")

    # Showing

    def show(self, shown: Projection) -> None:
        self.shown = shown
        if self._is_live:
            self._update()
            return
        content = self._of(shown)
        self._worker.ask(shown, first=content.chosen.section)
        content.take(self._worker)
        self._update()
        self._reveal(content)

    def _of(self, shown: Projection) -> ReportContent:
        """What is shown of the report, for this projection from now on."""
        if self._content is None:
            self._content = self._make_content()
        self._content.show(shown)
        return self._content

    def _make_content(self) -> ReportContent:
        """Begin with what is wanted; imports what the view is made of."""
        from flame.tui.report.content import ReportContent

        return ReportContent(*self._wanted)

    def on_hide(self) -> None:
        """Work on nothing that nobody looks at."""
        self._worker.stop()

    @property
    def _is_live(self) -> bool:
        """Whether this is a recording that goes on, or a summary of ranks."""
        return self.shown.profile.totals is not None

    def _update(self) -> None:
        bars = self.query_one("#report-bars", Lines)
        if (wanted := len(self._bars(max(bars.size.width, 1), 0))) != self._bar_lines:
            bars.styles.height = self._bar_lines = wanted
        for lines in (
            self._page_lines,
            self._list_lines,
            bars,
        ):  # the rows first: keys move in them
            lines.update()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        if self.display:
            self._update()
            if self._content is not None:
                self._reveal(self._content)

    def _reveal(self, content: ReportContent) -> None:
        """Scroll what is selected into sight."""
        self._list_lines.reveal(content.line_of_entry, content.subject)
        self._page_lines.reveal(content.line_of_row, (content.subject, content.chosen))

    @property
    def _list_lines(self) -> ChosenLines:
        return self.query_one("#report-list", ChosenLines)

    @property
    def _page_lines(self) -> ChosenLines:
        return self.query_one("#report-page", ChosenLines)

    # Drawing

    def _bars(self, width: int, height: int) -> list[Line]:
        if self._content is None:
            return []
        most = max(self.size.height // _BAR_LINES, 1)
        return self._content.bars(palette_of(self), width, most)

    def _list(self, width: int, height: int) -> list[Line]:
        return self._content.list_lines(width) if self._content else []

    def _page(self, width: int, height: int) -> SomeLines:
        if self._is_live:
            text = _LIVE if self.shown.profile.ranks is None else _RANKS
            return [[Piece(f" {line}")] for line in wrap(text, width - 1, height or 4)]
        if self._content is None:
            return []
        return self._content.page_for(width, palette_of(self))

    def _pinned(self, line: int) -> Line | None:
        return self._content.page.head_above(line) if self._content else None

    def hint(self) -> str:
        return self._content.hint() if self._content else ""

    def enter_label(self) -> str:
        return self._content.enter_label if self._content else ""

    # What is chosen

    @property
    def section(self) -> tuple[str, int]:
        """The section that is chosen and the row that is selected, -1 without one."""
        return self._content.state if self._content else self._wanted

    def choose(self, section: str, row: int = -1) -> None:
        """Choose a section, or of the findings the one at ``row``; then, or once it is known."""
        if self._content is None:
            self._wanted = (section, row)
        else:
            self._content.go_to(section, row)

    def choose_findings(self) -> None:
        """Choose the first finding."""
        self.choose(FINDINGS, 0)

    def copied(self, what: str) -> tuple[str, str] | None:
        """Return what is to be copied, and what it is called."""
        return self._content.copied(what) if self._content else None

    def export_dialog(self, session: Session) -> ReportExportDialog | None:
        """Ask how and where to export what is shown; None where nothing is yet."""
        content = self._content
        if content is None or content.section is None:
            return None
        from flame.tui.report.export import ReportExportDialog

        table = content.table
        return ReportExportDialog(
            session.inputs,
            session.options,
            self.shown.selection,
            content.section.section,
            table.table if table is not None else None,
            content.sections,
        )

    # Moves

    def _moved(self, step: int, to_end: bool = False) -> str:
        if self._content is None:
            return ""
        return self._content.move(step, to_end)

    def up(self) -> str:
        return self._moved(-1)

    def down(self) -> str:
        return self._moved(1)

    def home(self) -> str:
        return self._moved(-1, to_end=True)

    def end(self) -> str:
        return self._moved(1, to_end=True)

    def page(self, step: int) -> str:
        lines = self._page_lines if self._content and self._content.in_page else self._list_lines
        return self._moved(step * max(lines.inner.height - 2, 1))

    def across(self, step: int) -> str:
        if self._content is None:
            return ""
        text_alone = not self._content.page.rows
        if text_alone and self._page_lines.turn_page(step):
            return ""
        return self._content.turn(step > 0)

    def escape(self) -> str | None:
        if self._content is not None and self._content.in_page:
            return self.across(-1)
        return None if self.view.matches.result is not None else ""

    def enter(self) -> str:
        if self._content is None:
            return ""
        place = self._content.place
        if place is None:
            return self._content.enter()
        self.post_message(self.Jumped(place))
        return ""

    def match(self, step: int) -> str:
        return self._content.match(step) if self._content else NOT_HERE

    def sort(self, step: int) -> str | None:
        return self._content.sort_next(step) if self._content else ""

    def column(self, step: int) -> str:
        return self.sort(step) or ""

    def sort_by(self, number: int) -> str:
        return self._content.sort_by_number(number) if self._content else ""

    # Mouse

    @on(ChosenLines.Clicked)
    def _clicked(self, message: ChosenLines.Clicked) -> None:
        if self._content is None:
            return
        if message.lines is self._list_lines:
            hit = self._content.click_entry(message.line)
        else:
            hit = self._content.click_row(message.line)
        self.post_message(self.Changed(self.enter() if message.opens and hit else ""))

    @on(ChosenLines.Asked)
    def _asked(self, message: ChosenLines.Asked) -> None:
        if self._content is None:
            return
        note = ""
        if message.what == "sort":
            table, column = message.arguments
            note = self._content.sort_by(int(table), int(column))
        elif message.what == "turn":
            self._content.go_to(str(message.arguments[0]), -1)
        else:
            note = self.enter()
        self.post_message(self.Changed(note))
