"""Compose the single lines around the views: header, path, status and keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flame.core.analysis.utilization import utilizations
from flame.core.analysis.words.busy import BusyWords, busy_words
from flame.core.analysis.words.formats import Terms, coverage_of, level_word, terms_of
from flame.core.columns import unique
from flame.core.compare.amounts import change_counts, change_words
from flame.core.compare.colouring import Colouring
from flame.core.model.allocator.recorded import MemoryOfDevice
from flame.core.model.frames import ACTIVITY_KINDS, Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import Order, StackTree
from flame.core.projection.filters import Filter
from flame.core.projection.levels import MADE_LEVELS
from flame.core.projection.selection import Selection
from flame.core.units import (
    format_bytes,
    format_count,
    format_counted,
    format_ns,
    format_percent,
    format_value,
    format_whole_percent,
    one_of,
)
from flame.tui.session.tree_view import TreeView
from flame.tui.session.wording import counts, whole_of
from flame.tui.shell.actions import Action
from flame.tui.shell.command import Command
from flame.tui.toolkit.colours import LEVEL_KINDS
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, cut_start, width_of
from flame.tui.widgets.gpus import count_models

GOOD_COVERAGE = 95.0
ARROW = " ▸ "
_DOT = " · "
_LEAST_CONTENTS = 36
_LONGEST_NAME = 40
_USUAL_NAME = 24
_LEAST_NAME = 8
"""Cells of the file's name at most, where more can be said, and in any case."""

_CRUMBS = 64
_LEAST_CRUMB = 8


class HeaderNotes(NamedTuple):
    """Hold how many ``findings`` there are, and how near the GPUs were to their peak."""

    findings: Piece | None = None
    work: str = ""


NO_NOTES = HeaderNotes()


def header(
    title: str,
    profile: Profile,
    selection: Selection,
    tree: StackTree,
    palette: Palette,
    width: int,
    usual: Order = "weight",
    notes: HeaderNotes = NO_NOTES,
) -> Line:
    """File and what is in it on the left; metric, levels and coverage on the right.

    ``usual`` is the order of siblings that is not worth a word.
    """
    unusual = [notes.findings, Piece("  ")] if notes.findings else []
    unusual += modes(selection, usual, profile.has_forward)
    right = [*unusual, *choices(tree, palette, terms_of(profile))]
    gap = coverage_gap(profile)
    if gap:
        right += [Piece("  "), Piece(gap, "warning", Action.COVERAGE.click())]
    left: Line = [Piece(" flame ", "accent")]
    room = width - line_width(left) - line_width(right) - 2
    if room < _LEAST_CONTENTS:
        right = [*unusual, *metric_choice(tree)]
        room = width - line_width(left) - line_width(right) - 2
    left.append(Piece(" " + _contents(title, profile, selection.where, notes.work, room - 1)))
    space = max(width - line_width(left) - line_width(right), 1)
    return [*left, Piece(" " * space), *right]


def _contents(
    title: str, profile: Profile, where: tuple[Filter, ...], work: str, width: int
) -> str:
    """File name and, as far as there is room, GPUs, how busy they were, number of activities."""
    found = list(_facts(profile, where, work))
    for facts in found:
        text = " · ".join(filter(None, facts))
        room = min(width - len(_DOT) - width_of(text), _LONGEST_NAME)
        if room >= min(width_of(title), _LEAST_NAME if facts is found[-1] else _USUAL_NAME):
            return _DOT.join(filter(None, (cut(title, room), text)))
    return cut(title, max(min(width, _LONGEST_NAME), 1))


def _facts(profile: Profile, where: tuple[Filter, ...], work: str) -> Iterator[tuple[str, ...]]:
    """What is said of the trace, and what instead where there is less room."""
    if profile.memory is not None and profile.resolved:
        yield from _memory(profile.memory.devices)
        return
    if profile.resolved:
        yield _measured(profile), _rows(profile)
        yield (_measured(profile),)
        return
    gpus, number, busy = _gpus(profile), _rows(profile), _busy(profile, where)
    if not busy.length:
        yield gpus, _gpu_time(profile), number
        yield gpus, _gpu_time(profile)
        yield (_gpu_time(profile),)
        return
    if work:
        yield gpus, busy.length, busy.busy, work, busy.idle, number
        yield gpus, busy.length, busy.busy, work
        yield busy.length, busy.busy, work
        yield busy.busy, work
    for share in filter(None, (busy.each, busy.busy)):
        yield gpus, busy.length, share, busy.idle, number
        yield gpus, busy.length, share, busy.idle
    yield gpus, busy.length, busy.busy
    yield busy.length, busy.busy
    yield (busy.busy or busy.length,)


