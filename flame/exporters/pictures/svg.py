"""Write a flame graph as one SVG file: the icicle, to zoom and to search in any browser."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import BinaryIO

from flame.core.model.tree import StackTree
from flame.core.shown_text import printable
from flame.core.units import format_counted, format_value
from flame.exporters.pictures.icicle_svg import (
    ROW,
    PictureLimits,
    describe_frame,
    draw_frames,
    drawn_nodes,
)
from flame.exporters.pictures.svg_script import SCRIPT, STYLE

LIMITS = PictureLimits(smallest=0.00005, most=10_000, deepest=400)
"""What is drawn: more than in a picture that cannot be zoomed."""

HINT = "click: zoom   Backspace: out   Esc: all   /: search"
_ABOVE, _BELOW = 26, 8
"""Pixels above the frames, for the title, and below."""


def write(tree: StackTree, file: BinaryIO, *, title: str) -> list[str]:
    """Write ``tree``, whose total is not zero, as a picture called ``title``.

    It loads nothing from anywhere, and shows what it has without its script, too. Returns a note
    of the frames that are too small, or too many.
    """
    picture = draw(tree, title)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    file.write(f"{head}{picture[:-7]}<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n".encode())
    return left_out(tree)


def draw(tree: StackTree, title: str, *, limits: PictureLimits = LIMITS, hint: str = HINT) -> str:
    """Draw ``tree`` as an SVG element; it ends with its end tag.

    `svg_script` makes it answer, as ``hint`` says below the title; an empty one is left out.
    """
    nodes = drawn_nodes(tree, limits)
    height = (int(tree.depth[nodes].max()) + 1) * ROW
    frames = "".join(draw_frames(tree, nodes, partial(describe_frame, tree)))
    head = escape(printable(title))
    told = f'<text class="told" x="6" y="{2 * ROW}">{escape(hint)}</text>\n' if hint else ""
    above = _ABOVE + (ROW if hint else 0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flame" role="img" aria-label="{head}"'
        f' width="100%" height="{height + above + _BELOW}">\n<style>{STYLE}</style>\n'
        f'<rect width="100%" height="100%"/>\n<text x="6" y="{ROW}">{head}</text>\n{told}'
        f'<svg class="frames" y="{above}" width="100%" height="{height}">\n{frames}</svg>\n'
        "</svg>\n"
    )


def titled(tree: StackTree, name: str) -> str:
    """Say what a picture of ``tree``, of the trace ``name``, shows."""
    total = format_value(int(tree.total[0]), tree.metric.unit)
    return f"{name}: {tree.metric.title} {total} by {', '.join(tree.levels)}"


def left_out(tree: StackTree) -> list[str]:
    """Say how many frames of ``tree`` are not in its picture."""
    missing = len(tree) - len(drawn_nodes(tree, LIMITS))
    if not missing:
        return []
    frames = format_counted(missing, "frame is", "frames are")
    return [f"{frames} left out of the picture: {LIMITS.words}"]
