"""The details pane: everything known of the selected frame, what matters most at the top."""

from __future__ import annotations

from collections.abc import Callable

from flame.core.analysis.wording import NVTX, Terms, kind_word
from flame.core.model.frames import SAMPLE_KINDS, Frame, Kind
from flame.core.units import format_count, format_percent, format_value
from flame.tui.details import blocks
from flame.tui.details.blocks import fields
from flame.tui.details.facts import Facts, Part
from flame.tui.details.sample_blocks import about, block
from flame.tui.session.tree_view import View
from flame.tui.session.wording import counts
from flame.tui.toolkit.lines import Line, Lines, Piece, line_width, side_by_side
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, cut_start, printable, width_of, wrap

_NAME_LINES = 5
_SHORT_NAME_LINES = 2
_TEXT_LINES = 12
_CHILDREN = 8
_SIDE_BY_SIDE = 70
"""From this width on the pane has two columns."""
_ROOMY = 50
"""From this width on a frame's children have their values beside their shares."""

_MORE = "[ ] more"

_LAUNCHED = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)


class Details(Lines):
    """The pane for them. It never gets shorter: that would have the whole screen laid out anew.

    So it has no scrollbar; that there is more stands at the end of its first line.
    """

    def reach(self, rows: int) -> None:
        super().reach(max(rows, self.virtual_size.height))

    def scroll(self, step: int) -> None:
        """Scroll by ``step`` lines, not beyond the last one."""
        last = max(len(self._lines) - self.inner.height, 0)
        self.scroll_to(y=min(max(self.scroll_offset.y + step, 0), last), animate=False)


def with_more(lines: list[Line], width: int, height: int) -> list[Line]:
    """``lines``, which say so if there are more of them than ``height``."""
    word = Piece(_MORE, "dim", "screen.scroll_details(1)")
    free = width - line_width(lines[0]) - len(_MORE) if lines else -1
    if len(lines) <= height or free < 1:
        return lines
    return [[*lines[0], Piece(" " * free), word], *lines[1:]]


def details(
    view: View,
    palette: Palette,
    width: int,
    facts: Facts | None = None,
    *,
    clicks: bool = True,
    terms: Terms = NVTX,
) -> list[Line]:
    """Lines about ``view``'s selected frame, at most ``width`` cells wide.

    ``facts`` is what has been worked out of it so far. ``clicks`` makes its children clickable,
    which only those of the projected tree are; ``terms`` are the words for its ranges.
    """
    if width < _SIDE_BY_SIDE:
        # What comes later stands below: what is there at once is sent but once.
        parts = [
            _summary(view, palette, width, _NAME_LINES, terms),
            *_around(view, facts, width, clicks),
            *_measured(view, facts, palette, width),
            *_rest(view, facts, width),
        ]
        return _stacked(parts)
    half = (width - 2) // 2
    left = _summary(view, palette, half, _SHORT_NAME_LINES, terms)
    around, rest = _around(view, facts, half, clicks), _rest(view, facts, half)
    right = _stacked([*_measured(view, facts, palette, half), *around, *rest])
    return side_by_side(left, right, half + 2)


def _stacked(parts: list[list[Line]]) -> list[Line]:
    """The parts that are not empty, one below the other with a line between them."""
    lines: list[Line] = []
    for part in filter(None, parts):
        lines += [[], *part] if lines else part
    return lines


def _summary(view: View, palette: Palette, width: int, most: int, terms: Terms) -> list[Line]:
    """What it is and what it weighs."""
    tree, node = view.tree, view.cursor
    frame = tree.frames[int(tree.frame[node])]
    word = kind_word(frame, terms)
    name = wrap(view.name(node), width, most)
    return [
        [
            Piece(f" {word} ", palette.kind(frame.kind)),
            *_run_note(view, width - len(word) - 3),
        ],
        *([Piece(part, "strong")] for part in name),
        *fields([("source", _source(frame))], width),
        *about(frame, width),
        *([[]] if most > _SHORT_NAME_LINES else []),
        *_weights(view, width),
    ]


def _source(frame: Frame) -> str:
    return f"{frame.file}:{frame.line}" if frame.file and frame.line else frame.file


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
    whole, zoomed = view.whole, view.zoomed_total
    is_share = view.inside(node) and zoomed < whole
    parent = int(tree.total[max(int(tree.parent[node]), 0)])
    room, share = (
        width - blocks.LABEL,
        f"{format_value(total, unit)}  {format_percent(total, whole)}",
    )
    rows = [
        ("total", _fitting(room, f"{share} of all", share)),
        ("self", _self(int(tree.own[node]), total, unit)),
        ("of parent", format_percent(total, parent) if node else ""),
        ("of zoomed", format_percent(total, zoomed) if is_share else ""),
        *(_count(count, total, room) if counts(tree, view.cursor) else []),
    ]
    return [*fields(rows, width), *_everywhere(view, width)]


def _fitting(room: int, text: str, shorter: str) -> str:
    return text if width_of(text) <= room else shorter


def _count(count: int, total: int, room: int) -> list[tuple[str, str]]:
    """Count and mean, side by side where there is room."""
    if count <= 1:
        return [("count", format_count(count))]
    number, mean = format_count(count), format_value(total / count, "ns")
    both = f"{number}  mean {mean}"
    return [("count", both)] if width_of(both) <= room else [("count", number), ("mean", mean)]


def _self(own: int, total: int, unit: str) -> str:
    """A frame's own value where it says more than that all or nothing is its own."""
    known = 0 < own < total
    return f"{format_value(own, unit)}  {format_percent(own, total)} of total" if known else ""