def _memory(devices: Sequence[MemoryOfDevice]) -> Iterator[tuple[str, ...]]:
    """Peak, end and reserved of the GPU that held most, and what failed on any."""
    fullest = max(devices, key=lambda each: each.peak)
    gpus = f"{len(devices)} GPUs, of the fullest: " if len(devices) > 1 else ""
    failed = sum(len(each.out_of_memory) for each in devices)
    oom = format_counted(failed, "failed request", "failed requests") if failed else ""
    peak, end = f"peak {format_bytes(fullest.peak)}", f"end {format_bytes(fullest.live_end)}"
    reserved = f"reserved {format_bytes(fullest.parts.reserved)}" if fullest.parts else ""
    yield f"{gpus}{peak}", end, reserved, oom
    yield peak, end, reserved, oom
    yield peak, oom
    yield (peak,)


def _busy(profile: Profile, where: tuple[Filter, ...]) -> BusyWords:
    """How busy the GPUs were; not of a recording that goes on, which changes all the time."""
    return BusyWords() if profile.totals else busy_words(utilizations(profile, where))


def _gpu_time(profile: Profile) -> str:
    return format_ns(profile.gpu_time) if profile.size else "nothing ran on a GPU"


def _measured(profile: Profile) -> str:
    """What a file of stacks has measured in all: ``285 samples``, ``time 28.0 s``."""
    metric = profile.metrics[0]
    value = format_value(whole_of(profile), metric.unit)
    return f"{value} {metric.title}" if metric.unit == "count" else f"{metric.title} {value}"


def _rows(profile: Profile) -> str:
    number = profile.size
    word = profile.metrics[0].noun if profile.resolved else "GPU activities"
    return format_counted(number, one_of(word), word) if number else ""


def _gpus(profile: Profile) -> str:
    return count_models(device.name for device in profile.devices)


def modes(selection: Selection, usual: Order, linked: bool) -> Line:
    """Return a word for everything that makes the picture other than usual; a click takes it back.

    And for backward passes below forward operators, where the trace is ``linked``.
    """
    layout, naming = selection.layout, selection.naming
    names = naming.kernel_names
    words = [
        ("inverted", Action.INVERT.click(), layout.inverted),
        ("recursion collapsed", Action.COLLAPSE.click(), layout.collapsed),
        (f"by {layout.order}", Action.SORT.click(1), layout.order != usual),
        ("layers folded", Action.LEVELS.click(), naming.fold),
        (f"{names} names", Action.KERNEL_NAMES.click(1), names != "short"),
        (f"by {selection.colours}", Action.COLOURS.click(), selection.colours != "level"),
        ("forward", Action.FORWARD.click(), selection.forward and linked),
    ]
    line: Line = []
    for word, action, on in words:
        if on:
            line += [Piece(word, "warning", action), Piece("  ")]
    return line


def metric_choice(tree: StackTree) -> Line:
    """Return the metric, which a click lets choose."""
    return [Piece(f"{tree.metric.title} ▾", "key", Action.METRICS.click())]


def choices(tree: StackTree, palette: Palette, terms: Terms) -> Line:
    """Return metric and levels; each level in its colour, as the icicle's legend."""
    line = [*metric_choice(tree), Piece("  ")]
    for place, level in enumerate(shown_levels(tree)):
        line += [Piece("›", "dim")] if place else []
        word = f" {level_word(level, terms)} "
        line.append(Piece(word, palette.kind(LEVEL_KINDS[level]), Action.LEVELS.click()))
    return line


def shown_levels(tree: StackTree) -> list[str]:
    """Return the levels of ``tree`` that have any frame in it."""
    kinds = map(Kind, unique(tree.frames.kind[tree.frame]).tolist())
    titles = {"kernel" if kind in ACTIVITY_KINDS else kind.title for kind in kinds}
    # What stands in a stack that a file has resolved may be of any kind.
    titles |= {"stack"} | ({*MADE_LEVELS} if titles & {"python", "nvtx"} else set())
    titles |= {"phase"} if "category" in titles else set()
    return [level for level in tree.levels if level in titles]


def coverage_gap(profile: Profile) -> str:
    """Tell how much of the GPU time has a launch and a range, where that is below 95 %."""
    if profile.resolved or not profile.gpu_time:
        return ""
    coverage = coverage_of(profile)
    low = [
        f"{format_whole_percent(share.percent)} {name}"
        for name, share in (coverage["launch"], coverage["nvtx"])
        if share.percent < GOOD_COVERAGE
    ]
    return f"coverage {' '.join(low)} " if low else ""


def tabs(titles: dict[str, str], current: str, width: int) -> Line:
    """Return the views to choose from, or only the ``current`` one where they do not fit."""
    line = [
        Piece(f" {title} ", "accent" if name == current else "key", Action.SHOW_VIEW.click(name))
        for name, title in titles.items()
    ]
    chosen = [piece for piece in line if piece.tone == "accent"]
    return line if line_width(line) <= width else chosen


