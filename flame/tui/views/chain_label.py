"""Name a closed chain in the cells that there are: what says most of it stays longest."""

from __future__ import annotations

from collections.abc import Sequence

from flame.core.analysis.chains import SIGN, chain_words, most_names, telling_place
from flame.tui.toolkit.text import cut, unwrap, width_of

_LONGEST_NAME = 40
"""Cells from which on a name is cut, rather than another one left out."""


def chain_label(
    names: Sequence[str], width: int, named: int | None = None, inverted: bool = False
) -> str:
    """Name the chain of ``names`` in at most ``width`` cells, as `chain_words` does.

    Where not even the name that says most has room, that is cut, behind a mark.
    """
    place = telling_place(names, inverted) if named is None else named
    most, size = most_names(width), len(names)
    short = [
        cut(unwrap(name), _LONGEST_NAME) if at == place or not most < at < size - most else ""
        for at, name in enumerate(names)
    ]  # others are never written
    for words in chain_words(short, width, place, inverted):
        label = f" {SIGN} ".join(words)
        if width_of(label) <= width:
            return label
    return SIGN + cut(names[place], max(width - 1, 0))
