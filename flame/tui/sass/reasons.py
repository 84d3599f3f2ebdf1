"""The reasons of samples as lines: a bar for each, its share, and what it means."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.style import Style

from flame.core.columns import I8
from flame.core.model.metrics import STALLS
from flame.core.model.stalls import stall_of
from flame.core.units import format_count, format_percent, format_value
from flame.tui.details.blocks import fields
from flame.tui.sampling.bars import bar, by_class, swatch
from flame.tui.sampling.subject import Subject
from flame.tui.sass.listing import Listing, Row, RowKind
from flame.tui.toolkit.lines import Line, Piece, line_width, side_by_side
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.stall_colours import StallClass, class_of
from flame.tui.toolkit.text import cut_start, printable, wrap

Counted = list[tuple[str, int]]
"""Reasons and their samples."""

_SHARE = 8
_BAR = 10
_BAR_FROM = 30
_TEXT_LINES = 4
_FEW = 4
_BESIDE = 70
"""From this width on the kernel's reasons stand beside those of the instruction."""


def counted(reasons: Sequence[str], samples: I8) -> Counted:
    """The ``reasons`` that have samples, most first."""
    pairs = [(key, number) for key, number in zip(reasons, samples.tolist(), strict=True) if number]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def reason_lines(
    known: Counted, palette: Palette, width: int, most: int = 0, meanings: bool = False
) -> list[Line]:
    """A line for each reason, of which the first ``most`` (0: all), the rest as one."""
    whole = sum(samples for _, samples in known)
    shown = known[:most] if most and len(known) > most + 1 else known
    lines: list[Line] = []
    for key, samples in shown:
        stall = stall_of(key)
        lines.append(_reason(key, printable(stall.title), samples, whole, palette, width))
        if meanings:
            lines += _meaning(stall.meaning, width)
    rest = whole - sum(samples for _, samples in shown)
    if rest:
        share = format_percent(rest, whole).rjust(_SHARE)
        text = f"{share} {'':{_bar_cells(width)}} {len(known) - len(shown)} more"
        lines.append([Piece(cut_start(text, width), "dim")])
    return lines


def _bar_cells(width: int) -> int:
    return _BAR if width >= _BAR_FROM else 0


def _reason(key: str, title: str, samples: int, whole: int, palette: Palette, width: int) -> Line:
    cells = _bar_cells(width)
    sums = [samples if one == class_of(key) else 0 for one in StallClass]
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
    """The classes that have any samples, with their shares, on as many lines as they need."""
    sums = by_class(reasons, samples)
    lines: list[Line] = [[]]
    for one in StallClass:
        if not sums[one]:
            continue
        glyph, style = swatch(one, palette)
        words = f" {one.title} {format_percent(sums[one], sum(sums))}  "
        if lines[-1] and line_width(lines[-1]) + len(words) + 1 > width + 2:
            lines.append([])
        lines[-1] += [Piece(glyph, style), Piece(words)]
    return lines if lines[0] else []


# The pane beside the listing


def pane(subject: Subject, listing: Listing, row: Row, palette: Palette, width: int) -> list[Line]:
    """What is known of ``row``, and of the whole kernel."""
    if width < _BESIDE:
        return [
            *_of_row(subject, listing, row, palette, width),
            [],
            *_of_kernel(subject, listing, palette, width),
        ]
    half = (width - 2) // 2
    left = _of_row(subject, listing, row, palette, half, short=True)
    return side_by_side(left, _of_kernel(subject, listing, palette, half), half + 2)


def _of_row(
    subject: Subject,
    listing: Listing,
    row: Row,
    palette: Palette,
    width: int,
    short: bool = False,
) -> list[Line]:
    """The instruction, what it weighs, and its reasons: those first where there is little room."""
    text = listing.source(row) if row.kind == RowKind.SOURCE else listing.text(row)
    head = wrap(text or listing.text(row), width, 1 if short else _TEXT_LINES)
    version = listing.version
    known = counted(version.reasons, version.by_reason(row.first, row.last))
    reasons = reason_lines(known, palette, width, _FEW if short else 0, meanings=not short)
    rows = fields(_numbers(subject, listing, row), width)
    lines = [*reasons, *rows] if short else [*rows, *reasons]
    return [*([Piece(part, "strong")] for part in head), *lines]


def _numbers(subject: Subject, listing: Listing, row: Row) -> list[tuple[str, str]]:
    """Where ``row`` stands, and what it weighs."""
    version, samples = listing.version, listing.samples(row)
    share = format_percent(samples, subject.samples)
    metric = subject.metric
    weighed = samples and metric.key != STALLS.key
    return [
        ("offset", f"+0x{int(version.code.offset[row.first]):04x}" if _is_one(row) else ""),
        ("source", listing.place(row)),
        ("samples", f"{format_count(samples)}  {share} of kernel"),
        (metric.title, format_value(listing.value(row), metric.unit) if weighed else ""),
        ("whole line", _of_line(listing, row)),
    ]


def _is_one(row: Row) -> bool:
    return row.kind == RowKind.INSTRUCTION


def _of_line(listing: Listing, row: Row) -> str:
    """The samples of the source line of ``row``, where it has more than those of the row."""
    number = int(listing.version.line_of[row.first])
    if number < 0 or row.kind == RowKind.FOLD:
        return ""
    samples = listing.version.samples_of_line(number)
    return f"{format_count(samples)} samples" if samples > listing.samples(row) else ""


def _of_kernel(subject: Subject, listing: Listing, palette: Palette, width: int) -> list[Line]:
    title = "the whole kernel" if len(subject.versions) == 1 else "all of this code"
    version = listing.version
    samples = version.by_reason(0, len(version))
    known = counted(version.reasons, samples)
    return [
        [Piece(cut_start(title, width), "dim")],
        *reason_lines(known, palette, width),
        *legend(version.reasons, samples, palette, width),
    ]
