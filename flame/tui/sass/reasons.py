"""Compose the pane beside the listing: the reasons of a row and of the whole kernel."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.compare.sides import BASE, SIDES
from flame.core.model.metrics import STALLS
from flame.core.units import format_count, format_counted, format_percent, format_value
from flame.tui.sampling.both_reasons import both_reasons
from flame.tui.sampling.reasons import Counted, counted, legend, reason_lines
from flame.tui.sampling.subject import Subject
from flame.tui.sass.listing import Listing, ListingRow, RowKind
from flame.tui.toolkit.fields import fields
from flame.tui.toolkit.lines import Line, Piece, side_by_side
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut_start, wrap

_TEXT_LINES = 4
_FEW = 4
_BESIDE = 70
"""From this width on the kernel's reasons stand beside those of the instruction."""


def pane(
    subject: Subject, listing: Listing, row: ListingRow, palette: Palette, width: int
) -> list[Line]:
    """Return what is known of ``row``, and of the whole kernel."""
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
    row: ListingRow,
    palette: Palette,
    width: int,
    short: bool = False,
) -> list[Line]:
    """The instruction, what it weighs, and its reasons: those first where there is little room."""
    text = listing.source(row) if row.kind == RowKind.SOURCE else listing.text(row)
    head = wrap(text or listing.text(row), width, 1 if short else _TEXT_LINES)
    version = listing.version
    counts = counted(version.reasons, version.by_reason(row.first, row.last))
    reasons = reason_lines(counts, palette, width, _FEW if short else 0, meanings=not short)
    rows = fields(_numbers(subject, listing, row), width)
    lines = [*reasons, *rows] if short else [*rows, *reasons]
    return [*([Piece(part, "strong")] for part in head), *lines]


def _numbers(subject: Subject, listing: Listing, row: ListingRow) -> list[tuple[str, str]]:
    """Where ``row`` stands, and what it weighs."""
    version, samples = listing.version, listing.samples(row)
    share = format_percent(samples, subject.samples)
    metric = subject.metric
    weighed = samples and metric.key != STALLS.key
    return [
        ("offset", f"+0x{int(version.code.offset[row.first]):04x}" if _is_one(row) else ""),
        ("source", listing.place(row)),
        ("samples", f"{format_count(samples)}  {share} of kernel"),
        *_on_the_other_side(listing, row),
        (metric.title, format_value(listing.value(row), metric.unit) if weighed else ""),
        ("whole line", _of_line(listing, row)),
    ]


def _on_the_other_side(listing: Listing, row: ListingRow) -> Iterator[tuple[str, str]]:
    """What the other side of a comparison has at the same instructions."""
    if (other := listing.other) is None:
        return
    samples = listing.other_samples(row)
    share = format_percent(samples or 0, other.whole)
    has = f"{format_count(samples)}  {share} of kernel" if samples is not None else "not there"
    yield other.side, has


def _is_one(row: ListingRow) -> bool:
    return row.kind == RowKind.INSTRUCTION


def _of_line(listing: Listing, row: ListingRow) -> str:
    """The samples of the source line of ``row``, where it has more than those of the row."""
    number = int(listing.version.line_of[row.first])
    if number < 0 or row.kind == RowKind.FOLD:
        return ""
    samples = listing.version.samples_of_line(number)
    return format_counted(samples, "sample", "samples") if samples > listing.samples(row) else ""


def _of_kernel(subject: Subject, listing: Listing, palette: Palette, width: int) -> list[Line]:
    title = "the whole kernel" if len(subject.versions) == 1 else "all of this code"
    version = listing.version
    samples = version.by_reason(0, len(version))
    counts = counted(version.reasons, samples)
    return [
        [Piece(cut_start(title, width), "dim")],
        *_reasons_of_code(listing, counts, palette, width),
        *legend(version.reasons, samples, palette, width),
    ]


def _reasons_of_code(listing: Listing, counts: Counted, palette: Palette, width: int) -> list[Line]:
    """The reasons of the whole code, beside those of the other side where there is one."""
    if (other := listing.other) is None or not other.whole:
        return reason_lines(counts, palette, width)
    sides = (other.reasons, counts) if other.side == SIDES[BASE] else (counts, other.reasons)
    return both_reasons(*sides, width)
