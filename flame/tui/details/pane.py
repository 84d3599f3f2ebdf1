"""Write the details pane: everything known of the selected frame, what matters most at the top."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace

from flame.core.analysis.words.formats import NVTX, Terms, kind_word
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import PART_KINDS, Frame, Kind
from flame.core.model.grouping import category_of_frame
from flame.core.units import format_count, format_percent, format_value
from flame.tui.details.blocks import frame_blocks, root_blocks
from flame.tui.details.blocks.memory_blocks import memory_lines
from flame.tui.details.blocks.metric_blocks import metric_lines
from flame.tui.details.blocks.root_blocks import HeaviestLines
from flame.tui.details.blocks.sample_blocks import sample_lines, sample_notes
from flame.tui.details.blocks.work_blocks import work_lines
from flame.tui.details.facts import LAUNCHED, Facts
from flame.tui.details.labels import Label, fields, listed, titled
from flame.tui.details.parts import Part
from flame.tui.details.root_facts import has_root_facts
from flame.tui.session.tree_view import TreeView
from flame.tui.session.wording import counts
from flame.tui.shell.actions import Action
from flame.tui.toolkit.fields import LABEL
from flame.tui.toolkit.lines import Line, Piece, side_by_side
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, cut_start, printable, width_of, wrap

_NAME_LINES = 5
_SHORT_NAME_LINES = 2
_TEXT_LINES = 12
_CHILDREN = 8
_HEAVIEST = 5
_FEW_HEAVIEST = 3
"""Kernels, layers, functions of the root; fewer in two columns, which are short."""
_SIDE_BY_SIDE = 70
"""From this width on the pane has two columns."""
_ROOMY = 50
"""From this width on a frame's children have their values beside their shares."""

_ATTRIBUTES = (
    *(Label.MODULE, Label.DOMAIN, Label.CATEGORY, Label.SHAPES, Label.DETAIL, Label.PLACED),
)


@dataclass(frozen=True)
class LineColumns:
    """Hold lines in one column, or with others beside them from the cell ``at`` on."""

    left: list[Line]
    right: list[Line] = field(default_factory=list)
    at: int = 0

    @property
    def lines(self) -> list[Line]:
        """All lines from the top."""
        return side_by_side(self.left, self.right, self.at) if self.at else self.left

    def under(self, header: list[Line]) -> LineColumns:
        """Put ``header``, and an empty line, in place of the first lines."""
        return replace(self, left=[*header, [], *self.left[len(header) + 1 :]])


def details(
    view: TreeView,
    palette: Palette,
    width: int,
    facts: Facts | None = None,
    *,
    clicks: bool = True,
    terms: Terms = NVTX,
    remarks: Iterable[tuple[Label, str]] = (),
) -> LineColumns:
    """Write lines about ``view``'s selected frame, at most ``width`` cells wide.

    ``facts`` is what has been worked out of it so far. ``clicks`` makes its children clickable,
    which only those of the projected tree are; ``terms`` are the words for its ranges. ``remarks``
    are what else is known of it.
    """
    if _is_root(view, clicks):
        return _root(view, palette, width, facts, terms, remarks)
    summary = header(view, palette, width, clicks=clicks, terms=terms)
    said = fields(remarks, _column(width))
    memory = memory_lines(facts.memory if facts else None, _column(width))
    if width < _SIDE_BY_SIDE:
        # What comes later stands below: what is there at once is sent but once.
        parts = [
            summary,
            said,
            *memory,
            *_around(view, facts, width, clicks),
            *_measured(view, facts, palette, width),
            _names(view, facts, width),
            *_rest(view, facts, width),
        ]
        return LineColumns(_stacked(parts))
    half = _column(width)
    left = _stacked([summary, said, *memory, _names(view, facts, half)])
    around, rest = _around(view, facts, half, clicks), _rest(view, facts, half)
    right = _stacked([*_measured(view, facts, palette, half), *around, *rest])
    return LineColumns(left, right, half + 2)


def header(
    view: TreeView, palette: Palette, width: int, *, clicks: bool = True, terms: Terms = NVTX
) -> list[Line]:
    """Write the first lines of `details`: what the selected frame is, and what it weighs."""
    is_short = width >= _SIDE_BY_SIDE or _is_root(view, clicks)
    most = _SHORT_NAME_LINES if is_short else _NAME_LINES
    return _summary(view, palette, _column(width), most, terms)


