"""Choose the colours of frames: the level gives the hue, a stable hash of the name the shade."""

from __future__ import annotations

from enum import IntEnum
from functools import cache, lru_cache
from zlib import crc32

from flame.core.frame import ACTIVITY_KINDS, LEVELS, TRANSFER_PART, Frame, Kind
from flame.core.model.calls import CallClass, IdleCause, StateKind
from flame.core.model.stalls import stall_of
from flame.core.names.kernel_category import (
    ATTENTION,
    CATEGORIES,
    COMMUNICATION,
    COPY,
    ELEMENTWISE,
    INDEXING,
    MATRIX,
    NORMALISATION,
    OTHER,
)

RGB = tuple[int, int, int]


class StallClass(IntEnum):
    """Class stall reasons by what a warp waited for, roughly."""

    MEMORY = 0
    COMPUTE = 1
    SYNC = 2
    ISSUE = 3
    OTHER = 4

    @property
    def title(self) -> str:
        """The class's name."""
        return self.name.lower()


HUES: dict[Kind, RGB] = {
    Kind.ROOT: (158, 158, 158),
    Kind.PROCESS: (178, 178, 178),
    Kind.THREAD: (170, 170, 160),
    Kind.DEVICE: (184, 170, 184),
    Kind.STREAM: (150, 166, 166),
    Kind.PYTHON: (86, 180, 233),
    Kind.NATIVE: (176, 196, 222),
    Kind.LAUNCH: (208, 132, 178),
    Kind.NVTX: (46, 176, 110),
    Kind.SHAPES: (150, 194, 128),
    Kind.KERNEL: (236, 164, 20),
    Kind.MEMCPY: (240, 228, 86),
    Kind.MEMSET: (204, 194, 124),
    Kind.GRAPH: (226, 116, 62),
    Kind.SASS: (214, 140, 110),
    Kind.STALL: (212, 130, 140),
    Kind.REST: (148, 148, 154),
    Kind.FRAME: (238, 138, 88),
    Kind.RANK: (190, 182, 164),
    Kind.CATEGORY: (200, 200, 200),
    Kind.PHASE: (206, 192, 210),
    Kind.CAUSE: (160, 168, 176),
    Kind.WAIT: (158, 150, 178),
    Kind.POOL: (176, 186, 170),
}
"""One hue per kind, after Okabe and Ito: told apart with any kind of colour vision."""

_LIKE = {"stack": Kind.FRAME, "nested": Kind.PYTHON, "module": Kind.PYTHON}

LEVEL_KINDS = {level: _LIKE[level] if level in _LIKE else Kind[level.upper()] for level in LEVELS}
"""The kind in whose colour a level's name is written; its frames may be of several."""

WARM = (
    HUES[Kind.FRAME],
    (242, 178, 84),
    (236, 200, 104),
    (228, 134, 118),
    (246, 158, 72),
    (222, 176, 120),
    (240, 164, 124),
)
"""Hues of frames of no known kind, by name: whole flame graphs are made of nothing else."""

STALLS: dict[StallClass, RGB] = {
    StallClass.MEMORY: (96, 164, 238),
    StallClass.COMPUTE: (232, 112, 52),
    StallClass.SYNC: (206, 126, 192),
    StallClass.ISSUE: (226, 208, 88),
    StallClass.OTHER: (140, 140, 144),
}
"""Hues of stall reasons: a scale of their own, told apart with any kind of colour vision."""

WAITS = (HUES[Kind.WAIT], (246, 120, 96))
"""Hues of ``[waiting]`` and ``[transfer]``: a collective's loss, and its work."""

CATEGORY_HUES: dict[str, RGB] = {
    MATRIX: (230, 152, 20),
    ATTENTION: (90, 144, 246),
    NORMALISATION: (50, 221, 146),
    ELEMENTWISE: (240, 238, 60),
    INDEXING: (195, 246, 233),
    COMMUNICATION: (246, 94, 80),
    COPY: (223, 164, 227),
    OTHER: (147, 145, 145),
}
"""One hue per category of kernels, after Okabe and Ito: told apart with any colour vision."""

GREW: RGB = (240, 136, 24)
SHRANK: RGB = (72, 150, 244)
NEW: RGB = (250, 232, 90)
GONE: RGB = (60, 206, 176)
"""Hues of changes: warm ones of more, cold ones of less, told apart with any colour vision."""

CALLS: dict[CallClass, RGB] = {
    CallClass.LAUNCH: HUES[Kind.LAUNCH],
    CallClass.SYNC: (240, 98, 84),
    CallClass.COPY: HUES[Kind.MEMCPY],
    CallClass.ALLOC: (70, 184, 196),
    CallClass.OTHER: (156, 156, 164),
}
"""Hues of API calls by class, where they stand by themselves."""

_OF_CAUSE: dict[IdleCause, RGB] = {
    IdleCause.HOST_CODE: HUES[Kind.PYTHON],
    IdleCause.GARBAGE_COLLECTION: HUES[Kind.PYTHON],
    IdleCause.GIL: HUES[Kind.PYTHON],
    IdleCause.SYNC: CALLS[CallClass.SYNC],
    IdleCause.ALLOC: CALLS[CallClass.ALLOC],
    IdleCause.COPY_CALL: CALLS[CallClass.COPY],
    IdleCause.LAUNCH_CALL: CALLS[CallClass.LAUNCH],
    IdleCause.IN_LAUNCH: CALLS[CallClass.LAUNCH],
    IdleCause.OTHER_CALL: CALLS[CallClass.OTHER],
}
CAUSES = tuple(_OF_CAUSE.get(cause, HUES[Kind.CAUSE]) for cause in IdleCause)
"""Hues of causes of idle time, after the calls that they are, and of the rest."""

