"""Find the frames that several trees have in common, by what they are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, unique, unique_rows
from flame.core.frame import Frame, Kind
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameTable, PackedFrames
from flame.core.model.tree import StackTree
from flame.core.names.equal_names import number_names
from flame.core.names.numbers import STAR, are_folded_alike, may_have_numbers, split_numbers
from flame.core.projection.labels import PackedTexts, common_key

_SHORT = 1 << 31


@dataclass(frozen=True, eq=False)
class CommonFrames:
    """Hold the frames of several trees, each once.

    ``of_tree`` has for each tree the id here of every frame of its table (i4[frames], -1 for those
    that are not in the tree), ``of_others`` that of every other. ``text`` is what each is called.
    Frame 0 is the root.
    """

    table: FrameTable
    text: Sequence[str]
    of_tree: tuple[I4, ...]
    of_others: I4


def join_frames(
    trees: Sequence[StackTree], iterations: Sequence[Column], others: Sequence[Frame] = ()
) -> CommonFrames:
    """Join the frames of ``trees``, and ``others`` with them, by `common_key`.

    A name that is folded in one tree stands for those in other trees that have the numbers; so do
    all names of ``iterations``, which are the frames that are iterations, for each tree: those of
    different runs have nothing to do with each other. What else is known of a frame is that of the
    last tree that has it.
    """
    used = [_UsedFrames.of(tree) for tree in reversed(trees)]
    folded = _FoldedNames(used, iterations[::-1])
    used = [folded.told_from_packed(one) for one in used]
    described = _Described(trees[-1])
    keys = [np.zeros(1, np.int64), *(described.keys(one, folded) for one in used)]
    keys.append(described.keys_of(others))
    names = [_Names.none(1), *(one.names() for one in used), _Names.none(len(others))]
    entries = _Entries(np.concatenate(keys), _Names.joined(names), described)
    ids = np.split(entries.ids, np.cumsum([len(one) for one in keys])[:-1])
    of_tree = [one.in_table(some) for one, some in zip(used, ids[1:-1], strict=True)]
    return CommonFrames(*entries.tables(), tuple(of_tree[::-1]), ids[-1])


class _Names(NamedTuple):
    """Names in ``texts``, each from ``start`` to ``end``, i8[n]."""

    texts: bytes
    start: I8
    end: I8

    @classmethod
    def none(cls, size: int) -> _Names:
        """So many that are empty."""
        return cls(b"", *np.zeros((2, size), np.int64))

    @classmethod
    def joined(cls, parts: Sequence[_Names]) -> _Names:
        """All names of ``parts``."""
        before = np.cumsum([0, *(len(part.texts) for part in parts)]).tolist()
        start, end = (
            np.concatenate([part[at] + above for part, above in zip(parts, before, strict=False)])
            for at in (1, 2)
        )
        return cls(b"".join(part.texts for part in parts), start, end)

    def packed(self, others: Mapping[int, Frame]) -> PackedFrames:
        """Make frames of these names, but for ``others``."""
        dtype = np.int32 if len(self.texts) < _SHORT else np.int64
        return PackedFrames(self.texts, self.start.astype(dtype), self.end.astype(dtype), others)


@dataclass(frozen=True, eq=False)
class _UsedFrames:
    """The frames in a ``tree``, ascending, without its root: ``frame`` i8[n].

    ``is_plain`` bool[n] are those that are packed, and called by their names.
    """

    tree: StackTree
    frame: I8
    is_plain: Bool

    @classmethod
    def of(cls, tree: StackTree) -> _UsedFrames:
        frame = unique(tree.frame).astype(np.int64)
        frame = frame[frame > 0]
        packed, text = tree.frames.frames, tree.text
        if not isinstance(text, PackedTexts) or text.frames is not packed:
            return cls(tree, frame, np.zeros(len(frame), bool))
        is_plain = text.is_packed.copy()
        is_plain[list(tree.frames.examples)] = False
        is_plain[_names_with(text.frames, STAR)] = False
        return cls(tree, frame, is_plain[frame])

    @property
    def described(self) -> list[int]:
        """The frames that are not plain."""
        found: list[int] = self.frame[~self.is_plain].tolist()
        return found

    def names(self) -> _Names:
        """The names of all frames; empty for those that are not plain."""
        packed = self.tree.frames.frames
        if not isinstance(packed, PackedFrames):
            return _Names.none(len(self.frame))
        start, end = (
            np.where(self.is_plain, at[self.frame], 0).astype(np.int64)
            for at in (packed.start, packed.end)
        )
        return _Names(packed.names, start, end)

    def in_table(self, ids: Column) -> I4:
        """Spread the ``ids`` of the frames over all of the table; -1 for those not in the tree."""
        found = np.full(len(self.tree.frames), -1, np.int32)
        found[0] = 0
        found[self.frame] = ids
        return found


class _FoldedNames:
    """Knows the folded names of all trees, and finds the one that stands for a name."""

    def __init__(self, used: Iterable[_UsedFrames], iterations: Iterable[Column]) -> None:
        self._by_shape: dict[tuple[Kind, str], set[str]] = defaultdict(set)
        for one, repeated in zip(used, iterations, strict=True):
            for frame in one.described:
                if STAR in (text := one.tree.text[frame]):
                    self._add(one.tree, frame, text)
            for frame in one.frame[np.isin(one.frame, repeated)].tolist():
                self._add(one.tree, frame, _shape(one.tree.text[frame]))

    def _add(self, tree: StackTree, frame: int, text: str) -> None:
        self._by_shape[tree.frames[frame].kind, _shape(text)].add(text)

    def name(self, kind: Kind, text: str) -> str:
        """Find the folded name with the most stars that stands for ``text``; itself if none."""
        if not self._by_shape:
            return text
        folded = self._by_shape.get((kind, _shape(text)), ())
        standing = (one for one in folded if are_folded_alike(text, one))
        return max(standing, key=lambda one: (one.count(STAR), one), default=text)

    def told_from_packed(self, used: _UsedFrames) -> _UsedFrames:
        """Take the names for which others stand out of those that are plain."""
        packed = used.tree.frames.frames
        kinds = {kind for kind, _ in self._by_shape}
        if Kind.FRAME not in kinds or not isinstance(packed, PackedFrames):
            return used
        start, end = packed.start[used.frame], packed.end[used.frame]
        rows = np.flatnonzero(used.is_plain & may_have_numbers(packed.names, start, end)).tolist()
        texts = [packed.name(frame) for frame in used.frame[rows].tolist()]
        stays = [self.name(Kind.FRAME, text) == text for text in texts]
        is_plain = used.is_plain.copy()
        is_plain[rows] = stays
        return replace(used, is_plain=is_plain)


class _Described:
    """Numbers the frames that are not plain by their keys, the root first."""

    def __init__(self, tree: StackTree) -> None:
        self._keys = {common_key(tree.frames[0], ""): 0}
        self.frames, self.text = [tree.frames[0]], [tree.text[0]]
        self.examples: dict[int, tuple[str, ...]] = {}

    def keys(self, used: _UsedFrames, folded: _FoldedNames) -> I8:
        """Number the keys of ``used``, i8[n], -1 for those that are plain."""
        tree, found = used.tree, np.full(len(used.frame), -1)
        numbers = []
        for frame in used.described:
            what = tree.frames[frame]
            name = folded.name(what.kind, tree.text[frame])
            numbers.append(self._number(what, name, tree.frames.examples.get(frame)))
        found[~used.is_plain] = numbers
        return found

    def keys_of(self, frames: Sequence[Frame]) -> I8:
        """Number the keys of ``frames`` that are called by their names, i8[n]."""
        return np.array([self._number(one, one.name, None) for one in frames], np.int64)

    def _number(self, frame: Frame, text: str, examples: tuple[str, ...] | None) -> int:
        number = self._keys.setdefault(common_key(frame, text), len(self._keys))
        if number == len(self.frames):
            self.frames.append(frame)
            self.text.append(text)
            if examples is not None:
                self.examples[number] = examples
        return number

    def named(self) -> tuple[I8, _Names]:
        """Find the keys that a plain frame may have, and its names."""
        found = {
            number: text.encode("utf-8", "surrogatepass")
            for number, (frame, text) in enumerate(zip(self.frames, self.text, strict=True))
            if common_key(frame, text) == common_key(Frame(Kind.FRAME, text), text)
        }
        end = np.cumsum([0, *map(len, found.values())])
        return np.array([*found], np.int64), _Names(b"".join(found.values()), end[:-1], end[1:])


class _Entries:
    """All frames of all trees, by their ``key`` among those described, or else by their name.

    ``ids`` i4[n] numbers them in the order in which they are first met.
    """

    def __init__(self, key: I8, names: _Names, described: _Described) -> None:
        self._key, self._names, self._described = key, names, described
        first, kind = unique_rows([self._numbers()])
        order = np.argsort(first)
        self._first = first[order]
        id_of_kind = np.empty(len(order), np.int32)
        id_of_kind[order] = np.arange(len(order))
        self.ids: I4 = id_of_kind[kind]

    def _numbers(self) -> I8:
        """Number the entries, equal ones alike, i8[n]."""
        plain = np.flatnonzero(self._key < 0)
        if not len(plain):
            return self._key
        texts, start, end = self._names
        named, own = self._described.named()
        names = _Names.joined([_Names(texts, start[plain], end[plain]), own])
        number = number_names(*names) + len(self._described.frames)
        of_key = np.arange(len(self._described.frames))
        of_key[named] = number[len(plain) :]
        found = of_key[self._key]
        found[plain] = number[: len(plain)]
        return found

    def tables(self) -> tuple[FrameTable, Sequence[str]]:
        """Make the table of the different frames, and what each is called."""
        key, of = self._key[self._first], self._described
        at = np.flatnonzero(key >= 0)
        keys = dict(zip(at.tolist(), key[at].tolist(), strict=True))
        examples = {at: of.examples[one] for at, one in keys.items() if one in of.examples}
        frames = {at: of.frames[one] for at, one in keys.items()}
        text = {at: of.text[one] for at, one in keys.items()}
        if len(at) == len(key):
            return FrameTable(tuple(frames.values()), examples), tuple(text.values())
        texts, start, end = self._names
        packed = _Names(texts, start[self._first], end[self._first]).packed(frames)
        return FrameTable(packed, examples), PackedTexts(packed, text)


def _names_with(frames: PackedFrames, char: str) -> Bool:
    """Mark the names of ``frames`` in which ``char`` is, bool[n]; it is in few."""
    at = np.flatnonzero(np.frombuffer(frames.names, np.uint8) == ord(char))
    found: Bool = np.searchsorted(at, frames.end) > np.searchsorted(at, frames.start)
    return found


def _shape(text: str) -> str:
    """``text`` with a star for every number."""
    return STAR.join(split_numbers(text).texts)
