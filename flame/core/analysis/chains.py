"""Find the chains of a tree: frames that each hand nearly all they hold on to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from flame.core.columns import I4, I8, Bool, order_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Kind
from flame.core.model.tree import StackTree
from flame.core.names.rename import NN_MODULE
from flame.core.units import format_counted

_LEAST = 2
"""Frames of a chain. With 3 a tree without the frames of frameworks would have more rows, not less:
``Module › _call_impl › forward`` is one row, ``Module`` and ``forward`` were two."""

_LOST = 100
"""At most one part in so many of what the first frame of a chain holds leaves it on the way."""

_JOINED = (Kind.PYTHON, Kind.NATIVE, Kind.NVTX, Kind.FRAME)
"""Kinds of which there are chains: frames of any other kind are what one looks for."""

_WRAPPERS = ("_call_impl", "_wrapped_call_impl")
_ADDRESS = "!0x"
"""Between library and place of a native frame without a symbol."""

SIGN = "›"


@dataclass(frozen=True)
class Chains:
    """Hold the chains of a tree, each of frames of one kind.

    Chain ``k`` is ``nodes[bounds[k]:bounds[k + 1]]`` (i8 both), from its first frame down;
    ``of`` (i4[n]) is the chain of every node, -1 where it is in none.
    """

    nodes: I8
    bounds: I8
    of: I4

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def first(self) -> I8:
        """First node of every chain."""
        return self.nodes[self.bounds[:-1]]

    def members(self, chain: int) -> I8:
        """Return the nodes of ``chain``, from its first frame down."""
        return self.nodes[self.bounds[chain] : self.bounds[chain + 1]]

    def around(self, node: int) -> I8:
        """Return the nodes of the chain that ``node`` is in; none where it is in no chain."""
        chain = int(self.of[node])
        return self.members(chain) if chain >= 0 else self.nodes[:0]


def find_chains(tree: StackTree) -> Chains:
    """Find the chains of ``tree``, from the root down.

    A chain goes on to a child of the same kind as long as that holds at least 99 % of what the
    first frame of the chain holds. Work grows with the tree, and
    with the logarithm of the longest chain.
    """
    nodes, path = _paths(_goes_on(tree))
    begins = np.flatnonzero(_begins(tree.total[nodes], path))
    length = np.diff(np.append(begins, len(nodes)))
    kept = np.flatnonzero(length >= _LEAST)
    inside = np.repeat(length >= _LEAST, length)
    of = np.full(len(tree), -1, np.int32)
    of[nodes[inside]] = np.repeat(np.arange(len(kept)), length[kept])
    return Chains(nodes[inside], np.concatenate([[0], np.cumsum(length[kept])]), of)


def _goes_on(tree: StackTree) -> I8:
    """The parent of every node of its kind that it has nearly all of; itself of all others."""
    parent, total, kind = tree.parent.astype(np.int64), tree.total, tree.frames.kind[tree.frame]
    above = total[parent]
    # Of two children only one can have more than half of what is above both.
    follows = (above - total <= above // _LOST) & (total > 0)
    follows &= (kind == kind[parent]) & np.isin(kind, _JOINED)
    follows[0] = False
    return np.where(follows, parent, np.arange(len(tree)))


def _paths(above: I8) -> tuple[I8, I8]:
    """Nodes linked by ``above``, those of one path side by side from the top, and their path."""
    start, inner = above.copy(), np.flatnonzero(above != np.arange(len(above)))
    reached = start[inner]
    while not np.array_equal(further := start[reached], reached):
        start[inner] = reached = further
    linked = np.zeros(len(above), bool)
    linked[inner] = linked[reached] = True
    nodes = np.flatnonzero(linked)
    path = start[nodes]
    # A child has a higher number than its parent.
    order = order_by([path])
    return nodes[order], path[order]


def _begins(total: I8, path: I8) -> Bool:
    """Where chains begin along each ``path``: where too much of the first frame has left."""
    place = np.arange(len(path))
    begins = np.append(True, path[1:] != path[:-1])[: len(path)]
    while True:
        first = total[np.maximum.accumulate(np.where(begins, place, 0))]
        late = first - total > first // _LOST
        if not late.any():
            return begins
        begins |= late & ~np.append(False, late[:-1])


# Words


def most_names(room: int) -> int:
    """Say how many names fit ``room`` cells at most: a `SIGN` and two spaces are between them."""
    return max(room, 0) // (len(SIGN) + 2) + 1


def chain_words(
    names: Sequence[str], room: int, named: int | None = None, inverted: bool = False
) -> Iterator[list[str]]:
    """Write a chain of ``names`` in words to be joined by `SIGN`: all of it, then less and less.

    ``["main", "… 30 frames", "run", "forward"]``: what is left out first comes after the outermost
    name, and what stays to the end is ``named`` (a place), or else the name that says most.
    ``inverted`` chains begin with the innermost name. What cannot fit ``room`` cells is not tried:
    a chain may have 100,000 frames.
    """
    size = len(names)
    if named is None:
        named = telling_place(names, inverted)
    for shown in _choices(size, size - 1 - named if inverted else named, most_names(room)):
        places = sorted(size - 1 - place for place in shown) if inverted else sorted(shown)
        yield _spelled(names, places)


def telling_place(names: Sequence[str], inverted: bool = False) -> int:
    """Choose which of ``names`` says most: the innermost module's, or else the innermost.

    Not one that all modules of PyTorch have alike, nor an address, as long as there is another.
    """
    modules = [place for place, name in enumerate(names) if name.startswith(NN_MODULE)]
    others = [place for place, name in enumerate(names) if not _says_nothing(name)]
    return (modules or others or range(len(names)))[0 if inverted else -1]


def _says_nothing(name: str) -> bool:
    return name in _WRAPPERS or _ADDRESS in name


def _choices(size: int, most: int, number: int) -> Iterator[set[int]]:
    """Which names may be shown, from ``number`` of them to ``most`` alone."""
    for left_out in range(max(size - 1 - number, 0), size - 1):
        yield {0, most, *range(1 + left_out, size)}
    yield {0, most}
    yield {most, size - 1}
    yield {most}


def _spelled(names: Sequence[str], shown: Sequence[int]) -> list[str]:
    """Those of ``names`` that are ``shown``, and how many are left out between them."""
    words = ["…"] * (shown[0] > 0) + [names[shown[0]]]
    for before, place in pairwise(shown):
        gap = place - before - 1
        if gap:
            words.append(f"… {frames_word(gap)}" if gap > 1 else "…")
        words.append(names[place])
    return words + ["…"] * (shown[-1] < len(names) - 1)


def frames_word(number: int) -> str:
    """Write ``30 frames``."""
    return format_counted(number, "frame", "frames")
