"""Find the frames that several trees have in common, by what they are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from flame.core.columns import I4, Column, unique
from flame.core.frame import Frame, Kind
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameTable
from flame.core.model.tree import StackTree
from flame.core.names.numbers import STAR, are_folded_alike, split_numbers
from flame.core.projection.labels import common_key


@dataclass(frozen=True, eq=False)
class CommonFrames:
    """Hold the frames of several trees, each once.

    ``of_tree`` has for each tree the id here of every frame of its table (i4[frames], -1 for those
    that are not in the tree). ``text`` is what each is called. Frame 0 is the root.
    """

    table: FrameTable
    text: tuple[str, ...]
    of_tree: tuple[I4, ...]


def join_frames(
    trees: Sequence[StackTree], iterations: Sequence[Column], others: Sequence[Frame] = ()
) -> CommonFrames:
    """Join the frames of ``trees``, and ``others`` with them, by `common_key`.

    A name that is folded in one tree stands for those in other trees that have the numbers; so do
    all names of ``iterations``, which are the frames that are iterations, for each tree: those of
    different runs have nothing to do with each other. What else is known of a frame is that of the
    last tree that has it.
    """
    used = [unique(tree.frame) for tree in trees]
    folded = _FoldedNames(trees, used, iterations)
    ids: dict[tuple[object, ...], int] = {common_key(_root(trees[-1]), ""): 0}
    frames, text, examples = [_root(trees[-1])], [trees[-1].text[0]], dict[int, tuple[str, ...]]()
    of_tree = [np.full(len(tree.frames), -1, np.int32) for tree in trees]
    for tree, wanted, common in reversed([*zip(trees, used, of_tree, strict=True)]):
        common[0] = 0
        for frame in wanted[wanted > 0].tolist():
            what = tree.frames[frame]
            name = folded.name(what.kind, tree.text[frame])
            place = ids.setdefault(common_key(what, name), len(ids))
            common[frame] = place
            if place == len(frames):
                frames.append(what)
                text.append(name)
                if frame in tree.frames.examples:
                    examples[place] = tree.frames.examples[frame]
    for other in others:
        if ids.setdefault(common_key(other, other.name), len(ids)) == len(frames):
            frames.append(other)
            text.append(other.name)
    return CommonFrames(FrameTable(tuple(frames), examples), tuple(text), tuple(of_tree))


def _root(tree: StackTree) -> Frame:
    return tree.frames[0]


class _FoldedNames:
    """Knows the folded names of all trees, and finds the one that stands for a name."""

    def __init__(
        self, trees: Sequence[StackTree], used: Iterable[Column], iterations: Iterable[Column]
    ) -> None:
        self._by_shape: dict[tuple[Kind, str], set[str]] = defaultdict(set)
        for tree, frames, repeated in zip(trees, used, iterations, strict=True):
            for frame in frames.tolist():
                if STAR in (text := tree.text[frame]):
                    self._add(tree, frame, text)
            for frame in np.intersect1d(frames, repeated).tolist():
                self._add(tree, frame, _shape(tree.text[frame]))

    def _add(self, tree: StackTree, frame: int, text: str) -> None:
        self._by_shape[tree.frames[frame].kind, _shape(text)].add(text)

    def name(self, kind: Kind, text: str) -> str:
        """Find the folded name with the most stars that stands for ``text``; itself if none."""
        if not self._by_shape:
            return text
        folded = self._by_shape.get((kind, _shape(text)), ())
        standing = (one for one in folded if are_folded_alike(text, one))
        return max(standing, key=lambda one: (one.count(STAR), one), default=text)


def _shape(text: str) -> str:
    """``text`` with a star for every number."""
    return STAR.join(split_numbers(text).texts)
