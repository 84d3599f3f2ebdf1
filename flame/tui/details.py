"""The details pane: everything known of the selected frame."""

from __future__ import annotations

from itertools import zip_longest

from flame.core.frames import Frame
from flame.core.units import format_count, format_percent, format_value
from flame.tui.lines import Line, Piece, line_width
from flame.tui.palette import Palette
from flame.tui.text import cut, cut_start, printable, wrap
from flame.tui.view import View

_LABEL = 12
_NAME_LINES = 6
_TEXT_LINES = 12
_CHILDREN = 8
_SIDE_BY_SIDE = 70
"""From this width on the pane has two columns."""


def details(view: View, palette: Palette, width: int) -> list[Line]:
    """Lines about ``view``'s selected frame, at most ``width`` cells wide."""
    if width < _SIDE_BY_SIDE:
        return [*_summary(view, palette, width), [], *_relations(view, width)]
    half = (width - 2) // 2
    left, right = _summary(view, palette, half), _relations(view, width - half - 2)
    nothing: Line = []
    pairs = zip_longest(left, right, fillvalue=nothing)
    return [[*one, Piece(" " * (half + 2 - line_width(one))), *other] for one, other in pairs]


def _summary(view: View, palette: Palette, width: int) -> list[Line]:
    """What it is and what it weighs."""
    tree, node = view.tree, view.cursor
    kind = tree.kind(node)
    name = wrap(view.name(node), width, _NAME_LINES)
    return [
        [
            Piece(f" {kind.title} ", palette.kind(kind)),
            *_run_note(view, width - len(kind.title) - 3),
        ],
        *([Piece(part, "strong")] for part in name),
        [],
        *_weights(view, width),
    ]


def _run_note(view: View, width: int) -> Line:
    if not view.width:  # nothing has been laid out yet
        return []
    item = view.item_of(view.cursor)
    if item is None:
        return [Piece(cut_start(" too narrow to draw", width), "dim")]
    if item.frames == 1:
        return []
    keys = "← →" if view.in_whole_run else "enter zooms"
    note = f" one of {format_count(item.frames)} narrow, {keys}"
    return [Piece(cut_start(note, width), "dim")]


def _weights(view: View, width: int) -> list[Line]:
    tree, node = view.tree, view.cursor
    unit, total, count = tree.metric.unit, int(tree.total[node]), int(tree.count[node])
    whole, zoomed = int(tree.total[0]), view.zoomed_total
    parent = int(tree.total[max(int(tree.parent[node]), 0)])
    rows = [
        ("total", f"{format_value(total, unit)}  {format_percent(total, whole)} of all"),
        ("self", _part(int(tree.own[node]), total, unit, "of total")),
        ("of parent", format_percent(total, parent) if node else ""),
        ("of zoomed", format_percent(total, zoomed) if total <= zoomed < whole else ""),
        ("count", format_count(count) if unit == "ns" else ""),
        ("mean", format_value(total / count, unit) if count and unit == "ns" else ""),
    ]
    return [*_facts(rows, width), *_everywhere(view, width)]


def _part(value: int, whole: int, unit: str, of: str) -> str:
    text = format_value(value, unit)
    return f"{text}  {format_percent(value, whole)} {of}" if 0 < value < whole else text


def _everywhere(view: View, width: int) -> list[Line]:
    """Sums over all places of the name, where there are several."""
    tree = view.tree
    places, total, count = view.everywhere(int(tree.frame[view.cursor]))
    if places < 2:
        return []
    text = f"{format_value(total, tree.metric.unit)}  {format_percent(total, int(tree.total[0]))}"
    if tree.metric.unit == "ns":
        text += f"  {format_count(count)}×"
    return _facts([(f"{format_count(places)} places", text)], width)


def _relations(view: View, width: int) -> list[Line]:
    """Its heaviest children, and what the trace says of it besides."""
    frame = view.tree.frames[int(view.tree.frame[view.cursor])]
    blocks = [_children(view, width), _attributes(view, frame, width), _texts(view, frame, width)]
    return [line for block in blocks for line in ([*block, []] if block else [])]


def _children(view: View, width: int) -> list[Line]:
    tree = view.tree
    total = int(tree.total[view.cursor])
    children = [child for child in view.heaviest_children(view.cursor, _CHILDREN) if total]
    if not children:
        return []
    lines: list[Line] = [[Piece("heaviest below", "dim")]]
    for child in children:
        part = int(tree.total[child])
        value = format_value(part, tree.metric.unit).rjust(8)
        share = format_percent(part, total).rjust(8)
        name = cut(view.name(child), max(width - len(value) - len(share) - 2, 4))
        select = f"screen.select({child})"
        lines.append([Piece(value), Piece(share, "dim"), Piece(f"  {name}", "", select)])
    return lines


def _attributes(view: View, frame: Frame, width: int) -> list[Line]:
    place = f"{frame.file}:{frame.line}" if frame.file and frame.line else frame.file
    captured = "when the CUDA graph was captured" if frame.get("captured") else ""
    rows = [
        ("source", place),
        ("open", captured),
        *((key, frame.get(key)) for key in ("module", "domain", "category", "shapes", "detail")),
    ]
    return _facts(rows, width)


def _texts(view: View, frame: Frame, width: int) -> list[Line]:
    """Long texts, each under its title."""
    shown = view.tree.name(view.cursor)
    texts = [(key, frame.get(key)) for key in ("demangled", "mangled")]
    examples = view.tree.frames.examples.get(int(view.tree.frame[view.cursor]), ())
    texts += [("payload" if place == 0 else "", text) for place, text in enumerate(examples)]
    lines: list[Line] = []
    for title, text in texts:
        if text and text != shown:
            lines += [[Piece(title, "dim")]] if title else []
            lines += [[Piece(part)] for part in wrap(text, width, _TEXT_LINES)]
    return lines


def _facts(rows: list[tuple[str, str]], width: int) -> list[Line]:
    """Label and value side by side; rows without a value are left out, long values wrapped."""
    lines: list[Line] = []
    for label, value in rows:
        parts = wrap(printable(value), max(width - _LABEL, 8), 4)
        for place, part in enumerate(parts):
            title = label if place == 0 else ""
            lines.append([Piece(title.ljust(_LABEL), "dim"), Piece(part)])
    return lines
