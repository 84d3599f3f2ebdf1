"""Draw a listing of instructions: only the rows in sight, however many there are."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from flame.core.columns import I8
from flame.core.compare.sides import BASE, SIDES
from flame.core.model.frames import Kind
from flame.core.names.cuda import split_instruction
from flame.core.units import format_count, format_percent, format_value
from flame.tui.sampling.bars import bar, by_class
from flame.tui.sampling.subject import Subject
from flame.tui.sass.listing import Listing, ListingRow, RowKind
from flame.tui.shell.actions import Action
from flame.tui.toolkit.lines import Line, Piece, RowView
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut_start, width_of

OFFSET = 8
NONE = "–"
_NUMBER = 11
_PERCENT = 9
_GAP = 2
_INDENT = 2
_BARS = ((160, 24), (100, 16), (72, 12), (0, 8))
"""Cells of the bars, by the width from which on there are so many."""
_PERCENT_FROM = 64
_OTHER_FROM = 76


class ShownNumber(Enum):
    """Choose what the column of numbers shows."""

    SAMPLES = "samples"
    VALUE = "value"
    SHARE = "share"


class ListingColumns(NamedTuple):
    """Lay out the columns before the text: the number, whether shares stand beside, the bar."""

    unit: ShownNumber
    percent: bool
    other: str
    bar: int

    @classmethod
    def of(cls, width: int, unit: ShownNumber, other: str = "") -> ListingColumns:
        """Return the columns that fit ``width`` cells; of the ``other`` side, if there is one."""
        bar = next(cells for least, cells in _BARS if width >= least)
        percent = width >= _PERCENT_FROM and unit != ShownNumber.SHARE
        return cls(unit, percent, other if width >= _OTHER_FROM else "", bar)

    @property
    def before(self) -> int:
        """Cells before the text."""
        return OFFSET + _NUMBER + _PERCENT * self.shares + 1 + self.bar + _GAP

    @property
    def shares(self) -> int:
        """How many columns of shares stand beside the number."""
        return self.percent + bool(self.other)

    def heads(self, metric: str) -> Line:
        """Return the line above them."""
        titles = {ShownNumber.SAMPLES: "samples", ShownNumber.VALUE: metric, ShownNumber.SHARE: "%"}
        number = cut_start(titles[self.unit], _NUMBER - 1).rjust(_NUMBER)
        text = f"{' offset':{OFFSET}}"
        return [
            Piece(text, "dim"),
            Piece(number, "key", Action.UNIT.click(1)),
            Piece(f"{'%':>{_PERCENT}}" if self.percent else "", "dim"),
            Piece(f"{f'{self.other} %':>{_PERCENT}}" if self.other else "", "dim"),
            Piece(f" {cut_start('stalls', self.bar):{self.bar}}{'':{_GAP}}instruction", "dim"),
        ]


class SassRows(RowView):
    """Draw the rows of a `Listing`; a click selects one."""

    class Chosen(Message):
        """Say that the user clicked ``row``."""

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._listing: Listing | None = None
        self._subject: Subject | None = None
        self._unit = ShownNumber.SAMPLES
        self._selected = -1
        self._matches: I8 = np.zeros(0, np.int64)
        self._drawn: tuple[object, ...] = ()
        self._revealed: tuple[Listing, int, Size] | None = None
        self._strips: dict[tuple[int, bool], Strip] = {}

    def show(
        self, subject: Subject, listing: Listing, selected: int, unit: ShownNumber, matches: I8
    ) -> None:
        """Draw ``listing``, its row ``selected`` as the selected one, and ``matches`` marked."""
        drawn = (listing, unit, id(matches), self.size)
        if drawn != self._drawn:
            self._drawn = drawn
            self._strips.clear()
        self._subject, self._listing, self._unit = subject, listing, unit
        self._selected, self._matches = selected, matches
        self.reach(len(listing))
        self._reveal()
        self.redraw()

    def on_resize(self) -> None:
        if self._subject is not None and self._listing is not None:
            drawn = (self._subject, self._listing, self._selected, self._unit, self._matches)
            self.show(*drawn)

    def forget(self) -> None:
        self._strips.clear()
        super().forget()

    def _reveal(self) -> None:
        """Scroll a newly selected row into sight.

        By a third of the page: what scrolls is all sent anew, and so it seldom does.
        """
        assert self._listing is not None
        wanted = (self._listing, self._selected, self.size)
        if wanted == self._revealed or not self.inner.height:
            return
        self._revealed = wanted
        height, top = self.inner.height, self.scroll_offset.y
        below = self._selected - (top + height - 1)
        if top <= self._selected and below <= 0:
            return
        third = height // 3
        near = 0 < below <= height
        to = self._selected - (height - 1 - third if near else third)
        to = min(max(to, 0), max(len(self._listing) - height, 0))
        self.scroll_to_row(to)

    # Drawing

    def strip(self, row: int) -> Strip:
        if self._listing is None or self._subject is None or row >= len(self._listing):
            return self.padded([], 0)
        key = (row, row == self._selected)
        if key not in self._strips:
            if len(self._strips) > 2_000:
                self._strips.clear()
            self._strips[key] = self._draw(self._listing, self._subject, *key)
        return self._strips[key]

    def _draw(self, listing: Listing, subject: Subject, number: int, selected: bool) -> Strip:
        base, palette, _ = self.look
        width = self.inner.width
        other = listing.other.side if listing.other else ""
        row, columns = listing[number], ListingColumns.of(width, self._unit, other)
        samples = listing.samples(row)
        style = palette.cursor if selected else base
        quiet = style if selected else base + palette.quiet
        segments = [
            Segment(self._numbers(listing, subject, row, columns), style if samples else quiet)
        ]
        segments += self._bar(listing, row, columns)
        room = max(width - columns.before, 0)
        indent = _INDENT if listing.indented and row.kind != RowKind.SOURCE else 0
        texts = _text(listing, row, palette, base if not selected else style, quiet)
        place = int(np.searchsorted(self._matches, number))
        if place < len(self._matches) and self._matches[place] == number:
            texts = [("".join(text for text, _ in texts), palette.match)]
        segments.append(Segment(" " * min(_GAP + indent, _GAP + room), style if selected else base))
        segments += _cut(texts, max(room - indent, 0), style if selected else base)
        return self.padded(segments, width)

    def _numbers(
        self, listing: Listing, subject: Subject, row: ListingRow, columns: ListingColumns
    ) -> str:
        """The columns before the bar."""
        samples = listing.samples(row)
        number = {
            ShownNumber.SAMPLES: lambda: format_count(samples),
            ShownNumber.VALUE: lambda: format_value(listing.value(row), subject.metric.unit),
            ShownNumber.SHARE: lambda: format_percent(samples, subject.samples),
        }[columns.unit]()
        percent = format_percent(samples, subject.samples) if columns.percent else ""
        if not samples:
            number = percent = ""
        offset = "" if row.kind == RowKind.SOURCE else f" 0x{self._offset(listing, row):04x}"
        text = f"{offset:{OFFSET}}{number:>{_NUMBER}}"
        text += f"{percent:>{_PERCENT}}" if columns.percent else ""
        return f"{text}{_other_share(listing, row):>{_PERCENT}} " if columns.other else f"{text} "

    @staticmethod
    def _offset(listing: Listing, row: ListingRow) -> int:
        return int(listing.version.code.offset[row.first])

    def _bar(self, listing: Listing, row: ListingRow, columns: ListingColumns) -> list[Segment]:
        """The bar of an instruction; a source line has none: it would be of another scale."""
        base, palette, _ = self.look
        if row.kind != RowKind.INSTRUCTION or not listing.samples(row):
            return [Segment(" " * columns.bar, base)]
        version = listing.version
        sums = by_class(version.reasons, version.by_reason(row.first, row.last))
        return bar(sums, version.most, columns.bar, palette, base)

    # Mouse

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y
        if self._listing is not None and row < len(self._listing):
            self.post_message(self.Chosen(row))


def _other_share(listing: Listing, row: ListingRow) -> str:
    """The share of the other side's samples; or that the instructions are new, or gone since."""
    samples, other = listing.other_samples(row), listing.other
    if other is None or not other.whole:
        return NONE
    if samples is None:
        return "new" if other.side == SIDES[BASE] else "gone"
    return format_percent(samples, other.whole) if samples else ""


def _text(
    listing: Listing, row: ListingRow, palette: Palette, base: Style, quiet: Style
) -> list[tuple[str, Style]]:
    """What ``row`` says, in colours: quiet where there are no samples."""
    text = listing.text(row)
    if row.kind == RowKind.SOURCE:
        place = listing.place(row) or text
        read = base if listing.samples(row) else quiet
        return [(place, base + palette.ink(Kind.PYTHON)), (text[len(place) :], read)]
    if row.kind == RowKind.FOLD or not listing.samples(row):
        return [(text, quiet)]
    # Few styles: each one costs 40 bytes over SSH, and a page has 50 rows.
    styles = (quiet, base + palette.ink(Kind.SASS), quiet)
    return list(zip(split_instruction(text), styles, strict=True))


def _cut(texts: list[tuple[str, Style]], room: int, base: Style) -> list[Segment]:
    """``texts`` in exactly ``room`` cells."""
    kept = cut_start("".join(text for text, _ in texts), room)
    segments, at = [], 0
    for text, style in texts:
        segments.append(Segment(kept[at : at + len(text)], style))
        at += len(text)
    return [*filter(None, segments), Segment(" " * (room - width_of(kept)), base)]