def breadcrumb(view: TreeView, width: int) -> Line:
    """Return the way from the root to the zoomed frame, and on (dim) to the selected one."""
    nodes = _way(view)
    crumbs = [_crumb(view, node) for node in nodes]
    if view.viewport.zoom != view.viewport.zoom_of(view.viewport.zoom.node):
        stretch = Piece("a part of it", "strong")
        crumbs.insert(
            nodes.index(view.viewport.zoom.node) + 1 if view.viewport.zoom.node in nodes else 1,
            stretch,
        )
    return _fitting(crumbs, width - 1)


def _way(view: TreeView) -> list[int]:
    """The root and the closest frames above the selected one: deep stacks have thousands."""
    nodes: list[int] = []
    node = view.cursor.node
    while node > 0 and len(nodes) < _CRUMBS:
        nodes.append(node)
        node = int(view.tree.parent[node])
    return [0, *nodes[::-1]]


def _crumb(view: TreeView, node: int) -> Piece:
    zoomed = view.tree.depth[node] <= view.tree.depth[view.viewport.zoom.node]
    name = cut(view.name(node), 40)
    return Piece(name, "strong" if zoomed else "dim", Action.ZOOM_TO.click(node))


def _fitting(crumbs: list[Piece], width: int) -> Line:
    """The first crumb and as many of the last as fit, ``…`` for those between."""
    line: Line = [Piece(" "), crumbs[0]]
    room = width - line_width(line)
    kept: list[Piece] = []
    for crumb in reversed(crumbs[1:]):
        reserve = 0 if len(kept) + 2 == len(crumbs) else len(ARROW) + 1
        need = len(ARROW) + width_of(crumb.text)
        if need > room - reserve:
            break
        room -= need
        kept.append(crumb)
    if len(kept) + 1 < len(crumbs):
        line += [Piece(ARROW, "dim"), Piece("…", "dim")]
        room -= len(ARROW) + 1
    if not kept and len(crumbs) > 1 and room > len(ARROW) + _LEAST_CRUMB:
        kept = [crumbs[-1]._replace(text=cut(crumbs[-1].text, room - len(ARROW)))]
    for crumb in reversed(kept):
        line += [Piece(ARROW, "dim"), crumb]
    return line


def frame_status(view: TreeView, node: int, width: int) -> Line:
    """Return a frame on one line: its name and what it weighs."""
    tree = view.tree
    total, unit = int(tree.total[node]), tree.metric.unit
    facts = [format_value(total, unit), f"{format_percent(total, view.whole)} of all"]
    often = f"{format_count(int(tree.count[node]))}×"
    if isinstance(view.colouring, Colouring):
        changes, amounts = view.colouring.sides.changes, view.colouring.sides.amounts
        facts = [*change_words(changes, node, amounts)]
        often = change_counts(changes, node, amounts)
    facts += [often] if counts(tree, node) else []
    text = " · ".join(facts)
    name = cut(view.name(node), max(width - width_of(text) - 4, 8))
    return [Piece(f" {name}"), Piece(f"  {text}", "dim")]


def search_status(view: TreeView, width: int) -> Line:
    """Say what the search found: frames, their share with nested matches counted once, where."""
    result = view.matches.result
    if result is None:
        return frame_status(view, view.cursor.node, width)
    matches, unit = result.matches, view.tree.metric.unit
    place, here = view.matches.place_of(view.cursor.node)
    share = format_percent(matches.total, view.whole)
    total = f"{format_value(matches.total, unit)} · {share} of all"
    changes = view.matching_changes()
    if isinstance(view.colouring, Colouring) and changes is not None:
        total = " · ".join(change_words(changes, 0, view.colouring.sides.amounts))
    facts = f" {format_counted(matches.nodes, 'frame', 'frames')} · {total}"
    if not matches.nodes:
        return [Piece(" no frame matches", "warning")]
    if place:
        facts += f" · match {place} of {here}"
    elif not here:
        facts += " · none in the zoomed part"
    return [Piece(cut_start(facts, width))]


def footer(keys: Sequence[Command], width: int) -> Line:
    """Return as many of ``keys`` as fit, in order; the last two always."""
    ends = [_key(key) for key in keys[-2:]]
    room = width - sum(map(line_width, ends))
    line: Line = []
    for key in keys[:-2]:
        pieces = _key(key)
        if line_width(pieces) > room:
            break
        room -= line_width(pieces)
        line += pieces
    return [*line, *(piece for end in ends for piece in end)]


def _key(key: Command) -> Line:
    action = f"screen.{key.action}"
    return [Piece(f" {key.shown.split()[0]}", "key", action), Piece(f" {key.label} ", "", action)]
