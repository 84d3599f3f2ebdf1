"""Search in a stack tree: which nodes match, how often, and how much of the total they hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.model.tree import StackTree

_PLAIN = re.compile(r"[A-Za-z0-9_ ,:;<>=%&@!~'\"/-]+")
"""Expressions without a special character: they are looked for as they stand, twice as fast."""


@dataclass(frozen=True)
class Matches:
    """Nodes whose name matches (bool[n]), and their value with nested matches counted once."""

    mask: Bool
    nodes: int
    total: int
    percent: float


def search(tree: StackTree, pattern: re.Pattern[str]) -> Matches:
    """Match ``pattern`` anywhere in the names; every distinct name is tried once."""
    fits = np.zeros(len(tree.text), bool)
    fits[matching(tree.text, _used(tree), pattern)] = True
    mask = fits[tree.frame]
    total = int(tree.total[tree.outermost(mask)].sum())
    whole = int(tree.total[0])
    return Matches(mask, int(mask.sum()), total, 100.0 * total / whole if whole else 0.0)


def _used(tree: StackTree) -> I8:
    """Frames that ``tree`` has, the root aside."""
    return np.flatnonzero(np.bincount(tree.frame[1:], minlength=len(tree.text)))


def matching(text: tuple[str, ...], frames: I8, pattern: re.Pattern[str]) -> list[int]:
    """Those of ``frames`` whose ``text`` holds a match of ``pattern``."""
    fits = _test(pattern)
    chosen: Iterable[int] = frames.tolist()
    return [frame for frame in chosen if fits(text[frame])]


def _test(pattern: re.Pattern[str]) -> Callable[[str], object]:
    if not _PLAIN.fullmatch(pattern.pattern):
        return pattern.search
    wanted = pattern.pattern
    if not pattern.flags & re.IGNORECASE:
        return lambda name: wanted in name
    wanted = wanted.lower()
    # Beyond ASCII lower() and IGNORECASE differ: ſ matches s, but is no capital of it.
    return lambda name: wanted in name.lower() if name.isascii() else pattern.search(name)
