"""Number the launch configurations of kernels: those that did the same work have the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I4
from flame.core.model.activities import NONE
from flame.core.model.launches import Dim, LaunchConfig
from flame.core.model.profile import Profile


class Configuration(NamedTuple):
    """Say what a kernel was launched with; ``shared`` is its dynamic memory per block, bytes."""

    grid: Dim | None
    block: Dim | None
    shared: int | None

    @classmethod
    def of(cls, config: LaunchConfig) -> Configuration:
        """Take of ``config`` what a program chooses at each launch."""
        shared = config.dynamic_shared if config.dynamic_shared is not None else config.shared
        return cls(config.grid, config.block, shared)


class Configurations(NamedTuple):
    """Hold the different ones, and which each activity has: ``of_row`` i4[n], -1 unknown."""

    different: tuple[Configuration, ...]
    of_row: I4


def configurations(profile: Profile) -> Configurations:
    """Number the configurations of ``profile``; reads its file. None are known of some formats."""
    launches, number = profile.launches, dict[Configuration, int]()
    if launches is None:
        return Configurations((), np.full(len(profile.activities), NONE, np.int32))
    of_config = np.full(len(launches.configs) + 1, NONE, np.int32)
    for at, config in enumerate(launches.configs):
        one = Configuration.of(config)
        if one.grid is not None:
            of_config[at] = number.setdefault(one, len(number))
    return Configurations(tuple(number), of_config[launches.config])


def dim_text(dim: Dim | None) -> str | None:
    """Spell the size of a grid or a block as ``18x1x1``; None where it is not known."""
    return None if dim is None else "x".join(map(str, dim))
