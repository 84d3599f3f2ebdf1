"""Intern the frames of a profile, to which all its stacks refer by id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, overload

import numpy as np

from flame.core.columns import U1, Bool, Column
from flame.core.frame import ACTIVITY_KINDS as ACTIVITY_KINDS
from flame.core.frame import CODE_KINDS as CODE_KINDS
from flame.core.frame import COPIES as COPIES
from flame.core.frame import PART_KINDS as PART_KINDS
from flame.core.frame import TRANSFER_PART as TRANSFER_PART
from flame.core.frame import WAITING_PART as WAITING_PART
from flame.core.frame import Frame as Frame
from flame.core.frame import Kind as Kind
from flame.core.lazy_dataclass import dataclass
from flame.core.model.calls import call_class

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

NO_LAUNCH = "[no launch recorded]"
SMALLER = "[smaller frames]"
MAX_EXAMPLES = 5


@dataclass(frozen=True, eq=False)
class PackedFrames(Sequence[Frame]):
    """Hold frames by id; those of `Kind.FRAME` without a place are made when they are asked for.

    ``names`` holds their names as UTF-8, that of id ``i`` from ``start[i]`` to ``end[i]``.
    ``others`` are all other frames by id.
    """

    names: bytes = field(repr=False)
    start: Column
    end: Column
    others: Mapping[int, Frame]

    def __len__(self) -> int:
        return len(self.start)

    @overload
    def __getitem__(self, index: int) -> Frame: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Frame]: ...
    def __getitem__(self, index: int | slice) -> Frame | Sequence[Frame]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        return self.others.get(place) or Frame(Kind.FRAME, self.name(place))

    def name(self, index: int) -> str:
        """Get the name of a frame that is not among ``others``."""
        return self.names[self.start[index] : self.end[index]].decode()

    @cached_property
    def kind(self) -> U1:
        """Kind of every frame, u8[n]."""
        kinds = np.full(len(self), Kind.FRAME, np.uint8)
        for index, frame in self.others.items():
            kinds[index] = frame.kind
        return kinds

    @cached_property
    def is_packed(self) -> Bool:
        """Whether each frame is not among ``others``, bool[n]."""
        packed = np.ones(len(self), bool)
        packed[list(self.others)] = False
        return packed

    def find(self, frame: Frame) -> int | None:
        """Find the id of a frame that is not among ``others``; None where there is none."""
        if frame != Frame(Kind.FRAME, frame.name):
            return None
        name = frame.name.encode("utf-8", "surrogatepass")
        alike: list[int] = np.flatnonzero(self.end - self.start == len(name)).tolist()
        places = (at for at in alike if at not in self.others)
        return next(
            (at for at in places if self.names[self.start[at] : self.end[at]] == name), None
        )

    def extend(self, frames: Sequence[Frame]) -> PackedFrames:
        """Add ``frames`` behind these."""
        more = np.zeros(len(frames), self.start.dtype)
        others = {**self.others, **dict(enumerate(frames, len(self)))}
        start, end = (np.append(column, more) for column in (self.start, self.end))
        return PackedFrames(self.names, start, end, others)


@dataclass(frozen=True, eq=False)
class FrameTable:
    """Hold frames by id (their index). Frame 0 is the root ``all``.

    ``examples`` keeps a few recorded payload texts of ranges that carry some: payloads differ from
    instance to instance, so they are not part of a frame.
    """

    frames: Sequence[Frame]
    examples: dict[int, tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, index: int) -> Frame:
        return self.frames[index]

    @cached_property
    def kind(self) -> U1:
        """Kind of every frame, u8[n]."""
        if isinstance(self.frames, PackedFrames):
            return self.frames.kind
        return np.fromiter((frame.kind for frame in self.frames), np.uint8, len(self.frames))

    def call_classes(self, calls: Column) -> U1:
        """Class the API call of each of ``calls``, which are ids, u1[n] `CallClass`."""
        return self.looked_up(calls, lambda frame: call_class(frame.name), np.uint8)

    def looked_up(self, ids: Column, value: Callable[[Frame], object], dtype: DTypeLike) -> Column:
        """Get a ``value`` for each of ``ids``; it is asked for once for each frame."""
        places, used = ids.astype(np.int64), np.zeros(len(self), bool)
        used[places] = True
        found = np.zeros(len(self), dtype)
        for frame in np.flatnonzero(used).tolist():
            found[frame] = value(self[frame])
        return found[places]


class FrameBuilder:
    """Collect frames while a file is read; equal frames get the same id.

    ``packed`` are the first of them, where there are so many that they had to be.
    """

    def __init__(self, packed: PackedFrames | None = None) -> None:
        self._packed = packed
        self._behind = len(packed or ())
        self._ids: dict[Frame, int] = {Frame(Kind.ROOT, "all"): 0}
        self._frames: list[Frame] = []
        if packed is None:
            self._frames += self._ids
        else:
            self._ids |= {frame: index for index, frame in packed.others.items()}
        self._examples: dict[int, list[str]] = {}

    @classmethod
    def from_table(cls, table: FrameTable) -> FrameBuilder:
        """Make a builder that goes on where ``table`` ends."""
        if isinstance(table.frames, PackedFrames):
            builder = cls(table.frames)
        else:
            builder = cls()
            builder._frames = list(table.frames)
            builder._ids = {frame: index for index, frame in enumerate(table.frames)}
        builder._examples = {index: list(texts) for index, texts in table.examples.items()}
        return builder

    def __len__(self) -> int:
        return len(self._frames) + self._behind

    def add(self, frame: Frame) -> int:
        """Intern ``frame`` and return its id, new or known."""
        if self._packed and (known := self._packed.find(frame)) is not None:
            return known
        size = len(self._frames) + self._behind
        index = self._ids.setdefault(frame, size)
        if index == size:
            self._frames.append(frame)
        return index

    def add_example(self, index: int, text: str) -> None:
        """Remember ``text`` as a payload seen with frame ``index`` (a few are kept)."""
        texts = self._examples.setdefault(index, [])
        if len(texts) < MAX_EXAMPLES and text not in texts:
            texts.append(text)

    def __getitem__(self, index: int) -> Frame:
        packed = self._packed or ()
        return self._frames[index - len(packed)] if index >= len(packed) else packed[index]

    def described(self, first: int) -> Iterator[int]:
        """List the frames from ``first`` on that have an ``extra``."""
        packed = self._packed.others if self._packed else {}
        yield from (index for index, frame in packed.items() if index >= first and frame.extra)
        behind = len(self._packed or ())
        for index in range(max(first, behind), len(self)):
            if self._frames[index - behind].extra:
                yield index

    def activities(self, first: int) -> Iterator[int]:
        """List the frames from ``first`` on that stand for what ran on a GPU."""
        packed = self._packed.others if self._packed else {}
        listed = (index for index in packed if index >= first)
        behind = range(max(first, len(self._packed or ())), len(self))
        yield from (i for i in chain(listed, behind) if self[i].kind in ACTIVITY_KINDS)

    def build(self) -> FrameTable:
        """Build the table of the frames added so far."""
        examples = {index: tuple(texts) for index, texts in self._examples.items()}
        if self._packed:
            return FrameTable(self._packed.extend(self._frames), examples)
        return FrameTable(tuple(self._frames), examples)