HATCHES: dict[IdleCause, str] = {
    IdleCause.HOST_CODE: "/",
    IdleCause.GARBAGE_COLLECTION: "g",
    IdleCause.GIL: "~",
    IdleCause.SYNC: "\\",
    IdleCause.ALLOC: "&",
    IdleCause.COPY_CALL: "o",
    IdleCause.LAUNCH_CALL: "^",
    IdleCause.IN_LAUNCH: ">",
    IdleCause.AFTER_LAUNCH: ",",
    IdleCause.OTHER_CALL: "-",
    IdleCause.PROFILER: "x",
    IdleCause.UNKNOWN: "?",
}
"""What hatches idle time: told apart without colours, and from blocks as they are in ASCII."""

STATES: dict[StateKind, RGB] = {
    StateKind.COLLECTION: (186, 150, 240),
    StateKind.GIL_HELD: (120, 190, 150),
    StateKind.GIL_WAITING: (240, 98, 84),
    StateKind.LOADING: (70, 184, 196),
    StateKind.PROFILER: (160, 168, 176),
}
"""Hues of what held a thread up."""

_TITLES = [cause.title for cause in IdleCause]

ON_DARK = (-0.10, -0.03, 0.05, 0.16, 0.28)
ON_LIGHT = (-0.10, -0.06, -0.01, 0.05, 0.11)
STRONG = (0.12, 0.19, 0.27, 0.35, 0.44)
"""How far each shade of a hue goes towards black (negative) or white, by theme."""

SHADES = len(ON_DARK)

BLACK: RGB = (0, 0, 0)
WHITE: RGB = (255, 255, 255)


def mix(first: RGB, second: RGB, part: float) -> RGB:
    """Return the colour ``part`` (0..1) of the way from ``first`` to ``second``."""
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(first, second, strict=True))
    return red, green, blue


def shade_of(name: str) -> int:
    """Return the shade that frames called ``name`` have, the same in every run."""
    return _hash(name) % SHADES


def look_of(frame: Frame, name: str, by_category: bool) -> tuple[Kind, int]:
    """Pick the kind in whose colour ``frame``, called ``name``, is drawn, and which of its hues.

    What ran on a GPU has the colour of its level, or ``by_category``.
    """
    if frame.kind == Kind.CATEGORY:
        return Kind.CATEGORY, category_hue(frame.name)
    if frame.kind == Kind.PHASE:
        return Kind.CATEGORY, _hash(name) // SHADES % len(CATEGORIES)
    if by_category and frame.kind in ACTIVITY_KINDS:
        from flame.core.model.grouping import category_of_frame

        return Kind.CATEGORY, category_hue(category_of_frame(frame))
    return frame.kind, _hue_of(frame.kind, name)


def category_hue(category: str) -> int:
    """Tell which hue of `Kind.CATEGORY` the frames of ``category`` have."""
    return CATEGORIES.index(category) if category in CATEGORIES else CATEGORIES.index(OTHER)


def _hue_of(kind: Kind, name: str) -> int:
    """Pick the hue of ``kind`` that frames called ``name`` have; most kinds have but one, 0."""
    if kind == Kind.STALL:
        return class_of_title(name)
    if kind == Kind.CAUSE:
        return _TITLES.index(name) if name in _TITLES else int(IdleCause.UNKNOWN)
    if kind == Kind.WAIT:
        return int(name == TRANSFER_PART.name)
    return _hash(name) // SHADES % len(WARM) if kind == Kind.FRAME else 0


def _hash(name: str) -> int:
    return crc32(name.encode("utf-8", "surrogatepass"))


@lru_cache(1024)
def colour(kind: Kind, shade: int, shades: tuple[float, ...] = ON_DARK, hue: int = 0) -> RGB:
    """Mix the colour of frames of ``kind`` in ``shade`` of ``shades``, and in one of its hues."""
    part, own = shades[shade], HUES[kind]
    if kind == Kind.FRAME:
        own = WARM[hue]
    elif kind == Kind.STALL:
        own = STALLS[StallClass(hue)]
    elif kind == Kind.CATEGORY:
        own = CATEGORY_HUES[CATEGORIES[hue]]
    elif kind == Kind.CAUSE:
        own = CAUSES[hue]
    elif kind == Kind.WAIT:
        own = WAITS[hue]
    elif kind == Kind.LAUNCH and hue:
        own = CALLS[CallClass(hue)]
    elif kind == Kind.THREAD and hue:
        own = STATES[StateKind(hue)]
    return mix(own, WHITE if part > 0 else BLACK, abs(part))


# Classes of stall reasons, few enough to have a colour each

_KEYS = {
    StallClass.MEMORY: (
        "long_scoreboard",
        "short_scoreboard",
        "lg_throttle",
        "mio_throttle",
        "tex_throttle",
        "imc_miss",
        "drain",
    ),
    StallClass.COMPUTE: ("math_pipe_throttle", "wait", "gmma"),
    StallClass.SYNC: ("barrier", "membar", "sleeping", "warpgroup_arrive"),
    StallClass.ISSUE: (
        "selected",
        "not_selected",
        "dispatch",
        "no_instructions",
        "branch_resolving",
    ),
}
_CLASS_OF = {key: stall_class for stall_class, keys in _KEYS.items() for key in keys}


def class_of(key: str) -> StallClass:
    """Return the class of the reason ``key``, a key of `flame.core.model.stalls`."""
    return _CLASS_OF.get(key, StallClass.OTHER)


@cache
def class_of_title(title: str) -> StallClass:
    """Return the class of the reason that is shown as ``title``."""
    return _by_title().get(title, StallClass.OTHER)


@cache
def _by_title() -> dict[str, StallClass]:
    return {stall_of(key).title: stall_class for key, stall_class in _CLASS_OF.items()}
