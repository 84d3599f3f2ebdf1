"""Write what is known of a frame on both sides: what it was, is, and why it has changed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.analysis.distribution import Distribution
from flame.core.analysis.words.formats import Terms, kind_word
from flame.core.columns import I8
from flame.core.compare.amounts import Amounts, change_counts, change_words, format_ratio
from flame.core.compare.colouring import Colouring
from flame.core.units import BLOCKS, format_count, format_ns
from flame.tui.diff.evidence_rows import evidence_rows, evidence_word
from flame.tui.diff.facts import BINS, SideFacts, TwoHistograms
from flame.tui.diff.rank_facts import DiffRankFacts, spread_lines, worst_lines
from flame.tui.diff.sampled.blocks import sampled_lines
from flame.tui.session.tree_view import TreeView
from flame.tui.session.wording import counts
from flame.tui.shell.actions import Action
from flame.tui.toolkit.fields import LABEL, fields, labelled
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, width_of, wrap

_NAME_LINES = 4
_LINES = 6
_CHILDREN = 8
_CELL = 9
_NUMBERS = ("p50", "p95", "p99", "max")
_DOT = " · "
_TIMES = Amounts("ns")
LINES = 3


def details(
    view: TreeView,
    colouring: Colouring,
    palette: Palette,
    width: int,
    facts: SideFacts | None,
    terms: Terms,
    *,
    clicks: bool,
) -> list[Line]:
    """Write lines about ``view``'s selected frame; ``facts`` is what is known so far.

    ``clicks`` makes its children clickable, which only those of the projected tree are.
    """
    node = view.cursor.node
    parts = [
        [
            *_head(view, palette, width, terms),
            *fields(_rows(view, colouring, node), width),
            *_evidence(view, colouring, width),
        ],
        _facts(view, colouring, facts, width, clicks),
        sampled_lines(facts.sampled, view.tree.kind(node), width) if facts else [],
        _children(view, colouring, width, clicks),
    ]
    lines: list[Line] = []
    for part in filter(None, parts):
        lines += [[], *part] if lines else part
    return lines


def compact(
    view: TreeView, colouring: Colouring, palette: Palette, width: int, terms: Terms
) -> list[Line]:
    """Write `LINES` lines about ``view``'s selected frame, for screens without more room."""
    node = view.cursor.node
    changes, amounts = colouring.sides.changes, colouring.sides.amounts
    word = Piece(f" {_word(view, terms)} ", palette.kind(view.tree.kind(node)))
    name = Piece(f" {cut(view.name(node), width - line_width([word]) - 1)}", "strong")
    changed = (*change_words(changes, node, amounts), evidence_word(view, colouring))
    causes = [f"{label} {text}" for label, text in _causes(view, colouring, node)]
    return [
        [word, name],
        [Piece(cut(f" {_DOT.join(filter(None, changed))}", width))],
        [Piece(cut(f" {_DOT.join(causes)}", width))],
    ]


def _word(view: TreeView, terms: Terms) -> str:
    return kind_word(view.tree.frames[int(view.tree.frame[view.cursor.node])], terms)


def _head(view: TreeView, palette: Palette, width: int, terms: Terms) -> list[Line]:
    node = view.cursor.node
    frame = view.tree.frames[int(view.tree.frame[node])]
    source = f"{frame.file}:{frame.line}" if frame.file and frame.line else frame.file
    return [
        [Piece(f" {_word(view, terms)} ", palette.kind(frame.kind))],
        *([Piece(part, "strong")] for part in wrap(view.name(node), width, _NAME_LINES)),
        *fields([("source", source)], width),
        [],
    ]


def _rows(view: TreeView, colouring: Colouring, node: int) -> Iterator[tuple[str, str]]:
    """What it was and is, and what of the change is its own."""
    sides = colouring.sides
    changes, own, amounts = sides.changes, sides.own_changes, sides.amounts
    behind = f" {sides.basis.words}" if sides.basis.words else ""
    for label, side in (("BASE", changes.base), ("NEW", changes.new)):
        there = bool(side.count[node] or side.total[node])  # of instructions few are of any launch
        yield label, f"{amounts.value(float(side.value[node]))}{behind}" if there else "–"
    yield "change", _changed(colouring, node)
    yield from _causes(view, colouring, node)
    if own.delta[node] and view.tree.end[node] > node + 1:
        yield "self", amounts.delta(float(own.delta[node]))
    places = view.everywhere(int(view.tree.frame[node])).places
    yield "places", format_count(places) if places > 1 else ""


def _evidence(view: TreeView, colouring: Colouring, width: int) -> Iterator[Line]:
    """Whether it has changed beyond noise, in words."""
    for label, text in evidence_rows(view, colouring):
        room = max(width - LABEL, 8) if label else width
        lines = wrap(text, room, _LINES, prose=True)
        yield from labelled(label, lines) if label else ([Piece(line, "dim")] for line in lines)


def _changed(colouring: Colouring, node: int) -> str:
    changes = colouring.sides.changes
    if changes.is_new[node]:
        return "only in NEW"
    if changes.is_gone[node]:
        return "only in BASE"
    delta = float(changes.delta[node])
    amount, part = colouring.sides.amounts.delta(delta), format_ratio(float(changes.ratio[node]))
    return f"{amount}  {part}" if delta else "none"


