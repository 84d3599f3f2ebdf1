"""Intern the frames of a profile, to which all its stacks refer by id."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import U1

NO_LAUNCH = "[no launch recorded]"
SMALLER = "[smaller frames]"
MAX_EXAMPLES = 5


class Kind(IntEnum):
    """Name what a frame stands for, in default stack order up to ``STALL``.

    ``FRAME`` is a frame of a stack whose file does not say what kind of frame it is.
    """

    ROOT = 0
    PROCESS = 1
    THREAD = 2
    DEVICE = 3
    STREAM = 4
    PYTHON = 5
    NATIVE = 6
    LAUNCH = 7
    NVTX = 8
    SHAPES = 9
    KERNEL = 10
    MEMCPY = 11
    MEMSET = 12
    GRAPH = 13
    SASS = 14
    STALL = 15
    REST = 16
    FRAME = 17
    RANK = 18

    @property
    def title(self) -> str:
        """Name of the kind as options and exports spell it."""
        return self.name.lower()


SAMPLE_KINDS = (Kind.SASS, Kind.STALL)
"""Frames that have parts of activities: how many and how long those are says nothing of them."""

ACTIVITY_KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET, Kind.GRAPH)


class Frame(NamedTuple):
    """Describe a frame. Two frames are the same frame exactly when all fields are equal.

    ``extra`` holds what is known besides, as (key, text) pairs: ``domain``, ``category``,
    ``shapes``, ``detail`` and ``captured`` of an NVTX range, ``demangled`` and ``mangled`` of a
    kernel, ``module`` of a native frame, ``forward`` of a range that caused a backward pass,
    ``function`` of an instruction, ``reason`` of a stall.
    """

    kind: Kind
    name: str
    file: str = ""
    line: int = 0
    extra: tuple[tuple[str, str], ...] = ()

    def get(self, key: str) -> str:
        """Get the extra text under ``key``, or an empty string."""
        return next((value for name, value in self.extra if name == key), "")


@dataclass(frozen=True, eq=False)
class FrameTable:
    """Hold frames by id (their index). Frame 0 is the root ``all``.

    ``examples`` keeps a few recorded payload texts of ranges that carry some: payloads differ from
    instance to instance, so they are not part of a frame.
    """

    frames: tuple[Frame, ...]
    examples: dict[int, tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, index: int) -> Frame:
        return self.frames[index]

    @cached_property
    def kind(self) -> U1:
        """Kind of every frame, u8[n]."""
        return np.fromiter((frame.kind for frame in self.frames), np.uint8, len(self.frames))


class FrameBuilder:
    """Collect frames while a file is read; equal frames get the same id."""

    def __init__(self) -> None:
        self._ids: dict[Frame, int] = {Frame(Kind.ROOT, "all"): 0}
        self._frames = list(self._ids)
        self._examples: dict[int, list[str]] = {}

    @classmethod
    def from_table(cls, table: FrameTable) -> FrameBuilder:
        """Make a builder that goes on where ``table`` ends."""
        builder = cls()
        builder._frames = list(table.frames)
        builder._ids = {frame: index for index, frame in enumerate(table.frames)}
        builder._examples = {index: list(texts) for index, texts in table.examples.items()}
        return builder

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, frame: Frame) -> int:
        """Intern ``frame`` and return its id, new or known."""
        index = self._ids.setdefault(frame, len(self._frames))
        if index == len(self._frames):
            self._frames.append(frame)
        return index

    def add_example(self, index: int, text: str) -> None:
        """Remember ``text`` as a payload seen with frame ``index`` (a few are kept)."""
        texts = self._examples.setdefault(index, [])
        if len(texts) < MAX_EXAMPLES and text not in texts:
            texts.append(text)

    def __getitem__(self, index: int) -> Frame:
        return self._frames[index]

    def build(self) -> FrameTable:
        """Build the table of the frames added so far."""
        examples = {index: tuple(texts) for index, texts in self._examples.items()}
        return FrameTable(tuple(self._frames), examples)
