"""Escape what a widget draws, whoever has forgotten to."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from flame.tui.toolkit.text import safe_cells


class Escaping(LineFilter):
    """Draw nothing that a terminal would obey, reorder or draw without width.

    Names are made printable, and measured, where they are put into words. All that is drawn passes
    here besides, Textual's own widgets too.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all(text.isprintable() for text, _, _ in segments):
            return segments
        return [
            Segment(text if control else safe_cells(text), style, control)
            for text, style, control in segments
        ]