def _is_root(view: TreeView, clicks: bool) -> bool:
    """Whether it is the root of the projected tree, of which there are facts of its own."""
    return clicks and not view.cursor.node and has_root_facts(view.tree)


def _column(width: int) -> int:
    """The width of a column, of which there are two where there is room."""
    return (width - 2) // 2 if width >= _SIDE_BY_SIDE else width


def _root(
    view: TreeView,
    palette: Palette,
    width: int,
    facts: Facts | None,
    terms: Terms,
    remarks: Iterable[tuple[Label, str]],
) -> LineColumns:
    """How busy the GPUs were and with what; what the activities are like comes last."""
    half = _column(width)
    summary = header(view, palette, width, terms=terms)
    found = facts.root if facts else None
    if found is None:
        return LineColumns(summary)
    busy = [*root_blocks.busy_lines(found, half), *fields(remarks, half)]
    over_time = [root_blocks.step_lines(found, half), root_blocks.gap_lines(found, half)]
    most = _HEAVIEST if half == width else _FEW_HEAVIEST
    heaviest = HeaviestLines(found, terms, view.tree.metric.unit, half, most)
    rest = [root_blocks.coverage_lines(found, half), *_measured(view, facts, palette, half)]
    first = [[*summary, *busy], heaviest.kernels(), heaviest.layers(), heaviest.functions()]
    last = [heaviest.communication(), heaviest.copies()]
    if half == width:
        return LineColumns(_stacked([*first, *over_time, *last, *rest, *_rest(view, facts, half)]))
    head, kernels, layers, functions = first
    left = _stacked([head, functions, *over_time, *rest])
    right = _stacked([kernels, layers, *last, *_rest(view, facts, half)])
    return LineColumns(left, right, half + 2)


def _stacked(parts: list[list[Line]]) -> list[Line]:
    """The parts that are not empty, one below the other with a line between them."""
    lines: list[Line] = []
    for part in filter(None, parts):
        lines += [[], *part] if lines else part
    return lines


def _summary(view: TreeView, palette: Palette, width: int, most: int, terms: Terms) -> list[Line]:
    """What it is and what it weighs."""
    tree, node = view.tree, view.cursor.node
    frame = tree.frames[int(tree.frame[node])]
    word = kind_word(frame, terms)
    name = wrap(view.name(node), width, most)
    return [
        [
            Piece(f" {word} ", palette.kind(frame.kind)),
            *_run_note(view, width - len(word) - 3),
        ],
        *([Piece(part, "strong")] for part in name),
        *fields([(Label.SOURCE, _source(frame))], width),
        *sample_notes(frame, width),
        *([[]] if most > _SHORT_NAME_LINES else []),
        *_weights(view, width),
    ]


def _source(frame: Frame) -> str:
    return f"{frame.file}:{frame.line}" if frame.file and frame.line else frame.file


def _run_note(view: TreeView, width: int) -> Line:
    if not view.viewport.width:  # nothing has been laid out yet
        return []
    item = view.viewport.item_of(view.cursor.node)
    if item is None:
        return titled(Label.NARROW, width, f" too {Label.NARROW} to draw")
    joined = len(view.layout.joined.members(view.cursor.node))
    if item.frames == 1 and joined == 1:
        return []
    if item.frames == 1:
        note = f" one of {format_count(joined)} {Label.JOINED}, E opens"
        return titled(Label.JOINED, width, note)
    keys = "← →" if view.cursor.in_whole_run else "enter zooms"
    note = f" one of {format_count(item.frames)} {Label.NARROW}, {keys}"
    return titled(Label.NARROW, width, note)


