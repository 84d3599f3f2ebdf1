"""Work out what the details say of memory: of a frame's allocations, and of all GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import Distribution, distribution
from flame.core.analysis.words.memory import moment_words, place_words
from flame.core.columns import I8
from flame.core.lazy_dataclass import dataclass
from flame.core.model.allocator.recorded import Growth, MemoryOfDevice
from flame.core.model.profile import Profile
from flame.core.model.stacks import EMPTY
from flame.core.projection.project import memory_cut
from flame.tui.session.session import Projection


class GpuMemory(NamedTuple):
    """Hold what is known of the memory of the GPU ``number``; ``when`` says when its peak was."""

    number: int
    when: str
    memory: MemoryOfDevice


@dataclass(frozen=True)
class MemoryFacts:
    """What is known of the allocations of a frame.

    ``sizes`` (bytes) and ``lifetimes`` (ns) are of each; of ``unknown`` ones begin or end was not
    seen. Of the ``total``, bytes that the metric counts of them, as much was there ``before`` the
    recording, and is ``alive`` at its end. ``growth`` are the stacks of these that may leak, with
    the number of steps. Of the root there are the ``gpus``, and the ``moment`` that is shown.
    """

    total: int
    sizes: Distribution | None
    lifetimes: Distribution | None
    unknown: int
    before: int
    alive: int
    growth: tuple[Growth, ...]
    steps: int
    gpus: tuple[GpuMemory, ...] = ()
    moment: str = ""


def memory_facts(shown: Projection, rows: I8, is_root: bool) -> MemoryFacts | None:
    """Work out the facts of ``rows`` of the table that is shown; None where it is not of memory."""
    memory, cut = shown.profile.memory, memory_cut(shown.profile, shown.selection)
    if memory is None or cut is None:
        return None
    table, lives = shown.profile.table(shown.metric), memory.lives(shown.metric.key, cut).take(rows)
    values, known = shown.metric.values(table)[rows], lives.lifetime >= 0
    growth, steps = _growth(shown, rows)
    return MemoryFacts(
        int(values.sum()),
        distribution(lives.size),
        distribution(lives.lifetime[known]),
        int((~known).sum()),
        int(values[lives.before].sum()),
        int(values[lives.alive].sum()),
        growth,
        steps,
        tuple(_gpus(shown.profile)) if is_root else (),
        moment_words(shown.profile, shown.selection) if is_root else "",
    )


def _gpus(profile: Profile) -> Iterator[GpuMemory]:
    for each in profile.memory.devices if profile.memory else ():
        when = place_words(profile, each, each.peak_position, each.peak_time)
        yield GpuMemory(profile.devices[each.device].id, when, each)


def _growth(shown: Projection, rows: I8) -> tuple[tuple[Growth, ...], int]:
    """The stacks of ``rows`` that grow from step to step, and the number of steps."""
    table, memory = shown.profile.table(shown.metric), shown.profile.memory
    assert memory is not None
    found, steps = list[Growth](), 0
    for device in memory.devices:
        own = rows[table.device[rows] == device.device]
        for one in device.growth:
            same = table.native[own] == one.native
            if one.stack != EMPTY:
                same &= table.python[own] == one.stack
            if np.any(same):
                found.append(one)
                steps = device.boundaries
    return tuple(found), steps
