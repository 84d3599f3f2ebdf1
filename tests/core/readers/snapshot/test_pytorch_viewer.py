"""Sums of the memory at the end, against those of PyTorch's own viewer, torch.cuda._memory_viz."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import flame
from flame.core.model.allocator.recorded import ReservedParts
from tests.conftest import TRACES
from tests.support.writers.snapshotfile import SnapshotFile

pytestmark = pytest.mark.deep

SNAPSHOTS = sorted((TRACES / "memory").glob("*.pickle"))


@pytest.fixture(scope="module")
def viewer() -> Any:
    return pytest.importorskip("torch.cuda._memory_viz", reason="PyTorch is not installed")


def sums_of(viewer: Any, snapshot: object) -> tuple[int, int, int]:
    """What was requested, what rounding adds, and what is reserved, of all GPUs.

    The viewer's own way to draw would download a script and run it: it must not be called.
    """
    sums = Counter[str]()
    for line in viewer.memory(snapshot, format_flamegraph=str).splitlines():
        path, _, size = line.rpartition(" ")
        gap = "gaps" if path.endswith("<gaps>") else "blocks"
        sums[gap if ";active_allocated;" in path else "others"] += int(size)
    return sums["blocks"], sums["gaps"], sums.total()


def parts_of(path: Path) -> list[ReservedParts]:
    memory = flame.load(path).profile.memory
    assert memory is not None
    return [one.parts for one in memory.devices if one.parts is not None]


def check(viewer: Any, path: Path) -> None:
    parts = parts_of(path)
    found = [sum(one[at] for one in parts) for at in (1, 2, 0)]
    assert (found[0], found[1], found[2]) == sums_of(viewer, pickle.loads(path.read_bytes()))


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_real_snapshots_have_the_sums_of_the_viewer(path: Path, viewer: Any) -> None:
    check(viewer, path)


@pytest.mark.parametrize("seed", range(5))
def test_snapshots_of_several_gpus_have_the_sums_of_the_viewer(
    seed: int, tmp_path: Path, viewer: Any
) -> None:
    draw, file, alive = random.Random(seed), SnapshotFile(3), list[int]()
    for _ in range(200):
        if alive and draw.random() < 0.45:
            which = alive.pop(draw.randrange(len(alive)))
            file.free(which, pending=draw.random() < 0.2)
        else:
            size = draw.choice([1, 512, 513, 100_000, 1 << 21])
            alive.append(file.alloc(size, ("main", f"f{size}"), draw.randrange(3)))
    check(viewer, file.write(tmp_path / "snapshot.pickle"))