def _weights(view: TreeView, width: int) -> list[Line]:
    tree, node = view.tree, view.cursor.node
    unit, total, count = tree.metric.unit, int(tree.total[node]), int(tree.count[node])
    whole, zoomed = view.whole, view.viewport.total
    is_zoomed = view.viewport.zoom != view.viewport.zoom_of(0)
    is_share = is_zoomed and view.viewport.holds_all(node)
    parent = int(tree.total[max(int(tree.parent[node]), 0)])
    room, share = (
        width - LABEL,
        f"{format_value(total, unit)}  {format_percent(total, whole)}",
    )
    rows = [
        (Label.TOTAL, _fitting(room, f"{share} {Label.OF_ALL}", share)),
        (Label.SELF, _self(int(tree.own[node]), total, unit)),
        (Label.OF_PARENT, format_percent(total, parent) if node else ""),
        (Label.OF_ZOOMED, format_percent(total, zoomed) if is_share else ""),
        *(_count(count, total, room) if counts(tree, view.cursor.node) else []),
    ]
    return [*fields(rows, width), *_everywhere(view, width)]


def _fitting(room: int, text: str, shorter: str) -> str:
    return text if width_of(text) <= room else shorter


def _count(count: int, total: int, room: int) -> list[tuple[Label, str]]:
    """Count and mean, side by side where there is room."""
    if count <= 1:
        return [(Label.COUNT, format_count(count))]
    number, mean = format_count(count), format_value(total / count, "ns")
    both = f"{number}  {Label.MEAN} {mean}"
    if width_of(both) <= room:
        return [(Label.COUNT, both)]
    return [(Label.COUNT, number), (Label.MEAN, mean)]


def _self(own: int, total: int, unit: str) -> str:
    """A frame's own value where it says more than that all or nothing is its own."""
    if not 0 < own < total:
        return ""
    return f"{format_value(own, unit)}  {format_percent(own, total)} {Label.OF_TOTAL}"


def _everywhere(view: TreeView, width: int) -> list[Line]:
    """Sums over all places of the name, where there are several."""
    tree = view.tree
    places, total, count = view.everywhere(int(tree.frame[view.cursor.node]))
    if places < 2:
        return []
    text = f"{format_value(total, tree.metric.unit)}  {format_percent(total, view.whole)}"
    if counts(tree, view.cursor.node):
        text = _fitting(width - LABEL, f"{text}  {format_count(count)}×", text)
    return listed(Label.PLACES, wrap(text, max(width - LABEL, 8), 4), format_count(places))


def _measured(
    view: TreeView, facts: Facts | None, palette: Palette, width: int
) -> list[list[Line]]:
    """What activities are made of."""
    frame, metric = view.tree.frames[int(view.tree.frame[view.cursor.node])], view.tree.metric
    samples = sample_lines(facts.sampled if facts else None, frame, palette, width)
    parts = any(view.tree.kind(above) in PART_KINDS for above in view.tree.path(view.cursor.node))
    if parts or metric.noun != "activities":
        return [samples, frame_blocks.note_lines(facts, width)]
    measured = metric.title if metric.unit == "ns" else "GPU time"
    everywhere = facts is not None and facts.everywhere
    title = f"{measured}, {Label.ALL_PLACES if everywhere else Label.EACH}"
    if facts and facts.latest:
        title += f" of the {Label.LATEST} {format_count(facts.latest)}"
    some = facts is not None or view.tree.count[view.cursor.node] > 1
    return [
        frame_blocks.distribution_lines(title, facts, width) if some else [],
        frame_blocks.note_lines(facts, width),
        samples,
        *work_lines(facts.work if facts else None, width),
        metric_lines(facts.measured if facts else None, facts.traffic if facts else None, width),
        [
            *frame_blocks.window_lines(facts, width),
            *frame_blocks.queue_lines(facts, width),
            *(frame_blocks.launch_lines(facts, width) if frame.kind in LAUNCHED else []),
        ],
    ]


def _around(view: TreeView, facts: Facts | None, width: int, clicks: bool) -> list[list[Line]]:
    """What it says besides, and what is below it."""
    frame = view.tree.frames[int(view.tree.frame[view.cursor.node])]
    several = facts is not None and facts.shapes is not None
    # The reasons of an instruction come with what they mean, below.
    children = [] if frame.kind == Kind.SASS else _children(view, width, clicks)
    return [_attributes(frame, several, width), children]


def _rest(view: TreeView, facts: Facts | None, width: int) -> list[list[Line]]:
    """What is above it, where it ran, and long texts."""
    frame = view.tree.frames[int(view.tree.frame[view.cursor.node])]
    return [
        _shapes(view, facts, width),
        _parents(view, facts, width),
        frame_blocks.place_lines(facts, width),
        _texts(view, frame, width),
    ]


