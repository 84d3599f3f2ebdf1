"""Write how a frame is spread over ranks: the numbers, who is farthest off, a strip of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flame.core.units import format_count, format_percent, format_value
from flame.tui.ranks.facts import RankFacts
from flame.tui.ranks.imbalance import deviation_words, on_ranks
from flame.tui.ranks.strip import Strip, draw_strip, line_cells
from flame.tui.shell.actions import Action
from flame.tui.toolkit.fields import LABEL, fields
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import ELLIPSIS, cut, width_of


def spread_lines(
    facts: RankFacts | None,
    labels: Sequence[str],
    places: tuple[int, ...] | None,
    palette: Palette,
    width: int,
    unit: str,
    halves: bool = False,
) -> list[Line]:
    """Write ``facts`` of a frame; None while they are worked out. ``places`` are those shown.

    ``halves`` of cells may be drawn, where colours are.
    """
    title: Line = [Piece(f"over {format_count(len(labels))} ranks", "dim")]
    if facts is None:
        return [title, [Piece(ELLIPSIS)]]
    rows = [*_rows(facts, labels, places, width - LABEL, unit), *_kept(facts)]
    median = int(facts.spread.spread.median[0])
    strip = draw_strip(facts.values, median, palette, width, halves)
    lines = [
        title,
        *fields(rows, width),
        *strip.lines,
        *_reading(facts, labels, places, strip, width),
    ]
    return [*lines, *_waiting(facts, labels, places, width)]


def _waiting(
    facts: RankFacts, labels: Sequence[str], places: tuple[int, ...] | None, width: int
) -> list[Line]:
    """Say of the one rank that is shown, whatever the frame, how it came to collectives."""
    if not facts.rank or not places:
        return []
    title: Line = [Piece(cut(f"{labels[places[0]]} in collectives", width), "dim")]
    return [[], title, *fields(facts.rank, width, prose=True)]


def compact_words(facts: RankFacts | None, labels: Sequence[str], unit: str) -> Iterator[str]:
    """Say the same in few words, the most important first."""
    if facts is None:
        yield ELLIPSIS
        return
    found = facts.spread.spread
    yield f"mean {format_value(facts.mean, unit)}"
    yield f"median {format_value(int(found.median[0]), unit)}"
    yield f"max {_extreme(facts, labels, int(found.worst[0]), unit)}"
    yield f"min {format_value(int(found.least[0]), unit)}"


def _rows(
    facts: RankFacts,
    labels: Sequence[str],
    places: tuple[int, ...] | None,
    room: int,
    unit: str,
) -> Iterator[tuple[str, str]]:
    found = facts.spread.spread
    mean, median, p95 = (
        format_value(value, unit) for value in (facts.mean, int(found.median[0]), int(found.p95[0]))
    )
    if places is not None and len(places) == 1:
        yield "this rank", _extreme(facts, labels, places[0], unit)
    both = f"{mean}  median {median}"
    together = width_of(both) <= room
    yield "mean", both if together else mean
    yield "median", "" if together else median
    yield "p95", p95
    worst, least = int(found.worst[0]), int(facts.values.argmin())
    if worst < 0 or int(found.least[0]) == int(found.most[0]):
        yield "max", "the same on all"
        return
    yield "max", _extreme(facts, labels, worst, unit)
    yield "min", _extreme(facts, labels, least, unit) if found.least[0] else "nothing on some"
    there = int(found.there[0])
    yield "there", on_ranks(there, found.ranks, labels[worst]) if there < found.ranks else ""


def _extreme(facts: RankFacts, labels: Sequence[str], place: int, unit: str) -> str:
    """The value of a rank, which rank it is, how far that is from the median."""
    if place < 0:
        return "nothing on any rank"
    value = format_value(int(facts.values[place]), unit)
    far = deviation_words(facts.deviation_of(place))
    return "  ".join(filter(None, (value, labels[place], far)))


def _kept(facts: RankFacts) -> Iterator[tuple[str, str]]:
    """What is known of each rank, where that is not all; and how long single activities took."""
    if not facts.is_whole:
        share = format_percent(int(facts.values.sum()), facts.total)
        yield "known", f"{share} by rank: small parts were left out, so ranks may have more"


def _reading(
    facts: RankFacts,
    labels: Sequence[str],
    places: tuple[int, ...] | None,
    strip: Strip,
    width: int,
) -> list[Line]:
    """Say what a cell of the strip is, and where ``r`` leads."""
    cell = "half a cell" if strip.halves else "a cell"
    each = (
        f"{cell} a rank" if strip.ranks == 1 else f"{cell} is {strip.ranks} ranks, the farthest off"
    )
    far = int(facts.spread.farthest[0])
    lines: list[Line] = [[Piece(cut(f"{each}, {line_cells(width)} a line", width), "dim")]]
    if places is not None:
        lines.append([Piece("r: all ranks", "key", Action.WORST_RANK.click())])
    elif far >= 0:
        words = f"r: {labels[far]} {deviation_words(facts.deviation_of(far))}".rstrip()
        lines.append([Piece(cut(words, width), "key", Action.ONE_RANK.click(far))])
    return lines
