"""What was reserved over time, as PyTorch's traces and exports of Nsight Systems tell."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from flame.core.model.allocator.recorded import MemoryCurve
from flame.core.model.profile import Profile
from tests.conftest import TRACES
from tests.core.allocator.test_trace_memory import load, opened, warned
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.nsysfile import NsysFile

POOL = 0x302000000
CREATED, DESTROYED, TRIMMED = 1, 2, 3


def only_curve(profile: Profile) -> MemoryCurve:
    assert profile.memory is not None
    [curve] = profile.memory.curves
    return curve


def reserved(profile: Profile) -> list[tuple[int, int, int]]:
    """(time, live, reserved) of the rows of the only curve."""
    curve = only_curve(profile)
    assert curve.reserved is not None
    columns = (curve.time, curve.live, curve.reserved)
    return list(zip(*(column.tolist() for column in columns), strict=True))


# PyTorch


def test_a_trace_tells_what_its_allocator_had_reserved(tmp_path: Path) -> None:
    file = KinetoFile()
    file.op("aten::empty", 0, 90)
    file.memory(10, 100, 1, 1_100, reserved=2_000)
    file.memory(20, 900, 2, 2_000, order=1, reserved=4_000)
    file.memory(30, -900, 2, 1_100, order=2, reserved=4_000)
    file.memory(40, -100, 1, 1_000, order=3, reserved=1_500)
    assert reserved(opened(file, tmp_path)) == [
        (10, 1_000, 2_000),
        (10, 1_100, 2_000),
        (20, 2_000, 4_000),
        (30, 1_100, 4_000),
        (40, 1_000, 1_500),
    ]


def test_processes_on_one_gpu_reserve_each_for_itself(tmp_path: Path) -> None:
    file = KinetoFile()
    file.op("aten::empty", 0, 90)
    file.memory(10, 100, 1, 100, reserved=500)
    file.memory(20, 70, 1, 70, pid=7, tid=7, reserved=300)
    file.memory(30, -100, 1, 0, order=1, reserved=200)
    assert [row[1:] for row in reserved(opened(file, tmp_path))] == [
        (0, 800),
        (100, 800),
        (170, 800),
        (70, 500),
    ]


@pytest.mark.parametrize("told", [None, "much", -1, 1 << 70, 1.5, 50])
def test_what_makes_no_sense_of_it_is_not_shown(told: object, tmp_path: Path) -> None:
    """Also less than lives: something is wrong with it then."""
    file = KinetoFile()
    file.op("aten::empty", 0, 90)
    file.memory(10, 100, 1, 100, reserved=told)
    profile = opened(file, tmp_path)
    assert only_curve(profile).reserved is None and warned(profile) == []


def test_a_real_trace_has_the_numbers_of_its_events() -> None:
    path = TRACES / "kineto" / "h100_bert_small.json.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    told = [
        one["args"]["Total Reserved"]
        for one in events
        if one.get("name") == "[memory]" and one["args"].get("Device Type") == 1
    ]
    curve = only_curve(load(path))
    assert curve.reserved is not None
    assert curve.reserved.max() == max(told) and set(curve.reserved.tolist()) == set(told)
    assert (curve.reserved >= curve.live).all()


# Nsight Systems


def exported(folder: Path, *pools: tuple[int, int, int, int]) -> NsysFile:
    """Memory of a pool and of none; ``pools`` are time, operation, size and use of the pool."""
    file = NsysFile(folder / "a.sqlite")
    file.memory(10, 1_000, 0x10)
    file.memory(20, 60, 0x20, pool=(POOL, 128, 60))
    file.memory(30, 100, 0x30, pool=(POOL, 256, 160))
    file.memory(40, 100, 0x30, frees=True, pool=(POOL, 256, 60))
    for time, operation, size, used in pools:
        file.pool(time, operation, size, used, POOL)
    return file


def test_an_export_tells_how_large_pools_were(tmp_path: Path) -> None:
    with exported(tmp_path, (15, CREATED, 0, 0), (50, TRIMMED, 64, 60)) as file:
        file.memory(60, 1_000, 0x10, frees=True)
    assert reserved(load(file.path)) == [
        (10, 0, 0),
        (10, 1_000, 1_000),
        (15, 1_000, 1_000),
        (20, 1_060, 1_128),
        (30, 1_160, 1_256),
        (40, 1_060, 1_256),
        (50, 1_060, 1_064),
        (60, 60, 64),
    ]


def test_without_the_table_of_pools_their_sizes_with_each_event_are_known(tmp_path: Path) -> None:
    with exported(tmp_path) as file:
        pass
    assert [row[2] for row in reserved(load(file.path))] == [0, 1_000, 1_128, 1_256, 1_256]


def test_what_is_in_use_of_a_destroyed_pool_stays(tmp_path: Path) -> None:
    with exported(tmp_path, (50, DESTROYED, 256, 60)) as file:
        pass
    assert reserved(load(file.path))[-1] == (50, 1_060, 1_060)


def test_pools_of_other_processes_and_of_nobody_are_left_out(tmp_path: Path) -> None:
    with exported(tmp_path) as file:
        file.pool(50, TRIMMED, 999, 0, POOL, pid=200)
        file.pool(50, TRIMMED, 999, 0, POOL + 1)
        file.pool(50, 9, 999, 0, POOL)
        file.pool(50, TRIMMED, 1 << 60, 0, POOL)
    assert reserved(load(file.path))[-1] == (40, 1_060, 1_256)


def test_an_export_without_pools_tells_of_none(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "a.sqlite") as file:
        file.memory(10, 1_000, 0x10)
    assert only_curve(load(file.path)).reserved is None