def _children(view: TreeView, width: int, clicks: bool) -> list[Line]:
    tree = view.tree
    children = view.heaviest_children(view.cursor.node, _CHILDREN)
    parts = [
        Part(view.name(child), int(tree.total[child]), child if clicks else -1)
        for child in children
    ]
    return _parts(view, Label.BELOW, parts, int(tree.total[view.cursor.node]), width)


def _parents(view: TreeView, facts: Facts | None, width: int) -> list[Line]:
    """What is above the name at its several places."""
    if facts is None or facts.parents.number < 2:
        return []
    parts, number, whole = facts.parents
    title = f"{Label.ABOVE}, of {format_count(number)}"
    return _parts(view, Label.ABOVE, parts, whole, width, title)


def _names(view: TreeView, facts: Facts | None, width: int) -> list[Line]:
    """The heaviest of the names that are shown as one."""
    if facts is None or facts.names is None:
        return []
    parts, number, whole = facts.names
    parts = [part._replace(name=printable(part.name)) for part in parts]
    names = f"{format_count(number)} name{'' if number == 1 else 's'}, # shows all"
    return _parts(view, Label.NAMES, parts, whole, width, names)


def _shapes(view: TreeView, facts: Facts | None, width: int) -> list[Line]:
    """The heaviest shapes of an operator that was called with several."""
    if facts is None or facts.shapes is None:
        return []
    parts, number, whole = facts.shapes
    parts = [part._replace(name=printable(part.name)) for part in parts]
    title = f"{Label.HEAVIEST_SHAPES}, of {format_count(number)}"
    return _parts(view, Label.HEAVIEST_SHAPES, parts, whole, width, title, cut_start)


def _parts(
    view: TreeView,
    label: Label,
    parts: list[Part],
    whole: int,
    width: int,
    title: str = "",
    shortened: Callable[[str, int], str] = cut,
) -> list[Line]:
    """Each part's share of ``whole``, its value where there is room, and its name to click on."""
    if not whole or not parts:
        return []
    lines = [titled(label, width, title)]
    for name, value, node in parts:
        share = format_percent(value, whole).rjust(7)
        weight = format_value(value, view.tree.metric.unit).rjust(10) if width >= _ROOMY else ""
        text = shortened(name, max(width - len(weight) - len(share) - 2, 4))
        select = Action.SELECT.click(node) if node >= 0 else ""
        lines.append([Piece(share), Piece(weight, "dim"), Piece(f"  {text}", "", select)])
    return lines


def _attributes(frame: Frame, has_several: bool, width: int) -> list[Line]:
    """What the trace says of it; its shapes only if it does not have several."""
    captured = "when the CUDA graph was captured" if frame.get("captured") else ""
    keys = (key for key in _ATTRIBUTES if not (has_several and key == Label.SHAPES))
    rows = [(Label.OPEN, captured), *((key, frame.get(key)) for key in keys)]
    if frame.kind == Kind.KERNEL:
        rows.append((Label.CATEGORY, category_of_frame(frame)))
    return fields(rows, width)


def _texts(view: TreeView, frame: Frame, width: int) -> list[Line]:
    """Long texts, each under its title; the name too where it stands cut at the top."""
    shown = view.tree.name(view.cursor.node)
    texts = [(Label.NAME, shown if _is_cut(shown, width) else "")]
    names = ((key, frame.get(key)) for key in (Label.DEMANGLED, Label.MANGLED))
    texts += [(key, name) for key, name in names if name != shown]
    examples = view.tree.frames.examples.get(int(view.tree.frame[view.cursor.node]), ())
    texts += [(Label.PAYLOAD, text) for text in examples]
    lines: list[Line] = []
    above = None
    for label, text in texts:
        if text:
            lines += [titled(label, width)] if label != above else []
            lines += [[Piece(part)] for part in wrap(text, width, _TEXT_LINES)]
            above = label
    return lines


def _is_cut(name: str, width: int) -> bool:
    """Whether the summary has too few lines for ``name``."""
    return len(wrap(name, width, _TEXT_LINES)) > _SHORT_NAME_LINES
