"""Draw a stack tree as a static icicle in SVG: no script, a tooltip says what each frame is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from html import escape
from typing import NamedTuple

import numpy as np

from flame.core.analysis.words.formats import short_place
from flame.core.columns import I8
from flame.core.model.frames import PART_KINDS
from flame.core.model.tree import StackTree
from flame.core.shown_text import cut, printable
from flame.core.units import format_counted, format_percent, format_value, one_of


class PictureLimits(NamedTuple):
    """Bound a picture: the part of the whole that a frame needs, how many frames, and rows."""

    smallest: float
    most: int
    deepest: int

    @property
    def words(self) -> str:
        """Say which frames are left out."""
        text = f"less than {100 * self.smallest:g} % of all, below {self.deepest} others,"
        return f"{text} or not among the {self.most:,} largest"


LIMITS = PictureLimits(smallest=0.0005, most=4_000, deepest=120)
"""Half a pixel of a picture of 1,000; browsers are slow with more."""

ROW, _GAP = 18, 1
_WIDEST, _LETTER = 1_600, 6.6
"""Pixels of a wide window, and of a letter."""

_LEAST_TEXT, _LONGEST_TITLE = 2, 400


def icicle_svg(tree: StackTree, *, folded: bool = False) -> str:
    """Draw ``tree``, and say below it which frames are left out; a sentence where it is empty.

    ``folded`` says that names have a ``*`` in place of numbers.
    """
    whole = int(tree.total[0])
    if not whole:
        return f"<p>nothing to draw: {escape(tree.metric.title)} is zero</p>\n"
    nodes = drawn_nodes(tree)
    height = (int(tree.depth[nodes].max()) + 1) * ROW
    frames = "".join(draw_frames(tree, nodes, partial(describe_frame, tree)))
    title = f"{tree.metric.title} {format_value(whole, tree.metric.unit)}"
    label = escape(f"{title} by {', '.join(tree.levels)}")
    notes = _left_out(len(tree) - len(nodes))
    if folded:
        notes += '<p class="note">* stands for numbers: --no-fold-numbers shows all of them</p>\n'
    return (
        f'<p class="note">{label}</p>\n<svg class="icicle" role="img" aria-label="{label}"'
        f' width="100%" height="{height}">\n{frames}</svg>\n{notes}'
    )


def drawn_nodes(tree: StackTree, limits: PictureLimits | None = None) -> I8:
    """Choose the nodes that are drawn, in preorder: what stands above one is drawn, too."""
    limits = limits or LIMITS
    least = max(limits.smallest * int(tree.total[0]), 1)
    wide = np.flatnonzero((tree.total >= least) & (tree.depth < limits.deepest))
    # No node is larger than its parent, which comes before it.
    heaviest = wide[np.argsort(-tree.total[wide], kind="stable")[: limits.most]]
    return np.sort(heaviest)


def _left_out(number: int) -> str:
    if not number:
        return ""
    frames = format_counted(number, "frame is", "frames are")
    return f'<p class="note">{frames} left out: {LIMITS.words}</p>\n'


class FrameLook(NamedTuple):
    """Say how a frame looks: ``attribute`` of its box, the ``name`` in it, lines of its tooltip."""

    attribute: str
    name: str
    lines: tuple[str, ...]


def draw_frames(tree: StackTree, nodes: I8, look: Callable[[int], FrameLook]) -> Iterator[str]:
    """Draw ``nodes`` of ``tree``, each as ``look`` says."""
    whole = int(tree.total[0])
    left, share = 100 * tree.x[nodes] / whole, 100 * tree.total[nodes] / whole
    columns = (nodes.tolist(), left.tolist(), share.tolist(), tree.depth[nodes].tolist())
    for node, x, width, depth in zip(*columns, strict=True):
        one = look(node)
        title = escape("\n".join(cut(line, _LONGEST_TITLE) for line in one.lines))
        yield (
            f'<svg x="{x:.6f}%" y="{depth * ROW}" width="{width:.6f}%" height="{ROW - _GAP}"'
            f" {one.attribute}><title>{title}</title>"
            f'<rect width="100%" height="100%"/>{_text(one.name, width)}</svg>\n'
        )


def describe_frame(tree: StackTree, node: int) -> FrameLook:
    """Colour the frame of ``node`` by its kind, and tell its numbers and where it is."""
    name = printable(tree.name(node))
    return FrameLook(f'class="{tree.kind(node).title}"', name, (name, _facts(tree, node)))


def _text(name: str, percent: float) -> str:
    """The name, as much of it as may have room; the frame cuts off what has not."""
    room = int(percent / 100 * _WIDEST / _LETTER)
    return f'<text x="3" y="13">{escape(cut(name, room))}</text>' if room > _LEAST_TEXT else ""


def _facts(tree: StackTree, node: int) -> str:
    metric, total = tree.metric, int(tree.total[node])
    words = [f"{format_value(total, metric.unit)}, {format_percent(total, int(tree.total[0]))}"]
    if metric.noun == "activities" and tree.kind(node) not in PART_KINDS:
        count = int(tree.count[node])
        words.append(format_counted(count, one_of(metric.noun), metric.noun))
    if place := short_place(tree.frames[int(tree.frame[node])]):
        words.append(printable(place))
    return ", ".join(words)
