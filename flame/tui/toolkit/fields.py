"""Compose labelled values and progress bars."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat

from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import printable, wrap

LABEL = 12
"""Width of the column of labels."""


def fields(rows: Iterable[tuple[str, str]], width: int, *, prose: bool = False) -> list[Line]:
    """Label and value side by side; rows without a value are left out, long values wrapped.

    Values that are ``prose`` are, between words.
    """
    lines: list[Line] = []
    for label, value in rows:
        lines += labelled(label, wrap(printable(value), max(width - LABEL, 8), 4, prose=prose))
    return lines


def labelled(label: str, texts: Iterable[str]) -> list[Line]:
    """``texts`` one below the other, ``label`` beside the first."""
    labels = chain((label,), repeat(""))
    return [
        [Piece(f"{title:{LABEL}}", "dim"), Piece(text)]
        for title, text in zip(labels, texts, strict=False)
    ]


def progress_bar(done: int, expected: int, width: int) -> str:
    """Return a progress bar of ``width`` cells; an empty one where the end is unknown."""
    part = min(max(done / expected, 0.0), 1.0) if expected > 0 else 0.0
    filled = int(part * width)
    return "━" * filled + "┈" * (width - filled)
