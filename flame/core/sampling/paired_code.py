"""Call instructions of recompiled kernels as those of the last run that they are paired with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flame.core.columns import unique
from flame.core.frame import Frame, Kind
from flame.core.model.frames import FrameTable
from flame.core.model.pc_samples import FUNCTION, Code
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.sampling.align_code import align_code

_ALONE = ("code", "base")

_Instruction = tuple[str, str]
"""The name of a function, and that of an instruction in it."""


def pair_code(trees: Sequence[StackTree], profiles: Sequence[Profile]) -> tuple[StackTree, ...]:
    """Make the same trees but for the names of instructions, which are those of the last profile.

    Codes of one function are paired, in their order and by opcodes, as `align_code` does. What has
    no pair keeps its name, and what is known of the same code stays as it is.
    """
    last, sampling = profiles[-1], profiles[-1].sampling
    if sampling is None or not _has_code(trees[-1]):
        return tuple(trees)
    codes: dict[str, list[Code]] = defaultdict(list)
    for code in sampling.codes:
        codes[code.name].append(code)
    paired = []
    for tree, profile in zip(trees, profiles, strict=True):
        if profile is last or profile.sampling is None or not _has_code(tree):
            paired.append(tree)
        else:
            paired.append(_renamed(tree, _pairs(profile.sampling.codes, codes)))
    return tuple(paired)


def _has_code(tree: StackTree) -> bool:
    return "sass" in tree.levels


def _pairs(own: Sequence[Code], codes: dict[str, list[Code]]) -> dict[_Instruction, Frame]:
    """Find the frame of each instruction of ``own``: that of its pair, or one of its own.

    Of functions alone of which another code is known, and which are not the same.
    """
    found: dict[_Instruction, Frame] = {}
    for code in own:
        others = [one for one in codes.get(code.name, []) if any(one.text)]
        if any(code.text) and others and not any(_is_same(code, one) for one in others):
            found = _paired(code, others) | found
    return found


def _is_same(one: Code, other: Code) -> bool:
    return one.text == other.text and np.array_equal(one.offset, other.offset)


def _paired(code: Code, others: Sequence[Code]) -> dict[_Instruction, Frame]:
    pairs = [align_code(code.text, one.text) for one in others]
    best = max(range(len(others)), key=lambda at: len(pairs[at][0]))
    here, there = pairs[best]
    frames = [*code.frames(np.arange(len(code)))]
    found = {(code.name, one.name): _alone(one) for one in frames}
    for at, frame in zip(here.tolist(), others[best].frames(there), strict=True):
        found[code.name, frames[at].name] = frame
    return found


def _alone(frame: Frame) -> Frame:
    """Mark an instruction without a pair: another one may be called so by now."""
    return frame._replace(extra=(*frame.extra, _ALONE))


def _renamed(tree: StackTree, pairs: dict[_Instruction, Frame]) -> StackTree:
    """Put the frames of ``pairs`` in place of those that are called so."""
    used = unique(tree.frame)
    frames, text = list(tree.frames.frames), list(tree.text)
    for at in used[tree.frames.kind[used] == Kind.SASS].tolist():
        own = frames[at]
        if other := pairs.get((own.get(FUNCTION), own.name)):
            frames[at], text[at] = other, other.name
    table = FrameTable(tuple(frames), tree.frames.examples)
    return replace(tree, frames=table, text=tuple(text))
