"""Real snapshots, against the definitions in plain Python that lie beside the traces."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import flame
from flame.core.model.profile import Profile
from flame.core.projection.project import project
from flame.core.projection.selection import select
from tests.conftest import TRACES

SNAPSHOTS = sorted((TRACES / "memory").glob("*.pickle"))
DEFINITIONS = TRACES.parent / "prototypes" / "memory" / "memory_ref.py"

pytestmark = pytest.mark.skipif(
    not SNAPSHOTS or not DEFINITIONS.exists(), reason=f"no real snapshots beside {TRACES}"
)


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("memory_ref", DEFINITIONS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def total_of(profile: Profile, metric: str) -> int:
    tree = project(profile, select(metric=metric))
    assert int(tree.own.sum()) == int(tree.total[0])
    return int(tree.total[0])


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_all_numbers_are_those_of_the_definitions(path: Path, reference: Any) -> None:
    allocations, facts = reference.snapshot(reference.loads(path.read_bytes()))
    profile = flame.load(path).profile
    peak, at = reference.fast_peak(allocations, 0)
    alive = reference.live_at(allocations, 0, at)
    assert total_of(profile, "peak") == peak == sum(one.bytes for one in alive)
    end = sum(one.bytes for one in allocations if one.end is None)
    assert total_of(profile, "live") == end
    alloc, churn = (find(allocations, 0) for find in (reference.alloc, reference.churn))
    assert total_of(profile, "alloc") == sum(one.bytes for one in alloc)
    assert total_of(profile, "churn") == sum(one.bytes for one in churn)
    assert profile.memory is not None
    (device,) = profile.memory.devices
    before = sum(one.bytes for one in alive if one.begin == -1)
    assert (device.peak, device.peak_position, device.before) == (peak, at, before)
    parts = device.parts
    assert parts is not None
    for key, value in parts._asdict().items():
        assert value == facts[0].get(key.replace("_", " "), 0), key
    assert device.peak <= parts.reserved
    assert not profile.warnings or not device.events


def test_figures_of_a_training_run() -> None:
    path = TRACES / "memory" / "Wedsonlin_training_512.pickle"
    memory = flame.load(path).profile.memory
    assert memory is not None
    (device,) = memory.devices
    assert (device.peak, device.before) == (12_426_629_128, 5_095_567_360)
    assert device.live_end == 6_829_260_804
    assert device.parts is not None
    assert (device.parts.split, device.parts.releasable) == (1_051_377_152, 4_771_020_800)
