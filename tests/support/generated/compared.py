"""Traces to compare: small ones that are written by step, and parts of large ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.sides import Run, Sides
from flame.core.loading.many import load
from flame.core.model.launches import LaunchDetails
from flame.core.model.profile import Profile
from tests.support.writers.nsysfile import NsysFile

Step = Mapping[str, Sequence[int]]
"""The durations of the kernels that a step launches, by name, in ns."""


def write_steps(path: Path, steps: Sequence[Step], first: int = 0, gap: int = 1_000) -> Run:
    """A run of these steps, one after the other: as long as their kernels, and the ``gap``."""
    file, at, number = NsysFile(":memory:"), 10, 0
    for place, step in enumerate(steps):
        length = sum(map(sum, step.values())) + gap
        file.nvtx(f"step {first + place}", at, at + length - 1)
        now = at
        for name, durations in step.items():
            for duration in durations:
                number += 1
                file.api("cudaLaunchKernel", now, now + 1, number)
                file.kernel(name, now + 2, now + 2 + duration, number)
                now += max(duration, 2)
        at += length
    return written(file, path)


def written(file: NsysFile, path: Path) -> Run:
    """A run of what has been written in memory, which takes a twentieth of the time."""
    file.db.commit()
    path.write_bytes(file.db.serialize())
    file.close()
    return Run(load(path), path.name)


def one_by_one(base: Run, new: Run, **more: object) -> Comparison:
    """Compare two runs."""
    return compare(Sides((base,), (new,)), **more)  # type: ignore[arg-type]


def node_called(found: Comparison, name: str) -> int:
    """The only node of this name."""
    tree = found.union.tree
    (node,) = [one for one in range(len(tree)) if tree.name(one) == name]
    return node


def some_of(profile: Profile, rows: np.ndarray) -> Profile:
    """The same recording with no more than these activities."""
    table, launches = profile.activities, profile.launches
    columns = {
        each.name: getattr(table, each.name)[rows]
        for each in fields(table)
        if isinstance(getattr(table, each.name), np.ndarray)
    }
    builder = None
    if launches is not None:
        details = LaunchDetails(launches.config[rows], launches.bytes[rows], launches.configs)
        builder = details.builder()
    return replace(
        profile, activities=table.with_columns(**columns), launches_builder=builder, known=None
    )
