"""Stacks whose memory grows from step to step, and requests that failed."""

from __future__ import annotations

from pathlib import Path

import pytest

import flame
from flame.core.model.allocator.recorded import MemoryOfDevice
from tests.support.writers.snapshotfile import SnapshotFile

MIB = 1 << 20


def memory_of(file: SnapshotFile, tmp_path: Path) -> MemoryOfDevice:
    memory = flame.load(file.write(tmp_path / "snapshot.pickle")).profile.memory
    assert memory is not None
    return memory.devices[0]


def train(steps: int, leak: int = 0) -> SnapshotFile:
    """Weights stay, states appear in the first step, gradients come and go; ``leak`` bytes stay."""
    file = SnapshotFile()
    file.alloc(2 * MIB, ("main", "init"))
    for step in range(steps):
        gradient = file.alloc(MIB, ("main", "backward"))
        if not step:
            file.alloc(2 * MIB, ("main", "optimizer"))
        if leak:
            file.alloc(leak, ("main", "log"))
        file.free(gradient)
        file.end_step()
    return file


def test_what_grows_with_every_step_is_a_candidate(tmp_path: Path) -> None:
    found = memory_of(train(5, MIB), tmp_path)
    assert found.boundaries == 5
    assert [one.sizes for one in found.growth] == [(0, MIB, 2 * MIB, 3 * MIB, 4 * MIB)]
    assert found.growth[0].total == 4 * MIB


def test_three_steps_are_enough(tmp_path: Path) -> None:
    assert [one.sizes for one in memory_of(train(3, MIB), tmp_path).growth] == [(0, MIB, 2 * MIB)]


def test_weights_and_states_of_the_optimizer_are_none(tmp_path: Path) -> None:
    assert memory_of(train(5), tmp_path).growth == ()


@pytest.mark.parametrize(("steps", "leak"), [(2, MIB), (5, MIB // 5)])
def test_few_steps_or_little_growth_are_no_verdict(steps: int, leak: int, tmp_path: Path) -> None:
    assert memory_of(train(steps, leak), tmp_path).growth == ()


def test_what_falls_once_is_none(tmp_path: Path) -> None:
    file, kept = SnapshotFile(), list[int]()
    for step in range(6):
        kept += [file.alloc(MIB, ("main", "cache")) for _ in range(2)]
        if step == 3:
            for which in kept:
                file.free(which)
        file.end_step()
    assert memory_of(file, tmp_path).growth == ()


def test_steps_of_the_profiler_count_before_those_of_the_optimizer(tmp_path: Path) -> None:
    file = SnapshotFile()
    for step in range(4):
        file.alloc(MIB)
        file.end_step()
        file.end_step("another range")
        if step % 2:
            file.end_step(f"ProfilerStep#{step}")
    assert memory_of(file, tmp_path).boundaries == 2


def test_a_request_that_fails_for_want_of_a_large_piece(tmp_path: Path) -> None:
    file = SnapshotFile()
    for which in [file.alloc(MIB) for _ in range(3)]:
        file.free(which)
    file.fail(6 * MIB, 1_000)
    (failed,) = memory_of(file, tmp_path).out_of_memory
    assert (failed.size, failed.device_free, failed.free) == (6 * MIB, 1_000, 6 * MIB)
    assert failed.is_fragmented and not failed.is_full


def test_a_request_that_fails_for_want_of_memory(tmp_path: Path) -> None:
    file = SnapshotFile()
    file.alloc(2 * MIB)
    file.fail(MIB, 1_000)
    (failed,) = memory_of(file, tmp_path).out_of_memory
    assert failed.is_full and not failed.is_fragmented


def test_of_an_earlier_request_it_is_not_known_what_was_free(tmp_path: Path) -> None:
    file = SnapshotFile()
    file.fail(MIB, 1_000)
    file.alloc(MIB)
    (failed,) = memory_of(file, tmp_path).out_of_memory
    assert failed.free is None and not failed.is_full and not failed.is_fragmented


def test_what_the_device_has_free_is_room_too(tmp_path: Path) -> None:
    file = SnapshotFile()
    file.alloc(2 * MIB)
    file.fail(MIB, MIB)
    (failed,) = memory_of(file, tmp_path).out_of_memory
    assert not failed.is_full and not failed.is_fragmented
