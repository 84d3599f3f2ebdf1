"""Write what the pane says of the root: the answer to where the time goes, on few lines."""

from __future__ import annotations

from flame.core.analysis.words.busy import busy_share
from flame.core.analysis.words.formats import Terms
from flame.core.units import (
    format_bytes,
    format_count,
    format_ns,
    format_percent,
    format_value,
    format_whole_percent,
)
from flame.tui.details.labels import Label, explained, fields, titled
from flame.tui.details.parts import HeaviestParts, Part
from flame.tui.details.root_facts import Busy, GapFacts, RootFacts
from flame.tui.shell.actions import Action
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.text import cut, cut_start, width_of

_MOST_GPUS = 8
_MOST_GAPS = 4
_FEW_GAPS = 3
_TO = " → "
_SHARE = 7
_LENGTH = 8
_INDENT = 3
_VALUE = 10
_ROOMY = 50
"""From this width on there are values beside shares."""

_MARKED = 0.001
"""Part of its time from which on a GPU's copies alone are worth a line."""


def busy_lines(facts: RootFacts, width: int) -> list[Line]:
    """Say of each GPU how busy it was and how long idle."""
    lines = [line for each in facts.busy[:_MOST_GPUS] for line in _busy(each, width)]
    more = len(facts.busy) - _MOST_GPUS
    lines += [[Piece(f"{more} more GPUs", "dim")]] if more > 0 else []
    return lines


def step_lines(facts: RootFacts, width: int) -> list[Line]:
    """Say how many steps there are and how long they take; a click lists them."""
    if not facts.steps:
        return []
    click = Action.STEPS.click()
    text = cut_start(facts.steps, max(width - len("steps   p"), 4))
    label = explained(Piece(f"{Label.STEPS} ", "dim"), Label.STEPS)
    return [[label, Piece(text, "", click), Piece("  p", "key", click)]]


def _busy(each: Busy, width: int) -> list[Line]:
    found = each.found
    if not found.length:
        return []
    idle, share = f"  {Label.IDLE} {format_ns(found.idle)}", f" {Label.BUSY} {busy_share(found)}"
    label = cut(found.label, max(width - width_of(share), 4))
    line: Line = [Piece(label, "strong"), Piece(share)]
    fits = line_width(line) + width_of(idle) <= width
    lines: list[Line] = [[*line, Piece(idle, "dim")]] if fits else [line, [Piece(idle, "dim")]]
    alone = found.busy - each.kernels
    if alone > _MARKED * found.length:
        kernels = format_percent(each.kernels, found.length)
        copies = format_percent(alone, found.length)
        text = f"  {Label.KERNELS} {kernels}, {Label.COPIES_ALONE} {copies}"
        lines.append([Piece(cut_start(text, width), "dim")])
    return lines


class HeaviestLines:
    """Write the heaviest of each kind, ``most`` of them, in the metric's ``unit``."""

    def __init__(self, facts: RootFacts, terms: Terms, unit: str, width: int, most: int) -> None:
        self._facts, self._terms = facts, terms
        self._unit, self._width, self._most = unit, width, most

    def kernels(self) -> list[Line]:
        """Write the kernels."""
        return self._lines(Label.KERNELS, self._facts.kernels)

    def layers(self) -> list[Line]:
        """Write the modules that launched the most, or else the ranges."""
        if self._facts.modules.number:
            return self._innermost(Label.MODULES, self._facts.modules)
        return self._innermost(Label.LAYERS, self._facts.ranges, self._terms.ranges)

    def functions(self) -> list[Line]:
        """Write the functions that launched the most."""
        return self._innermost(Label.FUNCTIONS, self._facts.functions)

    def communication(self) -> list[Line]:
        """Write the kernels that move data between GPUs."""
        return self._lines(Label.COMMUNICATION, self._facts.communication)

    def copies(self) -> list[Line]:
        """Write the copies and sets, with their bytes where those are known."""
        return self._lines(Label.COPIES, self._facts.copies, moved=self._facts.moved)

    def _innermost(self, label: Label, parts: HeaviestParts, title: str = "") -> list[Line]:
        return self._lines(label, parts, f"{title or label}, {Label.INNERMOST}")

    def _lines(
        self, label: Label, parts: HeaviestParts, title: str = "", moved: tuple[int, ...] = ()
    ) -> list[Line]:
        """Title, and of each part its share, its value where there is room, its name to click."""
        if not parts.number or not parts.whole:
            return []
        shown = parts.heaviest[: self._most]
        of = f", of {format_count(parts.number)}" if len(shown) < parts.number else ""
        head = titled(label, self._width, f"heaviest {title or label}{of}")
        sizes = moved or (0,) * len(shown)
        rows = zip(shown, sizes, strict=False)
        return [
            head,
            *(_part(part, parts.whole, self._unit, self._width, size) for part, size in rows),
        ]


def _part(part: Part, whole: int, unit: str, width: int, moved: int) -> Line:
    share = format_percent(part.value, whole).rjust(_SHARE)
    value = format_value(part.value, unit).rjust(_VALUE) if width >= _ROOMY else ""
    size = f"  {format_bytes(moved)}" if moved else ""
    room = width - width_of(share) - width_of(value) - width_of(size) - 2
    return [
        Piece(share),
        Piece(value, "dim"),
        Piece("  "),
        part_name(part, room),
        Piece(size, "dim"),
    ]


def part_name(part: Part, room: int) -> Piece:
    """Write the name of ``part`` in ``room`` cells; a click selects its frame, if it is shown."""
    click = Action.SELECT.click(part.node) if part.node >= 0 else ""
    return Piece(cut(part.name, max(room, 4)), "", click)


def gap_lines(facts: RootFacts, width: int) -> list[Line]:
    """List the longest stretches in which a GPU ran nothing: how long, when, between what."""
    if not facts.gaps:
        return []
    number = _MOST_GAPS if width >= _ROOMY else _FEW_GAPS
    lines = [titled(Label.GAPS, width)]
    return [*lines, *(line for gap in facts.gaps[:number] for line in _gap(gap, width))]


def _gap(found: GapFacts, width: int) -> list[Line]:
    """One line, or two where there is little room."""
    label = f" {found.label}" if found.label else ""
    length = format_ns(found.gap.length).rjust(_LENGTH)
    when: Line = [Piece(length), Piece(f"{label} at {found.gap.begin / 1e9:.6f} s", "dim")]
    room = width - (line_width(when) if width >= _ROOMY else _INDENT) - len(_TO) - 2
    around = _around(found.around, room)
    if width >= _ROOMY:
        return [[*when, Piece("  "), *around]]
    return [when, [Piece(" " * _INDENT), *around]]


def _around(parts: tuple[Part | None, Part | None], room: int) -> Line:
    """What ran before and after; the longer name has what the shorter one leaves."""
    first, last = (width_of(part.name) if part else 1 for part in parts)
    most = max(room // 2, room - last), max(room // 2, room - first)
    before, after = (
        part_name(part, cells) if part else Piece("…")
        for part, cells in zip(parts, most, strict=True)
    )
    return [before, Piece(_TO, "dim"), after]


def coverage_lines(facts: RootFacts, width: int) -> list[Line]:
    """Say how much of the GPU time has a launch, ranges, frames; nothing where nothing is known."""
    shares = [
        f"{title} {format_whole_percent(percent)}" for title, percent in facts.coverage if percent
    ]
    return fields([(Label.COVERAGE, ", ".join(shares))], width)
