"""Show the help over the screen: to be scrolled, jumped through by section, and searched."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from flame.core.analysis.words.formats import Terms
from flame.tui.session.glossary import WORDS, words_of
from flame.tui.toolkit.dialog.entry import TextEntry
from flame.tui.toolkit.dialog.page import Page, indented
from flame.tui.toolkit.lines import Line, Lines, Piece, side_by_side

_WORD = 19
_TWO_COLUMNS = 100
_GAP = 2
_HINT = "tab next section · w words · / find · esc closes"


def word_lines(terms: Terms, width: int) -> list[Line]:
    """Explain every word on the screens, section by section; in two columns if they fit."""
    columns = 2 if width >= _TWO_COLUMNS else 1
    room = (width - _GAP * (columns - 1)) // columns
    lines: list[Line] = []
    for title, entries in words_of(terms):
        rows = [_explained(*entry, room) for entry in entries]
        half = -(-len(rows) // columns)
        left, right = (list(chain(*part)) for part in (rows[:half], rows[half:]))
        both = side_by_side(left, right, room + _GAP) if right else left
        lines += [[Piece(title, "strong")], *both, []]
    return lines


def _explained(word: str, meaning: str, width: int) -> list[Line]:
    return indented(f"  {word} ".ljust(_WORD), "key", meaning, width)


class HelpPage(Page):
    """Show the lines that ``source`` composes for a width, from where ``start`` stands first."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "section(1)"),
        Binding("shift+tab", "section(-1)"),
        Binding("w", "words"),
        Binding("slash", "find"),
        Binding("n", "match(1)"),
        Binding("N", "match(-1)"),
        Binding("home,g", "to_line(0)"),
        Binding("end,G", "to_line(-1)"),
        Binding("escape", "close"),
    ]

    def __init__(self, source: Callable[[int], list[Line]], start: str = "") -> None:
        super().__init__(self._marked, wide=True)
        self._composed = source
        self._start = start
        self._place = 0
        self._found = -1
        self._origin = 0

    def compose(self) -> ComposeResult:
        yield from super().compose()
        entry = TextEntry(id="find")
        entry.placeholder = _HINT
        yield entry

    def on_mount(self) -> None:
        if self._start:
            self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self._go_to(self._start)

    def _marked(self, width: int) -> list[Line]:
        """The lines, of which the one that was found stands out."""
        lines = self._composed(width)
        if 0 <= self._found < len(lines):
            lines[self._found] = [piece._replace(tone="accent") for piece in lines[self._found]]
        return lines

    # Where there is what

    @property
    def _page(self) -> Lines:
        return self.query_one("#page", Lines)

    @property
    def _lines(self) -> list[Line]:
        return self._composed(max(self._page.inner.width, 1))

    @property
    def _texts(self) -> list[str]:
        return ["".join(piece.text for piece in line) for line in self._lines]

    def _matches(self) -> list[int]:
        """The lines that have a word which begins as was typed."""
        wanted = self.query_one(TextEntry).value
        begins = re.compile(rf"(?<!\w){re.escape(wanted)}", re.IGNORECASE)
        texts = enumerate(self._texts)
        return [place for place, text in texts if wanted and begins.search(text)]

    # Going there

    @property
    def _here(self) -> int:
        """The line that was gone to last, or the first in sight where one has scrolled since."""
        top, last = int(self._page.scroll_offset.y), int(self._page.max_scroll_y)
        return self._place if min(self._place, last) == top else top

    def _go(self, places: list[int], step: int, here: int) -> None:
        """Scroll to the next of ``places`` after ``here``, or the one before; round and round."""
        if step > 0:
            ahead = [place for place in places if place > here] or places
        else:
            ahead = [place for place in places[::-1] if place < here] or places[::-1]
        if ahead:
            self.action_to_line(ahead[0])

    def _go_to(self, start: str) -> None:
        """Scroll to the first line that begins with ``start``."""
        if not self.query("#page"):
            return  # the second of two quick clicks on a word, before the page is there
        texts = enumerate(self._texts)
        self._go([place for place, text in texts if text.lstrip().startswith(start)], 1, -1)

    def action_to_line(self, place: int) -> None:
        """Scroll so far that the line at ``place`` is the first; -1 is the last."""
        self._place = place if place >= 0 else len(self._lines) - 1
        self._page.scroll_to(y=self._place, animate=False, immediate=True)

    def action_section(self, step: int) -> None:
        """Go to the next title, or the previous one."""
        titled = (any(piece.tone == "strong" for piece in line) for line in self._lines)
        self._go([place for place, title in enumerate(titled) if title], step, self._here)

    def action_words(self) -> None:
        """Go to the first section of the words."""
        self._go_to(WORDS)

    # Finding

    def action_find(self) -> None:
        """Type what to look for, from here on."""
        self._origin = self._here
        self.set_focus(self.query_one(TextEntry))

    @on(Input.Changed, "#find")
    def _typed(self, event: Input.Changed) -> None:
        if event.value:
            self.action_to_line(self._origin)
        self._show(1, self._origin - 1)

    @on(Input.Submitted, "#find")
    def _entered(self) -> None:
        self.set_focus(None)

    def action_match(self, step: int) -> None:
        """Go to the next line that has what was typed, or the previous one."""
        self._show(step, self._here)

    def _show(self, step: int, here: int) -> None:
        places, entry = self._matches(), self.query_one(TextEntry)
        entry.set_class(bool(entry.value) and not places, "-nothing")
        self._go(places, step, here)
        self._found = self._place if places else -1
        self._page.update()

    def action_close(self) -> None:
        """Leave what was typed, then the page."""
        entry = self.query_one(TextEntry)
        if entry.value or entry.has_focus:
            entry.clear()
            self.set_focus(None)
        else:
            self.dismiss(None)
