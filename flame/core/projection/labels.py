"""Label frames: the display text of each, and which frames are shown as the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import overload
from weakref import WeakKeyDictionary

import numpy as np

from flame.core.columns import I4, I8, Bool
from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Frame, FrameTable, Kind, PackedFrames
from flame.core.model.stack_joins import SEPARATING_MARKS
from flame.core.names.kernel_short import Kernel, short_names
from flame.core.names.rename import Rename, apply_renames, fold_indices, fold_module
from flame.core.nearest import did_you_mean
from flame.core.regex import Limit

KERNEL_NAMES = ("short", "base", "demangled", "mangled")


@dataclass(frozen=True)
class Naming:
    """Choose how frames are named, which changes nothing that was measured.

    ``kernel_names``: ``base``; ``demangled`` or ``mangled`` in full; ``short``, as `short_names`
    makes them for all kernels of a table of frames, which `text` is told for a single frame, and
    for those ``beside`` it: kernels of other traces that are named alike and told apart, too.
    ``fold`` shows ranges without their layer's index, and modules without their number, after all
    ``rename`` rules; ``numbers`` shows names as one of which many differ only in numbers (see
    `flame.core.projection.number_folds`), after that.
    """

    kernel_names: str = "base"
    shapes: bool = False
    rename: tuple[Rename, ...] = ()
    fold: bool = False
    numbers: bool = False
    beside: frozenset[Kernel] = frozenset()

    def __post_init__(self) -> None:
        if self.kernel_names not in KERNEL_NAMES:
            choices = ", ".join(KERNEL_NAMES) + did_you_mean(self.kernel_names, KERNEL_NAMES)
            raise UsageError(f"unknown kernel names '{self.kernel_names}': choose from {choices}")

    @property
    def exact(self) -> Naming:
        """The same with all numbers in names."""
        return replace(self, numbers=False) if self.numbers else self

    def text(self, frame: Frame, short: str = "", limit: Limit | None = None) -> str:
        """Make the display name of ``frame``, a kernel that is called ``short`` in short.

        UsageError where renaming takes longer than ``limit``.
        """
        name = frame.name
        if frame.kind == Kind.KERNEL and self.kernel_names != "base":
            full = frame.get(self.kernel_names) or frame.get("demangled")
            name = (short if self.kernel_names == "short" else full) or name
        if self.rename:
            name = apply_renames(name, self.rename, limit)
        return _fold(frame.kind, name) if self.fold else name


def _fold(kind: Kind, name: str) -> str:
    """Take the number of its layer or module out of the ``name`` of a frame of ``kind``."""
    if kind == Kind.NVTX:
        return fold_indices(name)
    return fold_module(name) if kind == Kind.PYTHON else name


@dataclass(frozen=True, eq=False)
class PackedTexts(Sequence[str]):
    """Hold a text per frame of ``frames``: the name, or what ``others`` has for it."""

    frames: PackedFrames
    others: Mapping[int, str]

    def __len__(self) -> int:
        return len(self.frames)

    @cached_property
    def is_packed(self) -> Bool:
        """Whether each text is the name of a frame that is packed, bool[n]."""
        packed = self.frames.is_packed.copy()
        packed[list(self.others)] = False
        return packed

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        text = self.others.get(place)
        return self.frames.name(place) if text is None else text


@dataclass(frozen=True)
class Labels:
    """Hold the display names of a frame table under one `Naming`.

    ``text[frame id]`` is the name; ``shown`` i4[n] is the id of the frame that each is shown as:
    frames of equal kind, name, place and `SEPARATING_MARKS` are shown as one, instructions only
    those of one kernel. ``stars`` has the parts between the folded numbers of the names that have
    some, by the id of what is shown.
    """

    text: Sequence[str]
    shown: I4
    stars: Mapping[int, tuple[str, ...]] = field(default_factory=dict, repr=False)
    _natural: dict[str, tuple[str, str]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def rank(self) -> I8:
        """Rank of every frame by name, numbers in names by value, i8[n]; equal for equal names."""
        names, keys = set(self.text), self._natural
        keys.update((name, _natural_key(name)) for name in names.difference(keys))
        ordered = {name: place for place, name in enumerate(sorted(names, key=keys.__getitem__))}
        return np.fromiter(map(ordered.__getitem__, self.text), np.int64, len(self.text))


_NUMBER = lazy_regex(r"(?<=0x)0*([0-9a-f]+)|0*([0-9]+)")


def _natural_key(name: str) -> tuple[str, str]:
    """Sort ``layers.2`` before ``layers.10``: a number stands behind its length.

    An instruction stands by its offset; there are many of them, and many numbers in each.
    """
    return _NUMBER.sub(_prefix_length, name, count=2 if name.startswith("+0x") else 0), name


def _prefix_length(match: re.Match[str]) -> str:
    digits = match[match.lastindex or 0]
    return chr(min(len(digits), 0xFFFF)) + digits


_KEPT: WeakKeyDictionary[FrameTable, dict[Naming, Labels]] = WeakKeyDictionary()


def exact_labels(frames: FrameTable, naming: Naming) -> Labels:
    """Name ``frames`` as ``naming`` says, but with all numbers; worked out once per table."""
    kept, naming = _KEPT.setdefault(frames, {}), naming.exact
    if naming not in kept:
        kept[naming] = _label(frames, naming)
    return kept[naming]


def _label(frames: FrameTable, naming: Naming) -> Labels:
    packed = frames.frames
    if naming.rename or not isinstance(packed, PackedFrames):
        return Labeller(naming).labels(frames)
    # Packed frames are called by their names, all different, whatever else a naming says.
    others = sorted(packed.others)
    labels = Labeller(naming).labels(FrameTable([packed.others[at] for at in others], {}))
    shown = np.arange(len(packed), dtype=np.int32)
    shown[others] = np.array(others, np.int32)[labels.shown]
    return Labels(PackedTexts(packed, dict(zip(others, labels.text, strict=True))), shown)


def keep_labels(frames: FrameTable, labels: Mapping[Naming, Labels]) -> None:
    """Keep ``labels`` of ``frames``, which are known already, for `exact_labels`."""
    _KEPT.setdefault(frames, {}).update(labels)


def kept_namings(frames: FrameTable) -> tuple[Naming, ...]:
    """List the namings under which ``frames`` have been labelled."""
    return tuple(_KEPT.get(frames, ()))


class Labeller:
    """Name the frames of a table that grows, each of them once."""

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self._text: list[str] = []
        self._shown: list[int] = []
        self._first: dict[tuple[object, ...], int] = {}
        self._natural: dict[str, tuple[str, str]] = {}
        self._kernels: list[int] = []

    def labels(self, frames: FrameTable) -> Labels:
        """Label ``frames``, which begin with those of the call before.

        Short names of kernels may become longer when kernels come that were called the same.
        UsageError where renaming takes too long.
        """
        known, limit = len(self._kernels), Limit()
        for index in range(len(self._text), len(frames)):
            frame = frames[index]
            text, shown = "", index
            if self._naming.kernel_names == "short" and frame.kind == Kind.KERNEL:
                self._kernels.append(index)
            else:
                text = self._naming.text(frame, limit=limit)
                shown = self._first.setdefault(label_key(frame, text), index)
            self._text.append(text)
            self._shown.append(shown)
        if len(self._kernels) > known:
            self._name_kernels(frames, limit)
        shown_as = np.array(self._shown, np.int32)
        return Labels(tuple(self._text), shown_as, _natural=self._natural)

    def _name_kernels(self, frames: FrameTable, limit: Limit) -> None:
        """Call all kernels so far by short names."""
        kernels = {index: frames[index] for index in self._kernels}
        names = {index: (frame.name, frame.get("demangled")) for index, frame in kernels.items()}
        short = short_names({*names.values(), *self._naming.beside})
        first = dict[tuple[object, ...], int]()
        for index, frame in kernels.items():
            text = self._naming.text(frame, short[names[index]], limit)
            self._text[index] = text
            self._shown[index] = first.setdefault(label_key(frame, text), index)


def label_key(frame: Frame, text: str) -> tuple[object, ...]:
    """Make the key that frames shown as one have in common; ``frame`` is called ``text``."""
    return frame.kind, text, frame.file, frame.line, _marks(frame)


def common_key(frame: Frame, text: str) -> tuple[object, ...]:
    """Make the key that a frame has in common with itself in another recording.

    Its line is no part of it: that moves with every edit.
    """
    return frame.kind, text, frame.file, _marks(frame)


def _marks(frame: Frame) -> tuple[tuple[str, str], ...]:
    """The extra entries in which frames must agree to be shown as the same."""
    if not frame.extra or frame.kind == Kind.SASS:
        return frame.extra
    return tuple(pair for pair in frame.extra if pair in SEPARATING_MARKS)
