"""Write what the pane says of the root: the answer to where the time goes, on few lines."""

from __future__ import annotations

from flame.core.analysis.busy_words import busy_share
from flame.core.analysis.wording import Terms
from flame.core.units import (
    format_bytes,
    format_count,
    format_ns,
    format_percent,
    format_value,
    format_whole_percent,
)
from flame.tui.details.parts import HeaviestParts, Part
from flame.tui.details.root_facts import Busy, Gap, RootFacts
from flame.tui.shell.actions import Action
from flame.tui.toolkit.fields import fields
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut, cut_start, width_of

_MOST_GPUS = 8
_SHARE = 7
_VALUE = 10
_ROOMY = 50
"""From this width on there are values beside shares."""

_MARKED = 0.001
"""Part of its time from which on a GPU's copies alone are worth a line."""


def busy_lines(facts: RootFacts, width: int) -> list[Line]:
    """Say of each GPU how busy it was and how long idle."""
    lines = [line for each in facts.busy[:_MOST_GPUS] for line in _busy(each, width)]
    more = len(facts.busy) - _MOST_GPUS
    return [*lines, *([[Piece(f"{more} more GPUs", "dim")]] if more > 0 else [])]


def _busy(each: Busy, width: int) -> list[Line]:
    found = each.found
    if not found.length:
        return []
    idle = f"  idle {format_ns(found.idle)}"
    label = cut(found.label, max(width - len(idle) - len(" busy 99.9 %"), 4))
    lines: list[Line] = [
        [Piece(label, "strong"), Piece(f" busy {busy_share(found)}"), Piece(idle, "dim")]
    ]
    alone = found.busy - each.kernels
    if alone > _MARKED * found.length:
        kernels = format_percent(each.kernels, found.length)
        text = f"  kernels {kernels}, copies alone {format_percent(alone, found.length)}"
        lines.append([Piece(cut_start(text, width), "dim")])
    return lines


def list_blocks(facts: RootFacts, terms: Terms, unit: str, width: int) -> list[list[Line]]:
    """List the heaviest of each kind, the most important kind first."""
    layers = facts.modules if facts.modules.number else facts.ranges
    layers_title = "modules" if facts.modules.number else terms.ranges
    return [
        part_lines("kernels", facts.kernels, unit, width),
        part_lines(f"{layers_title}, innermost", layers, unit, width),
        part_lines("functions, innermost", facts.functions, unit, width),
        part_lines("communication", facts.communication, unit, width),
        part_lines("copies", facts.copies, unit, width, facts.moved),
    ]


def part_lines(
    title: str, parts: HeaviestParts, unit: str, width: int, moved: tuple[int, ...] = ()
) -> list[Line]:
    """Title, and of each part its share, its value where there is room, and its name to click."""
    if not parts.number or not parts.whole:
        return []
    few = len(parts.heaviest) < parts.number
    of = f", of {format_count(parts.number)}" if few else ""
    lines: list[Line] = [[Piece(cut_start(f"heaviest {title}{of}", width), "dim")]]
    for place, part in enumerate(parts.heaviest):
        lines.append(_part(part, parts.whole, unit, width, moved[place] if moved else 0))
    return lines


def _part(part: Part, whole: int, unit: str, width: int, moved: int) -> Line:
    share = format_percent(part.value, whole).rjust(_SHARE)
    value = format_value(part.value, unit).rjust(_VALUE) if width >= _ROOMY else ""
    size = f"  {format_bytes(moved)}" if moved else ""
    room = width - width_of(share) - width_of(value) - width_of(size) - 2
    return [Piece(share), Piece(value, "dim"), Piece("  "), _name(part, room), Piece(size, "dim")]


def _name(part: Part, room: int) -> Piece:
    click = Action.SELECT.click(part.node) if part.node >= 0 else ""
    return Piece(cut(part.name, max(room, 4)), "", click)


def gap_lines(facts: RootFacts, width: int) -> list[Line]:
    """List the longest stretches in which a GPU ran nothing: how long, when, between what."""
    if not facts.gaps:
        return []
    lines: list[Line] = [[Piece("longest idle gaps, when, between", "dim")]]
    return [*lines, *(_gap(gap, width) for gap in facts.gaps[:_MOST_GAPS])]


def _gap(found: Gap, width: int) -> Line:
    label = f" {found.label}" if found.label else ""
    length = format_ns(found.gap.length).rjust(_SHARE)
    when = f"{label}  {found.gap.begin / 1e9:.3f} s  "
    room = width - width_of(length) - width_of(when) - 3
    before, after = (part and _name(part, room // 2) for part in found.around)
    return [
        Piece(length),
        Piece(when, "dim"),
        before or Piece("…"),
        Piece(" → ", "dim"),
        after or Piece("…"),
    ]


def coverage_lines(facts: RootFacts, width: int) -> list[Line]:
    """Say how much of the GPU time has a launch, ranges, frames; nothing where nothing is known."""
    shares = [
        f"{title} {format_whole_percent(percent)}" for title, percent in facts.coverage if percent
    ]
    return fields([("coverage", ", ".join(shares))], width)


_MOST_GAPS = 4