def _everywhere(view: View, width: int) -> list[Line]:
    """Sums over all places of the name, where there are several."""
    tree = view.tree
    places, total, count = view.everywhere(int(tree.frame[view.cursor]))
    if places < 2:
        return []
    text = f"{format_value(total, tree.metric.unit)}  {format_percent(total, view.whole)}"
    if counts(tree, view.cursor):
        text = _fitting(width - blocks.LABEL, f"{text}  {format_count(count)}×", text)
    return fields([(f"{format_count(places)} places", text)], width)


def _measured(view: View, facts: Facts | None, palette: Palette, width: int) -> list[list[Line]]:
    """What activities are made of."""
    frame, metric = view.tree.frames[int(view.tree.frame[view.cursor])], view.tree.metric
    samples = block(facts.sampled if facts else None, frame, palette, width)
    parts = any(view.tree.kind(one) in SAMPLE_KINDS for one in view.tree.path(view.cursor))
    if parts or metric.noun != "activities":
        return [samples, blocks.notes(facts, width)]
    measured = metric.title if metric.unit == "ns" else "GPU time"
    title = f"{measured}, all places" if facts and facts.everywhere else f"{measured}, each"
    if facts and facts.latest:
        title += f" of the latest {format_count(facts.latest)}"
    some = facts is not None or view.tree.count[view.cursor] > 1
    return [
        blocks.spread(title, facts, width) if some else [],
        blocks.notes(facts, width),
        samples,
        [
            *blocks.queue(facts, width),
            *(blocks.launch(facts, width) if frame.kind in _LAUNCHED else []),
        ],
    ]


def _around(view: View, facts: Facts | None, width: int, clicks: bool) -> list[list[Line]]:
    """What it says besides, and what is below it."""
    frame = view.tree.frames[int(view.tree.frame[view.cursor])]
    several = facts is not None and facts.shapes is not None
    # The reasons of an instruction come with what they mean, below.
    children = [] if frame.kind == Kind.SASS else _children(view, width, clicks)
    return [_attributes(frame, several, width), children]


def _rest(view: View, facts: Facts | None, width: int) -> list[list[Line]]:
    """What is above it, where it ran, and long texts."""
    frame = view.tree.frames[int(view.tree.frame[view.cursor])]
    return [
        _shapes(view, facts, width),
        _parents(view, facts, width),
        blocks.ran_on(facts, width),
        _texts(view, frame, width),
    ]


def _children(view: View, width: int, clicks: bool) -> list[Line]:
    tree = view.tree
    children = view.heaviest_children(view.cursor, _CHILDREN)
    parts = [
        Part(view.name(child), int(tree.total[child]), child if clicks else -1)
        for child in children
    ]
    return _parts(view, "heaviest below", parts, int(tree.total[view.cursor]), width)


def _parents(view: View, facts: Facts | None, width: int) -> list[Line]:
    """What is above the name at its several places."""
    if facts is None or facts.parents.number < 2:
        return []
    parts, number, whole = facts.parents
    title = f"heaviest above, of {format_count(number)}"
    return _parts(view, title, parts, whole, width)


def _shapes(view: View, facts: Facts | None, width: int) -> list[Line]:
    """The heaviest shapes of an operator that was called with several."""
    if facts is None or facts.shapes is None:
        return []
    parts, number, whole = facts.shapes
    parts = [part._replace(name=printable(part.name)) for part in parts]
    title = f"heaviest shapes, of {format_count(number)}"
    return _parts(view, title, parts, whole, width, cut_start)


def _parts(
    view: View,
    title: str,
    parts: list[Part],
    whole: int,
    width: int,
    shortened: Callable[[str, int], str] = cut,
) -> list[Line]:
    """Each part's share of ``whole``, its value where there is room, and its name to click on."""
    if not whole or not parts:
        return []
    lines: list[Line] = [[Piece(title, "dim")]]
    for name, value, node in parts:
        share = format_percent(value, whole).rjust(7)
        weight = format_value(value, view.tree.metric.unit).rjust(10) if width >= _ROOMY else ""
        label = shortened(name, max(width - len(weight) - len(share) - 2, 4))
        select = f"screen.select({node})" if node >= 0 else ""
        lines.append([Piece(share), Piece(weight, "dim"), Piece(f"  {label}", "", select)])
    return lines


def _attributes(frame: Frame, has_several: bool, width: int) -> list[Line]:
    """What the trace says of it; its shapes only if it does not have several."""
    shapes = () if has_several else ("shapes",)
    keys = ("module", "domain", "category", *shapes, "detail", "placed")
    captured = "when the CUDA graph was captured" if frame.get("captured") else ""
    return fields([("open", captured), *((key, frame.get(key)) for key in keys)], width)


def _texts(view: View, frame: Frame, width: int) -> list[Line]:
    """Long texts, each under its title; the name too where it stands cut at the top."""
    shown = view.tree.name(view.cursor)
    texts = [("name", shown if _is_cut(shown, width) else "")]
    texts += [(key, frame.get(key)) for key in ("demangled", "mangled") if frame.get(key) != shown]
    examples = view.tree.frames.examples.get(int(view.tree.frame[view.cursor]), ())
    texts += [("payload" if place == 0 else "", text) for place, text in enumerate(examples)]
    lines: list[Line] = []
    for title, text in texts:
        if text:
            lines += [[Piece(title, "dim")]] if title else []
            lines += [[Piece(part)] for part in wrap(text, width, _TEXT_LINES)]
    return lines


def _is_cut(name: str, width: int) -> bool:
    """Whether the summary has too few lines for ``name``."""
    return len(wrap(name, width, _TEXT_LINES)) > _SHORT_NAME_LINES
