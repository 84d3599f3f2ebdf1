"""Find the samples of a kernel's instructions on the other side of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.model.pc_samples import Code
from flame.tui.sampling.reasons import Counted, counted
from flame.tui.sampling.version import Version


@dataclass(frozen=True, eq=False)
class OtherCode:
    """Hold what the ``side`` that is not listed has of the instructions of a listed code.

    ``at`` i8[n] are the samples at each, ``alike`` bool[n] marks those that are there too, at the
    same offset with the same text; all of them, and no others, where it is the ``same`` code.
    ``whole`` are the samples of the kernel there, of which ``reasons`` are those of its code that
    is most alike: none where it has no samples at all.
    """

    side: str
    at: I8
    alike: Bool
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
    best, here, there = None, np.zeros(0, np.int64), np.zeros(0, np.int64)
    for version in versions:
        places = same_instructions(listed, version.code)
        if best is None or len(places[0]) > len(here):
            best, (here, there) = version, places
    at, alike = np.zeros(size, np.int64), np.zeros(size, bool)
    if best is None:
        return OtherCode(side, at, alike, False, 0, [])
    at[here], alike[here] = best.at[there], True
    same = len(here) == size == len(best)
    reasons = counted(best.reasons, best.by_reason(0, len(best)))
    return OtherCode(side, at, alike, same, whole, reasons)


def same_instructions(one: Code, other: Code) -> tuple[I8, I8]:
    """Find the places in both codes of what has the same offset and text, i8[k] each, ascending.

    Where the texts are not known, of functions of one name, offsets alone tell.
    """
    none: I8 = np.zeros(0, np.int64)
    known = any(one.text), any(other.text)
    if known[0] != known[1] or (not known[0] and one.name != other.name):
        return none, none
    _, here, there = np.intersect1d(one.offset, other.offset, return_indices=True)
    pairs = zip(here.tolist(), there.tolist(), strict=True)
    kept = np.fromiter((one.text[a] == other.text[b] for a, b in pairs), bool, len(here))
    return here[kept], there[kept]
