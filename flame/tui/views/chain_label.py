"""Name a closed chain in the cells that there are: what says most of it stays longest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flame.core.analysis.chains import SIGN, spell_chain, telling
from flame.tui.toolkit.text import cut, width_of

_LONGEST_NAME = 40
"""Cells from which on a name is cut, rather than another one left out."""


def chain_label(
    names: Sequence[str], width: int, named: int | None = None, inverted: bool = False
) -> str:
    """Name the chain of ``names`` in at most ``width`` cells.

    With room it is the outermost name, how many are left out, and the innermost ones; then fewer
    of them; at last the one that says most, behind a mark. ``named`` is a place that has to be
    shown; ``inverted`` chains begin with the innermost name.
    """
    size, outward = len(names), -1 if inverted else 1
    most = telling(names[::outward]) if named is None else named
    if inverted and named is None:
        most = size - 1 - most
    short = [cut(name, _LONGEST_NAME) for name in names]
    for shown in _choices(size, size - 1 - most if inverted else most):
        places = sorted(size - 1 - place for place in shown) if inverted else sorted(shown)
        label = f" {SIGN} ".join(spell_chain(short, places))
        if width_of(label) <= width:
            return label
    return SIGN + cut(names[most], max(width - 1, 0))


def _choices(size: int, most: int) -> Iterator[set[int]]:
    """Which names may be shown, from all of them to ``most`` alone."""
    last = size - 1
    for left_out in range(size - 1):
        yield {0, most, *range(1 + left_out, size)}
    yield {0, most}
    yield {most, last}
    yield {most}
