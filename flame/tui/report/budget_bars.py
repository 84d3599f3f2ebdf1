"""Draw the budget of each GPU as a bar of its parts, and say what its colours are."""

from __future__ import annotations

from typing import Any, NamedTuple

from rich.style import Style

from flame.core.frame import Kind
from flame.core.model.calls import CallClass, IdleCause
from flame.core.names.kernel_category import COMMUNICATION
from flame.core.report.sections.budget import mostly
from flame.core.report.table import Section, share
from flame.core.timeline.thread_states.holdups import HOLDUPS
from flame.core.units import format_ns, format_percent
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, fill, printable, width_of

_GLYPHS = {"compute": "█", "communication": "▓", "copies": "▒", "idle": "░"}
"""By how the name of a part begins: a bar tells its parts apart without colours, too."""

_LEAST_BAR = 10
_WORDY = 60
"""Cells from which on there is room for what most of a window is."""

_LABEL = 24
_IDLE_PREFIX = "idle: "
_CALLS = {
    "in launch": CallClass.LAUNCH,
    "launch call": CallClass.LAUNCH,
    "sync": CallClass.SYNC,
    "alloc": CallClass.ALLOC,
    "copy call": CallClass.COPY,
    "other call": CallClass.OTHER,
}
_HOST_CODE = [cause.title for cause in (IdleCause.HOST_CODE, *HOLDUPS)]
_KINDS = {"compute": Kind.KERNEL, "copies, alone": Kind.MEMCPY}


class GpuBudget(NamedTuple):
    """Hold the parts of a GPU's window, ns by name, in the order in which they are drawn.

    ``character`` is what most of it is.
    """

    label: str
    parts: dict[str, int]
    character: str = ""

    @property
    def window(self) -> int:
        """All of them."""
        return sum(self.parts.values())


def budgets_of(section: Section) -> list[GpuBudget]:
    """Read the budgets from the section that has them."""
    found: dict[str, GpuBudget] = {}
    devices: Any = section.facts.get("devices", ())
    characters = {str(one["gpu"]): str(one["character"]) for one in devices}
    for table in section.tables:
        keys = [column.key for column in table.columns]
        if not {"gpu", "part", "ns"} <= {*keys}:
            continue
        at = [keys.index(key) for key in ("gpu", "part", "ns")]
        for row in table.rows:
            label, part, ns = (row[place] for place in at)
            if isinstance(ns, int):
                new = GpuBudget(str(label), {}, characters.get(str(label), ""))
                found.setdefault(str(label), new).parts[str(part)] = ns
    return list(found.values())


def budget_lines(budgets: list[GpuBudget], palette: Palette, width: int, most: int) -> list[Line]:
    """Draw ``most`` bars at most, and below them the legend of all."""
    if not budgets:
        return []
    labels = [cut(one.label, min(_LABEL, width // 3)) for one in budgets]
    room = max(map(width_of, labels))
    words = max(len(mostly(one.character)) + 1 if one.character else 0 for one in budgets)
    words = words if width >= _WORDY else 0
    lines = [
        _bar_line(one, fill(label, room), palette, width, words)
        for one, label in zip(budgets[:most], labels, strict=False)
    ]
    more = len(budgets) - most
    return [*lines, _legend(budgets, palette, width, f" +{more} GPUs" if more > 0 else "")]


def _bar_line(one: GpuBudget, label: str, palette: Palette, width: int, most: int) -> Line:
    """A bar, the window, and in ``most`` cells what most of it is."""
    ends = [Piece(f" {label} "), Piece(f" {format_ns(one.window)} ", "strong")]
    if most:
        ends.append(Piece(fill(mostly(one.character), most)))
    cells = max(width - line_width(ends), _LEAST_BAR)
    return [ends[0], *_bar(one, cells, palette), *ends[1:]]


def _bar(one: GpuBudget, cells: int, palette: Palette) -> list[Piece]:
    """The parts, of ``cells`` together: each ends in the cell in which its time does."""
    pieces, before, done, whole = [], 0, 0, max(one.window, 1)
    for part, ns in one.parts.items():
        done += ns
        end = round(cells * done / whole)
        if end > before:
            pieces.append(Piece(_glyph(part) * (end - before), _style(part, palette)))
        before = end
    return [*pieces, Piece(" " * (cells - before))]


def _legend(budgets: list[GpuBudget], palette: Palette, width: int, more: str) -> Line:
    """The parts of all GPUs together, the largest first, as many as fit."""
    sums: dict[str, int] = {}
    for one in budgets:
        for part, ns in one.parts.items():
            sums[part] = sums.get(part, 0) + ns
    whole, line, room = sum(sums.values()), list[Piece](), width - len(more)
    for part, ns in sorted(sums.items(), key=lambda item: -item[1]):
        word = f" {printable(part)} {format_percent(share(ns, whole) or 0, 100)} "
        if line_width(line) + 2 + width_of(word) > room:
            break
        line += [Piece(f" {_glyph(part)}", _style(part, palette)), Piece(word)]
    return [*line, Piece(more, "dim")]


def _glyph(part: str) -> str:
    return next((glyph for word, glyph in _GLYPHS.items() if part.startswith(word)), "█")


def _style(part: str, palette: Palette) -> Style:
    cause = part.removeprefix(_IDLE_PREFIX)
    if part in _KINDS:
        return palette.ink(_KINDS[part])
    if part.startswith(COMMUNICATION):
        return palette.category_ink(COMMUNICATION)
    if cause in _CALLS:
        return palette.call_ink(_CALLS[cause])
    return palette.ink(Kind.PYTHON) if cause in _HOST_CODE else palette.quiet
