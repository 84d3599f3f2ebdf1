"""Who allocated memory in exports of Nsight Systems, in kept traces, and in several at once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from flame.console.memory_info import memory_lines
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.activities import TableCut
from flame.core.projection.filters import Ranks
from tests.core.allocator.test_trace_memory import load, stacks, three_steps, total
from tests.core.reopening.conftest import find, keep
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.nsysfile import NsysFile
from tests.support.writers.snapshotfile import SnapshotFile

# Exports of Nsight Systems


def exported(path: Path) -> Path:
    """Two processes that have the same address, and a call within another one's."""
    with NsysFile(path) as file:
        file.gpu(0, "H100", pid=100)
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=1)
        file.kernel("gemm", 10, 20, corr=1)
        file.nvtx("load", 0, 100)
        file.api("cudaMalloc_v3020", 20, 30, corr=2)
        file.memory(25, 64, address=1)
        file.api("cudaMalloc_v3020", 20, 30, corr=2, pid=200, tid=200)
        file.memory(26, 32, address=1, pid=200)
        file.api("cudaMallocAsync_v11020", 40, 45, corr=7)
        file.memory(60, 16, address=2, corr=7)
        file.memory(70, 8, address=3)  # in no call
        file.api("cudaFree_v3020", 80, 85, corr=8)
        file.memory(82, 64, address=1, frees=True)
        file.memory(90, 1_000, address=9, kind=1)
        file.memory(91, 2_000, address=10, kind=4)
        file.memory(92, 4, address=11, kind=3)
    return path


def test_an_allocation_has_the_stack_of_its_call(tmp_path: Path) -> None:
    profile = load(exported(tmp_path / "trace.sqlite"))
    assert stacks(profile) == {
        ("cudaMalloc", "load"): 64,
        ("cudaMalloc",): 32,
        ("cudaMallocAsync", "load"): 16,
        ("[no launch recorded]",): 8 + 4,
    }
    assert "memory: 4 allocations have no API call" in " ".join(profile.warnings)
    assert total(profile) == 64 + 32 + 16 + 8 and total(profile, "live") == 60
    assert profile.memory is not None
    elsewhere = [(one.kind, one.peak) for one in profile.memory.elsewhere]
    assert elsewhere == [("pinned", 1_000), ("managed", 2_000)]


def test_two_calls_that_were_open_are_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    with NsysFile(path) as file:
        file.api("cudaMalloc_v3020", 20, 30, corr=2, tid=1)
        file.api("cudaFree_v3020", 25, 35, corr=3, tid=2)
        file.memory(27, 64, address=1)
        file.memory(35, 32, address=2)  # only the second
    assert stacks(load(path)) == {("[no launch recorded]",): 64, ("cudaFree",): 32}


def test_contexts_have_addresses_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    with NsysFile(path) as file:
        file.memory(10, 64, address=1, context=1)
        file.memory(20, 32, address=1, context=2)
        file.memory(30, 64, address=1, context=1, frees=True)
    profile = load(path)
    assert (total(profile), total(profile, "live")) == (96, 32)
    assert not any("never given back" in one for one in profile.warnings)


# Kept, and merged


@pytest.mark.parametrize("kind", ["kineto", "nsys"])
def test_a_kept_trace_has_the_same_memory(kind: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if kind == "nsys":
        path = exported(tmp_path / "trace.sqlite")
    else:
        path = three_steps().write(tmp_path / "a.pt.trace.json")
    fresh = keep(path)
    kept = find(path)
    assert kept is not None and kept.memory is not None and fresh.memory is not None
    assert [one.key for one in kept.metrics] == [one.key for one in fresh.metrics]
    assert kept.memory.devices == fresh.memory.devices
    assert stacks(kept, "peak") == stacks(fresh, "peak")
    assert total(kept, "gpu") == total(fresh, "gpu")


def test_ranks_have_their_own_peaks(tmp_path: Path) -> None:
    other = three_steps()
    other.memory(30, 5_000, 7, 6_100, order=1)
    other.memory(99, -5_000, 7, 1_040, order=9)
    paths = [three_steps().write(tmp_path / "0.json"), other.write(tmp_path / "1.json")]
    merged = merge_profiles([load(path) for path in paths], ["rank 0", "rank 1"])
    assert total(merged) == 1_140 + 6_140
    by_rank = {path[0]: 0 for path in stacks(merged, "peak")}
    for path, size in stacks(merged, "peak").items():
        by_rank[path[0]] += size
    assert by_rank == {"rank 0": 1_140, "rank 1": 6_140}
    assert total(merged, levels=("python",)) == 6_140  # of the fullest
    assert total(merged, levels=("python",), where=(Ranks(("rank 0",)),)) == 1_140
    assert merged.memory is not None
    assert [(one.device, one.peak) for one in merged.memory.devices] == [(0, 1_140), (1, 6_140)]
    whole = merged.memory.table("alloc", TableCut(devices=(0, 1)))
    assert set(whole.device.tolist()) == {0, 1}


def test_snapshots_of_ranks_come_from_other_processes_and_are_merged(tmp_path: Path) -> None:
    found = []
    for rank, size in enumerate((512, 1_024)):
        file = SnapshotFile(1)
        file.free(file.alloc(size, ("main", "forward"), 0))
        found.append(load(file.write(tmp_path / f"{rank}.pickle")))
    received = [pickle.loads(pickle.dumps(profile)) for profile in found]
    merged = merge_profiles(received, ["rank 0", "rank 1"])
    assert stacks(merged, "peak") == {
        ("rank 0", "main", "forward"): 512,
        ("rank 1", "main", "forward"): 1_024,
    }
    lines = list(memory_lines(merged))
    assert lines[0] == "memory of GPU0 of rank 0" and "memory of GPU0 of rank 1" in lines


def test_one_rank_with_memory_is_merged_with_one_without(tmp_path: Path) -> None:
    bare = KinetoFile()
    bare.launch(1, (70, 75), (80, 90))
    paths = [bare.write(tmp_path / "0.json"), three_steps().write(tmp_path / "1.json")]
    merged = merge_profiles([load(path) for path in paths], ["rank 0", "rank 1"])
    assert total(merged) == 1_140
    assert {path[0] for path in stacks(merged, "peak")} == {"rank 1"}
