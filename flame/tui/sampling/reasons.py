"""Write the reasons of samples as lines: a bar for each, its share, and what it means."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.style import Style

from flame.core.columns import I8
from flame.core.model.stalls import stall_of
from flame.core.units import format_percent
from flame.tui.sampling.bars import bar, by_class, swatch
from flame.tui.toolkit.colours import StallClass, class_of
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut_start, printable

Counted = list[tuple[str, int]]
"""Reasons and their samples."""

_SHARE = 8
_BAR = 10
_BAR_FROM = 30


def counted(reasons: Sequence[str], samples: I8) -> Counted:
    """List the ``reasons`` that have samples, most first."""
    pairs = [(key, number) for key, number in zip(reasons, samples.tolist(), strict=True) if number]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def reason_lines(
    counts: Counted, palette: Palette, width: int, most: int = 0, meanings: bool = False
) -> list[Line]:
    """Write a line for each reason, of which the first ``most`` (0: all), the rest as one."""
    whole = sum(samples for _, samples in counts)
    shown = counts[:most] if most and len(counts) > most + 1 else counts
    lines: list[Line] = []
    for key, samples in shown:
        stall = stall_of(key)
        lines.append(_reason(key, printable(stall.title), samples, whole, palette, width))
        if meanings:
            lines += _meaning(stall.meaning, width)
    rest = whole - sum(samples for _, samples in shown)
    if rest:
        share = format_percent(rest, whole).rjust(_SHARE)
        text = f"{share} {'':{_bar_cells(width)}} {len(counts) - len(shown)} more"
        lines.append([Piece(cut_start(text, width), "dim")])
    return lines


def _bar_cells(width: int) -> int:
    return _BAR if width >= _BAR_FROM else 0


def _reason(key: str, title: str, samples: int, whole: int, palette: Palette, width: int) -> Line:
    cells = _bar_cells(width)
    sums = [samples if stall_class == class_of(key) else 0 for stall_class in StallClass]
    pieces = [
        Piece(segment.text, segment.style or "")
        for segment in bar(sums, whole, cells, palette, Style())
    ]
    share = format_percent(samples, whole).rjust(_SHARE)
    room = max(width - _SHARE - cells - 2, 0)
    return [Piece(f"{share} "), *pieces, Piece(cut_start(f" {title}", room))]


def _meaning(text: str, width: int) -> list[Line]:
    room = max(width - _SHARE - 1, 8)
    parts = textwrap.wrap(text, room, max_lines=2, placeholder=" …")
    return [[Piece(f"{'':{_SHARE}} {part}", "dim")] for part in parts]


def legend(reasons: Sequence[str], samples: I8, palette: Palette, width: int) -> list[Line]:
    """List the classes that have any samples, with their shares, on as many lines as they need."""
    sums = by_class(reasons, samples)
    lines: list[Line] = [[]]
    for stall_class in StallClass:
        if not sums[stall_class]:
            continue
        glyph, style = swatch(stall_class, palette)
        words = f" {stall_class.title} {format_percent(sums[stall_class], sum(sums))}  "
        if lines[-1] and line_width(lines[-1]) + len(words) + 1 > width + 2:
            lines.append([])
        lines[-1] += [Piece(glyph, style), Piece(words)]
    return lines if lines[0] else []
