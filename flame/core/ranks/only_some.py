"""Find the frames that some ranks run, and others do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, I8, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.ranks.spread import ValuesOf, blocks

_MOST_RANGES = 16
"""Ranges of ranks that are written out."""


@dataclass(frozen=True, eq=False)
class OnlySome:
    """Hold the leaves that not all ranks have, the one with the most on any rank first.

    ``most`` and ``total`` i8[n] are of the ranks that have it, ``is_there`` bool[n, ranks] those.
    Of ``unsure`` leaves it is not known who has them.
    """

    node: I8
    most: I8
    total: I8
    is_there: Bool
    unsure: int

    def __len__(self) -> int:
        return len(self.node)


def find_only_some(values_of: ValuesOf, total: I8, end: I4, ranks: int) -> OnlySome:
    """Find the leaves of a tree in preorder that some of ``ranks`` have, and others lack.

    ``total`` (i8[nodes]) is the sum over all ranks: where the ranks' values are less, it is not
    known who has the rest, and nothing is said of the leaf, unless all have some of it anyway.
    """
    leaves = np.flatnonzero((end == np.arange(len(end)) + 1) & (total > 0))
    node, most, there = [leaves[:0]], [leaves[:0]], [np.zeros((0, ranks), bool)]
    unsure = 0
    for block in blocks(leaves, ranks):
        values = values_of(block)
        few = np.flatnonzero(np.count_nonzero(values, axis=1) < ranks)
        known = values[few].sum(axis=1) == total[block[few]]
        unsure += int(np.count_nonzero(~known))
        few = few[known]
        node.append(block[few])
        most.append(values[few].max(axis=1, initial=0))
        there.append(values[few] > 0)
    found, largest, is_there = map(np.concatenate, (node, most, there))
    order = np.argsort(-largest, kind="stable")
    found = found[order]
    return OnlySome(found, largest[order], total[found], is_there[order], unsure)


def same_ranks(is_there: Bool) -> list[I8]:
    """Put the rows of bool[n, ranks] together that have the same ranks: their places, in order."""
    packed = np.ascontiguousarray(np.packbits(is_there, axis=1))
    if not packed.size:
        return []
    rows = packed.view(f"V{packed.shape[1]}").ravel()
    _, first, kind = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    found = np.split(order, np.cumsum(np.bincount(kind))[:-1])
    return [found[at] for at in np.argsort(first).tolist()]


def rank_words(ranks: Sequence[int]) -> str:
    """Write ranks in short: ``5``, ``0–7, 12``; of many ranges the first, and how many ranks."""
    numbers = np.unique(np.array(ranks, np.int64))
    first = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 2) != 1)
    last = np.append(first[1:], len(numbers))[: len(first)] - 1
    ends = [(int(numbers[a]), int(numbers[b])) for a, b in zip(first, last, strict=True)]
    words = [str(a) if a == b else f"{a}–{b}" if b > a + 1 else f"{a}, {b}" for a, b in ends]
    more = f", … ({len(numbers):,} in all)" if len(words) > _MOST_RANGES else ""
    return ", ".join(words[:_MOST_RANGES]) + more
