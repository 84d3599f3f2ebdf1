"""Write the details on three lines, for screens that have no room for more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flame.core.analysis.words.busy import busy_share
from flame.core.analysis.words.formats import Terms, kind_word, short_place
from flame.core.units import format_count, format_ns, format_percent, format_value
from flame.tui.details.blocks.frame_blocks import format_ratio
from flame.tui.details.blocks.memory_blocks import memory_words
from flame.tui.details.blocks.metric_blocks import metric_words
from flame.tui.details.blocks.root_blocks import part_name
from flame.tui.details.blocks.work_blocks import work_words
from flame.tui.details.facts import Facts
from flame.tui.details.labels import Label
from flame.tui.details.parts import HeaviestParts
from flame.tui.details.root_facts import RootFacts, has_root_facts
from flame.tui.session.tree_view import TreeView
from flame.tui.session.wording import counts
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, printable, width_of

LINES = 3
_TITLE = 10
_LEAST_NAME = 12
_DOT = " · "


def compact(
    view: TreeView,
    palette: Palette,
    width: int,
    facts: Facts | None,
    terms: Terms,
    clicks: bool,
    remarks: Iterable[tuple[Label, str]] = (),
) -> list[Line]:
    """Write `LINES` lines about ``view``'s selected frame: what it is, weighs, and is made of.

    Of the root: how busy the GPUs were, and the heaviest kernel, layer and function. ``clicks``
    makes these clickable, as only those of the projected tree are. ``remarks`` are what else is
    known of the root.
    """
    if clicks and not view.cursor.node and has_root_facts(view.tree):
        return _root(facts.root if facts else None, width, terms, remarks)
    head, weights = _head(view, palette, width, terms), fitting(_weights(view), width)
    return [head, weights, fitting(_spread(facts), width)]


def _head(view: TreeView, palette: Palette, width: int, terms: Terms) -> Line:
    """Kind and name, and where it stands in the sources."""
    tree, node = view.tree, view.cursor.node
    frame = tree.frames[int(tree.frame[node])]
    kind = Piece(f" {kind_word(frame, terms)} ", palette.kind(frame.kind))
    place = short_place(frame)
    place = f"  {printable(place)}" if place else ""
    room = width - line_width([kind]) - 1 - width_of(place)
    if room < _LEAST_NAME:
        place, room = "", room + width_of(place)
    return [kind, Piece(f" {cut(view.name(node), room)}", "strong"), Piece(place, "dim")]


def _weights(view: TreeView) -> Iterator[str]:
    tree, node = view.tree, view.cursor.node
    unit, total, count = tree.metric.unit, int(tree.total[node]), int(tree.count[node])
    share = f"{format_percent(total, view.whole)} {Label.OF_ALL}"
    yield f"{Label.TOTAL} {format_value(total, unit)}  {share}"
    if counts(tree, node):
        yield f"{format_count(count)}×"
        if count > 1:
            yield f"{Label.MEAN} {format_value(total / count, unit)}"
    if node:
        yield f"{format_percent(total, int(tree.total[tree.parent[node]]))} {Label.OF_PARENT}"
    own = int(tree.own[node])
    if 0 < own < total:
        yield f"{Label.SELF} {format_value(own, unit)}"
    places = view.everywhere(int(tree.frame[node]))
    if places.places > 1:
        yield f"{format_count(places.places)} {Label.PLACES} {format_value(places.total, unit)}"


def _spread(facts: Facts | None) -> Iterator[str]:
    """How long each took, and how long they were queued."""
    if facts is None:
        yield "…"
        return
    if facts.memory is not None:
        yield from memory_words(facts.memory)
    found = facts.spread
    if found is not None and found.count > 1:
        about = "≈" if found.estimated else ""
        yield f"{Label.P50} {about}{format_ns(found.p50)}"
        yield f"{Label.P99} {about}{format_ns(found.p99)}"
        yield f"{Label.MAX} {format_ns(found.maximum)}"
        if found.tail:
            yield f"{Label.TAIL} {format_ratio(found.tail)}"
    yield from work_words(facts.work)
    yield from metric_words(facts.measured)
    if facts.queue is not None:
        yield f"{Label.QUEUED} {Label.P50} {format_ns(facts.queue.p50)}"
    yield from facts.notes


def fitting(facts: Iterable[str], width: int) -> Line:
    """Write as many of ``facts`` as fit, the first always."""
    text = ""
    for fact in facts:
        longer = f"{text}{_DOT}{fact}" if text else f" {fact}"
        if text and width_of(longer) > width:
            break
        text = longer
    return [Piece(cut(text, width))]


def _root(
    found: RootFacts | None, width: int, terms: Terms, remarks: Iterable[tuple[Label, str]]
) -> list[Line]:
    if found is None:
        return [[Piece(" root ", "strong"), Piece("…", "dim")], [], []]
    layers = (Label.LAYERS, found.modules) if found.modules.number else (terms.all, found.ranges)
    named = [(Label.KERNELS, found.kernels), layers, (Label.FUNCTIONS, found.functions)]
    there = [(title, parts) for title, parts in named if parts.number and parts.whole]
    lines = [_heaviest(title, parts, width) for title, parts in there]
    busy = fitting((*_busy(found), *(text for _, text in remarks)), width)
    # Where two are known, there is a line left for how busy the GPUs were.
    lines = lines if len(lines) == LINES else [busy, *lines]
    return [*lines, [], []][:LINES]


def _busy(found: RootFacts) -> Iterator[str]:
    for each in found.busy:
        label = f"{each.found.label} " if each.found.label else ""
        busy, idle = busy_share(each.found), format_ns(each.found.idle)
        yield f"{label}{Label.BUSY} {busy} {Label.IDLE} {idle}"


def _heaviest(title: str, parts: HeaviestParts, width: int) -> Line:
    """The heaviest of a kind, as many as there is room for; a click selects one."""
    line: Line = [Piece(f" {title}".ljust(_TITLE), "dim")]
    for part in parts.heaviest:
        share = f" {format_percent(part.value, parts.whole)} "
        room = width - line_width(line) - width_of(share)
        if room < _LEAST_NAME:
            break
        name = part_name(part, min(room, max(width // 3, _LEAST_NAME)))
        line += [Piece(share, "strong"), name]
    return line
