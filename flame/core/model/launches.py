"""Hold how kernels were launched and how many bytes copies moved, which no stack needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod

from flame.core.columns import I4, I8
from flame.core.model.activities import NONE

Dim = tuple[int, int, int]

PAGEABLE, PINNED, DEVICE = "pageable", "pinned", "device"
"""Kinds of memory that matter most to a copy: what the host may move, may not, and the GPU's."""


@dataclass(frozen=True)
class LaunchConfig:
    """Describe what a kernel was launched with, or what memory was copied; None is unknown.

    ``grid`` is in blocks (or clusters' blocks), ``block`` in threads, ``registers`` per thread,
    shared memory in bytes per block (``shared_executed``: what the driver set aside; ``shared``:
    static and dynamic together, where only that is known), ``local`` in bytes per thread.
    ``cluster`` is in blocks, None without clusters. ``source`` and ``target`` say what kind of
    memory a copy reads and a copy or set writes: `PAGEABLE`, `PINNED`, `DEVICE` and others.
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
    source: str | None = None
    target: str | None = None

    @property
    def is_of_memory(self) -> bool:
        """Whether it is of a copy or set."""
        return self.source is not None or self.target is not None

    @property
    def blocks(self) -> int | None:
        """Blocks of the grid."""
        return prod(self.grid) if self.grid else None

    @property
    def threads(self) -> int | None:
        """Threads of one block."""
        return prod(self.block) if self.block else None


UNKNOWN = NONE
"""Nothing recorded in ``LaunchDetails.config``; no copy or set, or nothing, in its ``bytes``."""


@dataclass(frozen=True, eq=False)
class LaunchDetails:
    """Hold how GPU activities were launched, row by row as in ``Profile.activities``.

    ``config`` i4[n] indexes ``configs``, ``bytes`` i8[n] is what a copy or set moved; both may be
    `UNKNOWN`. 12 bytes per activity: kernels and copies have few configurations.
    """

    config: I4
    bytes: I8
    configs: tuple[LaunchConfig, ...]

    def __len__(self) -> int:
        return len(self.config)

    def builder(self) -> Callable[[], LaunchDetails]:
        """Make the ``launches_builder`` of a profile whose launch details are at hand."""
        return partial(_same, self)


def launches_at_hand(builder: Callable[[], LaunchDetails] | None) -> LaunchDetails | None:
    """Return what `LaunchDetails.builder` was made of; None where the file would be read."""
    return builder() if isinstance(builder, partial) and builder.func is _same else None


def _same(launches: LaunchDetails) -> LaunchDetails:
    return launches
