"""Draw both sides of a comparison as a static icicle in SVG, coloured by what has changed."""

from __future__ import annotations

from html import escape

from flame.core.compare.amounts import change_counts, change_words
from flame.core.compare.changes import Width
from flame.core.compare.colouring import Colouring
from flame.core.compare.comparison import Comparison
from flame.core.compare.noise.beyond_noise import NoiseMarks, find_beyond_noise
from flame.core.compare.sided_tree import sided
from flame.core.errors import NoMatchError
from flame.core.shown_text import printable
from flame.exporters.pictures.icicle_svg import ROW, FrameLook, draw_frames, drawn_nodes

_WIDE, _MARGIN = 1_600, 30
"""Pixels of the picture, and of the line above it."""

_NONE, _GREW, _SHRANK = (0xDD, 0xDD, 0xE2), (0xE6, 0x78, 0x14), (0x32, 0x82, 0xC8)
_ONE_SIDED = {"+": (0xE8, 0xC8, 0x28), "−": (0x50, 0xA8, 0x78)}
"""Colours of what did not change, of what did most, and of what is on one side only."""

_STYLE = "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#16161a;pointer-events:none}"


def diff_svg(comparison: Comparison, width: Width = "both") -> str:
    """Draw the union of both sides as an SVG file that loads nothing.

    Frames are as wide as one of the sides, or the wider. Raises NoMatchError where that is nothing.
    """
    tree = comparison.tree(width)
    if not tree.total[0]:
        raise NoMatchError(f"nothing to draw: {tree.metric.title} is zero")
    marks = NoiseMarks(find_beyond_noise(comparison))
    colouring = Colouring(sided(comparison, tree), limits=comparison.limits, marks=marks)
    nodes = drawn_nodes(tree)
    height = (int(tree.depth[nodes].max()) + 1) * ROW + _MARGIN

    def look(node: int) -> FrameLook:
        sign, name = colouring.sign(node), printable(tree.name(node))
        amounts = colouring.sides.amounts
        told = (*change_words(colouring.changes, node, amounts),)
        fill = f'fill="{_fill(sign, float(colouring.strength[node]))}"'
        lines = (name, ", ".join((*told, change_counts(colouring.changes, node, amounts))))
        return FrameLook(fill, f"{sign} {name}".strip(), lines)

    title = escape(printable(_title(comparison, colouring)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{height}" role="img"'
        f' aria-label="{title}">\n<style>{_STYLE}</style>\n<text x="3" y="19">{title}</text>\n'
        f'<svg y="{_MARGIN}" width="100%" height="{height - _MARGIN}">\n'
        f"{''.join(draw_frames(tree, nodes, look))}</svg>\n</svg>\n"
    )


def _title(comparison: Comparison, colouring: Colouring) -> str:
    told = ", ".join(change_words(colouring.changes, 0, colouring.sides.amounts))
    basis = comparison.basis.words or "in total"
    return f"{comparison.metric.title} {basis}, BASE → NEW: {told} (orange grew, blue shrank)"


def _fill(sign: str, strength: float) -> str:
    if sign in _ONE_SIDED:
        return _hex(_ONE_SIDED[sign])
    most, part = (_GREW if strength > 0 else _SHRANK), min(abs(strength), 1.0)
    red, green, blue = (
        round(plain + (full - plain) * part) for plain, full in zip(_NONE, most, strict=True)
    )
    return _hex((red, green, blue))


def _hex(colour: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
