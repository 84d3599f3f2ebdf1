"""Hold how kernels were launched and how many bytes copies moved, which no stack needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod

from flame.core.columns import I4, I8
from flame.core.model.activities import NONE

Dim = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchConfig:
    """Describe what a kernel was launched with; None is unknown.

    ``grid`` is in blocks (or clusters' blocks), ``block`` in threads, ``registers`` per thread,
    shared memory in bytes per block (``shared_executed``: what the driver set aside; ``shared``:
    static and dynamic together, where only that is known), ``local`` in bytes per thread.
    ``cluster`` is in blocks, None without clusters.
    """

    grid: Dim | None = None
    block: Dim | None = None
    cluster: Dim | None = None
    registers: int | None = None
    static_shared: int | None = None
    dynamic_shared: int | None = None
    shared_executed: int | None = None
    local: int | None = None
    shared: int | None = None

    @property
    def blocks(self) -> int | None:
        """Blocks of the grid."""
        return prod(self.grid) if self.grid else None

    @property
    def threads(self) -> int | None:
        """Threads of one block."""
        return prod(self.block) if self.block else None


UNKNOWN = NONE
"""No kernel or nothing recorded in ``LaunchDetails.config``, no copy or set in its ``bytes``."""


@dataclass(frozen=True, eq=False)
class LaunchDetails:
    """Hold the launch geometry of GPU activities, row by row as in ``Profile.activities``.

    ``config`` i4[n] indexes ``configs``, ``bytes`` i8[n] is what a copy or set moved; both may be
    `UNKNOWN`. 12 bytes per activity: kernels have few configurations.
    """

    config: I4
    bytes: I8
    configs: tuple[LaunchConfig, ...]

    def __len__(self) -> int:
        return len(self.config)

    def builder(self) -> Callable[[], LaunchDetails]:
        """Make the ``launches_builder`` of a profile whose launch details are at hand."""
        return partial(_same, self)


def _same(launches: LaunchDetails) -> LaunchDetails:
    return launches
