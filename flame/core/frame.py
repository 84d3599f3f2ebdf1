"""Describe frames: their kinds, the levels of a stack that they are, what they are coloured by."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from flame.core.errors import UsageError
from flame.core.nearest import did_you_mean


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
    CATEGORY = 19
    PHASE = 20
    CAUSE = 21
    WAIT = 22
    POOL = 23

    @property
    def title(self) -> str:
        """Name of the kind as options and exports spell it."""
        return self.name.lower()


PART_KINDS = (Kind.SASS, Kind.STALL, Kind.WAIT)
"""Frames that have parts of activities: how many and how long those are says nothing of them."""

COPIES = (Kind.MEMCPY, Kind.MEMSET)

ACTIVITY_KINDS = (Kind.KERNEL, *COPIES, Kind.GRAPH)

CODE_KINDS = (Kind.PYTHON, Kind.NATIVE, Kind.FRAME)
"""Frames that are functions of a program, with files and lines."""


class Frame(NamedTuple):
    """Describe a frame. Two frames are the same frame exactly when all fields are equal.

    ``extra`` holds what is known besides, as (key, text) pairs: ``domain``, ``category``,
    ``shapes``, ``detail`` and ``captured`` of an NVTX range, ``types``, ``strides`` and ``values``
    of the inputs of an operator whose work is counted, ``demangled`` and ``mangled`` of a kernel,
    ``module`` of a native frame, ``forward`` of a range that caused a backward pass, ``function``
    of an instruction, ``reason`` of a stall.
    """

    kind: Kind
    name: str
    file: str = ""
    line: int = 0
    extra: tuple[tuple[str, str], ...] = ()

    def get(self, key: str) -> str:
        """Get the extra text under ``key``, or an empty string."""
        for name, value in self.extra:
            if name == key:
                return value
        return ""


SAMPLE_LEVELS = ("sass", "stall")

WAIT_LEVEL = "wait"
"""Parts of collectives, ``[waiting]`` for the last rank and ``[transfer]``."""

WAITING_PART, TRANSFER_PART = Frame(Kind.WAIT, "[waiting]"), Frame(Kind.WAIT, "[transfer]")

PART_LEVELS = (*SAMPLE_LEVELS, WAIT_LEVEL)
"""Levels of parts of activities."""

STACK_LEVELS = ("python", "native", "nvtx", "stack")
"""Levels of any number of frames; each of the other levels is a single frame."""

MADE_LEVELS = ("nested", "module")
"""Levels made of the frames of others: Python frames and ranges."""

LEVELS = (
    "rank",
    "cause",
    "process",
    "thread",
    "device",
    "pool",
    "stream",
    "phase",
    "stack",
    *MADE_LEVELS,
    "python",
    "native",
    "launch",
    "nvtx",
    "shapes",
    "category",
    "kernel",
    *PART_LEVELS,
)
"""All levels in their natural order; any subset in any order makes a tree."""

COLOURS = ("level", "category")
"""What kernels and copies may be coloured by."""

IMBALANCE = "imbalance"
"""What all frames of a summary of ranks may be coloured by besides."""


EFFICIENCY = "efficiency"
"""What all frames of a trace may be coloured by where shapes of operators are known."""


def check_levels(levels: tuple[str, ...]) -> None:
    """Raise UsageError unless ``levels`` is a non-empty choice of `LEVELS` without repeats."""
    for name in levels:
        if name not in LEVELS:
            choices = f"choose from {', '.join(LEVELS)}{did_you_mean(str(name), LEVELS)}"
            raise UsageError(f"--levels: unknown level '{name}': {choices}")
        if levels.count(name) > 1:
            raise UsageError(f"--levels: '{name}' stands there twice")
    if not levels:
        raise UsageError(f"--levels: no level given: choose from {', '.join(LEVELS)}")
