"""Classes of stall reasons, few enough to have a colour each."""

from __future__ import annotations

from enum import IntEnum
from functools import cache

from flame.core.model.stalls import stall_of


class StallClass(IntEnum):
    """What a warp waited for, roughly."""

    MEMORY = 0
    COMPUTE = 1
    SYNC = 2
    ISSUE = 3
    OTHER = 4

    @property
    def title(self) -> str:
        """The class's name."""
        return self.name.lower()


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
_CLASS_OF = {key: one for one, keys in _KEYS.items() for key in keys}


def class_of(key: str) -> StallClass:
    """The class of the reason ``key``, a key of `flame.core.model.stalls`."""
    return _CLASS_OF.get(key, StallClass.OTHER)


@cache
def class_of_title(title: str) -> StallClass:
    """The class of the reason that is shown as ``title``."""
    return _by_title().get(title, StallClass.OTHER)


@cache
def _by_title() -> dict[str, StallClass]:
    return {stall_of(key).title: one for key, one in _CLASS_OF.items()}
