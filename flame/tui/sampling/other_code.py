"""Find the samples of a kernel's instructions on the other side of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.model.pc_samples import Code
from flame.core.sampling.align_code import align_code
from flame.tui.sampling.reasons import Counted, counted
from flame.tui.sampling.version import Version


@dataclass(frozen=True, eq=False)
class OtherCode:
    """Hold what the ``side`` that is not listed has of the instructions of a listed code.

    ``at`` i8[n] are the samples at each, ``alike`` bool[n] marks those that are there too, in the
    same order with the same opcode, ``unchanged`` bool[n] those of the same text. It is the
    ``same`` code where that has all of them, at the same offsets, and no others. ``whole`` are the
    samples of the kernel there, of which ``reasons`` are those of its code that is most alike: none
    where it has no samples at all.
    """

    side: str
    at: I8
    alike: Bool
    unchanged: Bool
    same: bool
    whole: int
    reasons: Counted

    @cached_property
    def before(self) -> I8:
        """Samples before each instruction, and in all, i8[n + 1]."""
        return np.concatenate([[0], np.cumsum(self.at)])


def other_code(side: str, listed: Code, versions: Sequence[Version]) -> OtherCode:
    """Find ``listed`` among the ``versions`` of the kernel on the other ``side``."""
    size, whole = len(listed), sum(version.total for version in versions)
    found = [(same_instructions(listed, version.code), version) for version in versions]
    at, alike, same = (np.zeros(size, kind) for kind in (np.int64, bool, bool))
    if not found:
        return OtherCode(side, at, alike, same, False, 0, [])
    (here, there), best = max(found, key=lambda pair: _likeness(listed, pair[1].code, *pair[0]))
    at[here], alike[here] = best.at[there], True
    same[here] = _same_texts(listed, best.code, here, there)
    moved = len(here) != size or len(best) != size or (listed.offset != best.code.offset).any()
    reasons = counted(best.reasons, best.by_reason(0, len(best)))
    return OtherCode(side, at, alike, same, bool(same.all()) and not moved, whole, reasons)


def _likeness(one: Code, other: Code, here: I8, there: I8) -> tuple[int, int]:
    """How many instructions both have, and how many of these with the same text."""
    return len(here), int(_same_texts(one, other, here, there).sum())


def _same_texts(one: Code, other: Code, here: I8, there: I8) -> Bool:
    pairs = zip(here.tolist(), there.tolist(), strict=True)
    return np.fromiter((one.text[a] == other.text[b] for a, b in pairs), bool, len(here))


def same_instructions(code: Code, other: Code) -> tuple[I8, I8]:
    """Pair the instructions of both codes: their places in each, i8[k], ascending.

    They are paired in their order, by opcodes, as `align_code` does. Where the texts are not known,
    of functions of one name, offsets alone tell.
    """
    none: I8 = np.zeros(0, np.int64)
    known = any(code.text), any(other.text)
    if all(known):
        return _aligned(code.text, other.text)
    if any(known) or code.name != other.name:
        return none, none
    _, here, there = np.intersect1d(code.offset, other.offset, return_indices=True)
    return here, there


_aligned = lru_cache(maxsize=8)(align_code)