def _causes(view: TreeView, colouring: Colouring, node: int) -> Iterator[tuple[str, str]]:
    """More often, or longer each: where activities are counted."""
    if not counts(view.tree, node):
        return
    changes, amounts = colouring.sides.changes, colouring.sides.amounts
    if changes.delta[node] and changes.base.count[node] and changes.new.count[node]:
        yield "by count", amounts.delta(float(changes.by_count[node]))
        yield "by duration", amounts.delta(float(changes.by_duration[node]))
    yield "count", change_counts(changes, node, amounts)
    means = [
        (float(side.mean[node]), int(side.count[node])) for side in (changes.base, changes.new)
    ]
    yield "mean", " → ".join(format_ns(mean) if count else "–" for mean, count in means)


def _children(view: TreeView, colouring: Colouring, width: int, clicks: bool) -> list[Line]:
    """What has changed most right below it."""
    node, changes = view.cursor.node, colouring.sides.changes
    children = _changed_most(view, changes.delta, node)
    lines: list[Line] = [[Piece("changed most below", "dim")]] if len(children) else []
    for child in children.tolist():
        delta = colouring.sides.amounts.delta(float(changes.delta[child])).rjust(_CELL + 2)
        name = cut(view.name(child), max(width - width_of(delta) - 2, 4))
        lines.append(
            [Piece(delta), Piece(f"  {name}", "", Action.SELECT.click(child) if clicks else "")]
        )
    return lines


def _changed_most(view: TreeView, delta: np.ndarray, node: int) -> I8:
    """The children of ``node`` that have changed at all, those first that have done so most."""
    tree = view.tree
    below = int(tree.depth[node]) + 1
    row = tree.rows[below] if below < len(tree.rows) else np.zeros(0, np.int64)
    first, last = np.searchsorted(row, [node + 1, int(tree.end[node])])
    children = row[first:last]
    size = np.abs(delta[children])
    if len(children) > _CHILDREN:  # in a tenth of the time that it takes to order all
        some = np.flatnonzero(size >= np.partition(size, -_CHILDREN)[-_CHILDREN])
        children, size = children[some], size[some]
    most: I8 = children[np.argsort(-size, kind="stable")][: min(_CHILDREN, np.count_nonzero(size))]
    return most


def _facts(
    view: TreeView, colouring: Colouring, facts: SideFacts | None, width: int, here: bool
) -> list[Line]:
    """How ranks or activities differ, of what is selected ``here`` or of all of its places."""
    if facts is not None and facts.ranks is not None:
        return _over_ranks(facts, facts.ranks, colouring.sides.amounts, width, here)
    return _distributions(facts, width, here) if counts(view.tree, view.cursor.node) else []


def _over_ranks(
    facts: SideFacts, ranks: DiffRankFacts, amounts: Amounts, width: int, here: bool
) -> list[Line]:
    lines: list[Line] = [] if here else [[Piece("at all places", "dim")]]
    lines += spread_lines(ranks, amounts, width)
    if facts.histograms:
        lines += _histograms(facts.histograms, width, amounts)
    return [*lines, *worst_lines(ranks, amounts, width)]


def _distributions(facts: SideFacts | None, width: int, here: bool) -> list[Line]:
    """Percentiles of both sides, one below the other, and their histograms on one axis.

    They are of what is selected ``here``, or of all places of its name.
    """
    if facts is None:
        return [[Piece("each …", "dim")]]
    if facts.base is None and facts.new is None:
        lack = next(filter(None, facts.lacks), "")
        return [[Piece(f"each {lack}", "dim")]] if lack else []
    cell = min(max((width - 5) // len(_NUMBERS), 7), 12)
    head = "each " + "".join(name.rjust(cell) for name in _NUMBERS)
    lines: list[Line] = [] if here else [[Piece("at all places", "dim")]]
    lines.append([Piece(head, "dim")])
    sides = zip(("BASE", "NEW"), (facts.base, facts.new), facts.lacks, strict=True)
    lines += [_quantiles(label, found, cell, lack) for label, found, lack in sides]
    if facts.histograms is None:
        return lines
    return [*lines, *_histograms(facts.histograms, width, _TIMES)]


def _quantiles(label: str, found: Distribution | None, cell: int, lack: str) -> Line:
    if found is None and lack:
        return [Piece(f"{label:5}  {lack}", "dim")]
    if found is None:
        return [Piece(f"{label:5}", "dim"), Piece("–".rjust(cell))]
    values = [format_ns(value) for value in (found.p50, found.p95, found.p99, found.maximum)]
    texts = [value.replace(" ", "") if len(value) >= cell else value for value in values]
    return [Piece(f"{label:5}", "dim"), Piece("".join(text.rjust(cell) for text in texts))]


def _histograms(found: TwoHistograms, width: int, amounts: Amounts) -> list[Line]:
    cells = max(cells for cells in range(1, max(width - 5, 1) + 1) if BINS % cells == 0)
    lines: list[Line] = [
        [Piece(f"{label:5}", "dim"), Piece(_bars(side.reshape(cells, -1).sum(axis=1)))]
        for label, side in (("BASE", found.base), ("NEW", found.new))
    ]
    low, high = amounts.value(found.low), amounts.value(found.high)
    scale = ("log scale" if found.log else "").center(max(cells - len(low) - len(high), 0))
    return [*lines, [Piece(f"{'':5}{low}{scale}{high}", "dim")]]


def _bars(numbers: I8) -> str:
    """A bar for each number, the largest as high as a line; all but zero leaves a mark."""
    top = len(BLOCKS) - 1
    heights = np.ceil(numbers * (float(top) / max(int(numbers.max()), 1))).astype(int)
    return "".join(BLOCKS[height] for height in heights.tolist())
