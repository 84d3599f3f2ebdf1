"""Show frames as one of which many siblings differ only in numbers: `step *` for `step 1`, ….

Siblings are frames below the same frames of their level, anywhere in the trace: how a name is shown
depends on no filter, order of levels or window of time, and is the same wherever the name stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from weakref import WeakKeyDictionary

import numpy as np

from flame.core.columns import (
    I4,
    I8,
    Bool,
    Column,
    distinct,
    is_any,
    order_by,
    pack,
    run_starts,
    unique_rows,
)
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities
from flame.core.model.frames import Frame, FrameTable, Kind, PackedFrames
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackTable
from flame.core.model.tree import StackTree
from flame.core.names.number_columns import split_alike
from flame.core.names.numbers import STAR, NumberedName, may_have_numbers, split_numbers
from flame.core.projection.labels import (
    Labels,
    Naming,
    PackedTexts,
    exact_labels,
    label_key,
)

MANY = 8
"""Siblings that are shown apart at most, where they differ only in numbers."""

_KINDS = (Kind.PYTHON, Kind.NVTX, Kind.FRAME)
"""Kinds whose numbers count something. Those of devices, streams, processes and threads say who it
was, those of kernels, shapes and instructions what it was."""

_PACKED = Frame(Kind.FRAME, "")

_TABLES = 3  # of the GPUs' activities, of the host's, and of what GPUs waited for

_KEPT: WeakKeyDictionary[FrameTable, dict[Naming, list[tuple[StackTable, Labels]]]] = (
    WeakKeyDictionary()
)


def labels_of(profile: Profile, naming: Naming, table: Activities) -> Labels:
    """Name the frames of ``profile`` as ``naming`` says, siblings being those in ``table``.

    Worked out once per table of frames and of stacks.
    """
    if not naming.numbers:
        return exact_labels(profile.frames, naming)
    kept = _KEPT.setdefault(profile.frames, {}).setdefault(naming, [])
    for stacks, labels in kept:
        if stacks is table.stacks:
            return labels
    labels = fold_numbers(profile.frames, exact_labels(profile.frames, naming), table.stacks)
    kept[:] = [(table.stacks, labels), *kept][:_TABLES]
    return labels


def folds_numbers(profile: Profile, naming: Naming, tree: StackTree) -> bool:
    """Tell whether ``tree`` has frames that stand for several, which differ only in numbers."""
    stars = labels_of(profile, naming, profile.table(tree.metric)).stars
    return bool(stars) and bool(np.isin(tree.frame, list(stars)).any())


def fold_numbers(frames: FrameTable, exact: Labels, stacks: StackTable) -> Labels:
    """Fold the names of ``exact``, labels of ``frames``, where ``stacks`` have many siblings.

    More than `MANY` siblings of equal kind, place and marks that differ only in numbers have a `*`
    for each number that varies among them; and so have all other names that differ from them only
    in numbers. Siblings below frames that are shown as one are siblings, too.
    """
    families = _families(frames, exact)
    if not len(families):
        return exact
    starred = _starred(families, stacks, exact.shown)
    return _folded_labels(frames, exact, families, starred) if starred.any() else exact


@dataclass(frozen=True, eq=False)
class _Families:
    """Frames of families, of which each has more than `MANY`, that differ only in numbers.

    ``frame`` and ``family`` are i4[n]; ``numbers`` i8[n, most in a name] has equal values for equal
    numbers, -1 behind the last one.
    """

    frame: I4
    family: I4
    numbers: I8

    def __len__(self) -> int:
        """Count the families."""
        return int(self.family.max(initial=-1)) + 1

    def shown(self, starred: Bool, exact: I4) -> I4:
        """Find what every frame is shown as where numbers are ``starred``, i4[frames]."""
        numbers = np.where(starred[self.family], -2, self.numbers)
        first, kind = unique_rows([self.family, *numbers.T])
        shown = exact.copy()
        shown[self.frame] = self.frame[first][kind]
        return shown[exact]


def _families(frames: FrameTable, exact: Labels) -> _Families:
    candidates = _candidates(frames, exact)
    names = split_alike([exact.text[frame] for frame in candidates.tolist()], MANY + 1)
    frame = candidates[names.name]
    _, family = unique_rows([names.text, _number_places(frames, frame)])
    large = np.bincount(family) > MANY
    kept = np.flatnonzero(large[family])
    place = (np.cumsum(large) - 1)[family[kept]]
    return _Families(frame[kept].astype(np.int32), place.astype(np.int32), names.numbers[kept])


def _number_places(frames: FrameTable, wanted: I8) -> I8:
    """Number what ``wanted`` frames that are shown as one have in common, but for the name."""
    nameless = _nameless(frames, wanted.tolist())
    described = attrgetter("kind", "file", "line", "extra")
    keys: dict[object, int] = {}
    # What is described is not kept: half a million tuples would have the garbage collected.
    number = {
        what: keys.setdefault(label_key(frame, ""), len(keys))
        for what, frame in dict(zip(map(described, nameless), nameless, strict=True)).items()
    }
    numbers = map(number.__getitem__, map(described, nameless))
    return np.fromiter(numbers, np.int64, len(nameless))


def _nameless(frames: FrameTable, wanted: Iterable[int]) -> list[Frame]:
    """Get the frames ``wanted``, or one like those that are packed: there may be millions."""
    if isinstance(frames.frames, PackedFrames):
        others = frames.frames.others
        return [others.get(frame, _PACKED) for frame in wanted]
    return list(map(frames.frames.__getitem__, wanted))


def _candidates(frames: FrameTable, exact: Labels) -> I8:
    """Frames of the kinds that fold, one of each name."""
    wanted = is_any(frames.kind, _KINDS) & (exact.shown == np.arange(len(frames)))
    if isinstance(frames.frames, PackedFrames):
        packed = frames.frames
        wanted &= ~packed.is_packed | may_have_numbers(packed.names, packed.start, packed.end)
    return np.flatnonzero(wanted)


def _starred(families: _Families, stacks: StackTable, exact: I4) -> Bool:
    """Find which numbers of each family are folded, bool[families, most numbers].

    What is folded makes more siblings below, until there is nothing more to fold.
    """
    starred = np.zeros((len(families), families.numbers.shape[1]), bool)
    by_depth = list(stacks.by_depth())
    while True:
        node = _nodes(stacks, by_depth, families.shown(starred, exact))
        more = starred | _varying(families, stacks, exact, node)
        if (more == starred).all():
            return starred
        starred = more


def _nodes(stacks: StackTable, by_depth: Sequence[I8], shown: I4) -> I8:
    """Number the stacks, those of equal frames as ``shown`` alike, i8[stacks]."""
    node, size = np.zeros(len(stacks), np.int64), 1
    for rows in by_depth:
        wanted, place = distinct((node[stacks.parent[rows]] << 32) | shown[stacks.frame[rows]])
        node[rows] = place + size
        size += len(wanted)
    return node


def _varying(families: _Families, stacks: StackTable, exact: I4, node: I8) -> Bool:
    """Find the numbers that vary among too many siblings, bool[families, most numbers].

    ``node`` numbers the stacks as `_nodes` does.
    """
    member = np.full(len(exact), -1, np.int64)
    member[families.frame] = np.arange(len(families.frame))
    of_stack = np.append(np.int64(-1), member[exact[stacks.frame[1:]]])
    rows = np.flatnonzero(of_stack >= 0)
    parent, siblings = node[stacks.parent[rows]], of_stack[rows]
    first, _ = unique_rows([parent, siblings])
    parent, siblings = parent[first], siblings[first]
    key = pack([parent, families.family[siblings]])
    order = order_by([key])
    start, siblings = run_starts(key[order]), siblings[order]
    many = np.diff(np.append(start, len(order))) > MANY
    numbers, family = families.numbers[siblings], families.family[siblings[start]]
    varying = np.zeros((len(families), numbers.shape[1]), bool)
    if many.any():
        varies = np.minimum.reduceat(numbers, start) != np.maximum.reduceat(numbers, start)
        np.logical_or.at(varying, family[many], varies[many])
    return varying


def _folded_labels(frames: FrameTable, exact: Labels, families: _Families, starred: Bool) -> Labels:
    """Label ``frames`` with a `*` for every number that is ``starred``."""
    shown = families.shown(starred, exact.shown)
    folded = np.flatnonzero(np.logical_or.reduce(starred, axis=1)[families.family])
    frame, standing = families.frame[folded], shown[families.frame[folded]]
    stars = {
        int(at): _between_stars(split_numbers(exact.text[at]), starred[family].tolist())
        for at, family in zip(*_first_of_each(standing, families.family[folded]), strict=True)
    }
    text_of = {at: STAR.join(pieces) for at, pieces in stars.items()}
    texts = dict(zip(frame.tolist(), map(text_of.__getitem__, standing.tolist()), strict=True))
    _join_namesakes(frames, exact, texts, shown)
    for at in np.flatnonzero(exact.shown != np.arange(len(frames))).tolist():
        if (text := texts.get(int(exact.shown[at]))) is not None:
            texts[at] = text
    return replace(exact, text=_with_texts(exact.text, texts), shown=shown, stars=stars)


def _first_of_each(values: Column, others: Column) -> tuple[Column, Column]:
    """The different ``values``, and what stands beside each of them in ``others``."""
    first, _ = unique_rows([values])
    return values[first], others[first]


def _between_stars(name: NumberedName, folds: Sequence[bool]) -> tuple[str, ...]:
    """The parts of ``name`` between the numbers that fold."""
    pieces = [name.texts[0]]
    for number, text, fold in zip(name.numbers, name.texts[1:], folds, strict=False):
        if fold:
            pieces.append(text)
        else:
            pieces[-1] += number + text
    return tuple(pieces)


def _join_namesakes(frames: FrameTable, exact: Labels, texts: dict[int, str], shown: I4) -> None:
    """Change ``shown`` of frames that have been recorded with a folded name among ``texts``."""
    folded = set(texts.values())
    if isinstance(exact.text, PackedTexts):  # no name without a place has a star
        others = exact.text.frames.others
        namesakes = [frame for frame in others if exact.text[frame] in folded]
    else:
        namesakes = [frame for frame, text in enumerate(exact.text) if text in folded]
    if not namesakes:
        return
    places = {label_key(frames[at], text): int(shown[at]) for at, text in texts.items()}
    for frame in namesakes:
        shown[frame] = places.get(label_key(frames[frame], exact.text[frame]), shown[frame])


def _with_texts(text: Sequence[str], texts: dict[int, str]) -> Sequence[str]:
    """``text`` with ``texts`` in place of others."""
    if isinstance(text, PackedTexts):
        return replace(text, others={**text.others, **texts})
    changed = list(text)
    for frame, name in texts.items():
        changed[frame] = name
    return tuple(changed)
