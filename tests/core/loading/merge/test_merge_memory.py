"""Memory snapshots of several ranks: each at its own peak, never added up unasked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flame.core.errors import InputError, NoMatchError
from flame.core.loading.many import load, load_all
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.activities import TableCut
from flame.core.model.profile import Profile
from flame.core.projection.filters import Devices, Filter, Ranks, Time
from flame.core.projection.project import project
from flame.core.projection.selection import select
from tests.support.paths import SAMPLES
from tests.support.writers.snapshotfile import SnapshotFile

MIB = 1 << 20


def rank(first: int, second: int, names: tuple[str, ...] = ("main", "step")) -> SnapshotFile:
    """Two GPUs, on each of which something of so many bytes stays, and as much is given back."""
    file = SnapshotFile(2)
    for device, size in enumerate((first, second)):
        gone = file.alloc(size, names, device)
        file.alloc(size, ("main", "weights"), device)
        file.free(gone)
    return file


def merged(tmp_path: Path, *files: SnapshotFile) -> Profile:
    profiles = [load(file.write(tmp_path / f"{at}.pickle")) for at, file in enumerate(files)]
    return merge_profiles(profiles, [f"rank {at}" for at in range(len(files))])


def held(
    profile: Profile, *where: Filter, levels: tuple[str, ...] = (), metric: str = "peak"
) -> dict[str, int]:
    tree = project(profile, select(levels or None, where, metric))
    inner = range(1, len(tree))
    return {"/".join(tree.names(node)): int(tree.own[node]) for node in inner if tree.own[node]}


def test_rank_on_top_each_at_the_peak_of_its_fullest_gpu(tmp_path: Path) -> None:
    profile = merged(tmp_path, rank(100, 300), rank(700, 500))
    assert held(profile) == {
        "rank 0/main/step": 300,
        "rank 0/main/weights": 300,
        "rank 1/main/step": 700,
        "rank 1/main/weights": 700,
    }
    assert held(profile, metric="live") == {"rank 0/main/weights": 300, "rank 1/main/weights": 700}


def test_without_ranks_the_fullest_gpu_of_all(tmp_path: Path) -> None:
    profile = merged(tmp_path, rank(100, 300), rank(700, 500))
    assert held(profile, levels=("python",)) == {"main/step": 700, "main/weights": 700}
    only = Ranks(("rank 0",))
    assert held(profile, only, levels=("python",)) == {"main/step": 300, "main/weights": 300}
    assert held(profile, only) == {"rank 0/main/step": 300, "rank 0/main/weights": 300}


def test_gpus_of_ranks_stay_apart(tmp_path: Path) -> None:
    profile = merged(tmp_path, rank(100, 300), rank(700, 500))
    assert held(profile, levels=("device",)) == {
        "GPU 0 · rank 0": 200,
        "GPU 1 · rank 0": 600,
        "GPU 0 · rank 1": 1_400,
        "GPU 1 · rank 1": 1_000,
    }
    assert held(profile, Devices((1,)), levels=("rank",)) == {"rank 0": 600, "rank 1": 1_000}


def test_windows_are_of_the_common_clock(tmp_path: Path) -> None:
    files = rank(100, 300), rank(700, 500)
    profile = merged(tmp_path, *files)
    last = Time(profile.end + 1, None)  # only what is left
    for metric in ("peak", "live"):
        assert sum(held(profile, last, metric=metric).values()) == 300 + 700
    with pytest.raises(NoMatchError):
        held(profile, Time(profile.begin - 1, profile.begin))


def test_what_is_known_of_gpus_has_new_numbers(tmp_path: Path) -> None:
    file = rank(100, 300, ("main", "only here"))
    for _ in range(4):
        file.alloc(MIB, ("main", "log"), 1)
        file.end_step(device=1)
    file.fail(5, 6, 1)
    profile = merged(tmp_path, rank(100, 300), file)
    assert profile.memory is not None
    devices = profile.memory.devices
    assert [one.device for one in devices] == [0, 1, 2, 3]
    stacks = profile.activities.stacks
    (failed,), (grown,) = devices[3].out_of_memory, devices[3].growth
    for stack, names in ((failed.stack, ["too_much"]), (grown.stack, ["main", "log"])):
        assert [profile.frames[frame].name for frame in stacks.path(stack)] == names
    alone = load(tmp_path / "1.pickle")
    assert alone.memory is not None
    (own,) = alone.memory.devices[1].out_of_memory
    assert failed.time - profile.begin == own.time - alone.begin


def test_sums_are_those_of_each_file(tmp_path: Path) -> None:
    files = rank(100, 300), rank(700, 500)
    profile = merged(tmp_path, *files)
    for metric in profile.metrics:
        for at in range(2):
            alone = load(tmp_path / f"{at}.pickle")
            own = held(alone, levels=("device", "python"), metric=metric.key)
            of_rank = held(
                profile,
                Ranks((f"rank {at}",)),
                levels=("device", "python"),
                metric=metric.key,
            )
            assert sorted(own.values()) == sorted(of_rank.values())
        table = profile.table(metric)
        assert table is profile.table(metric)
        assert np.array_equal(table.measures[metric.key], metric.values(table))


def test_files_are_read_by_other_processes(tmp_path: Path) -> None:
    paths = [rank(100, 300).write(tmp_path / f"rank{at}.pickle") for at in range(2)]
    assert held(load_all(paths)) == {
        f"rank{at}/main/{name}": 300 for at in range(2) for name in ("step", "weights")
    }


def test_a_snapshot_beside_a_trace_is_refused(tmp_path: Path) -> None:
    path = rank(100, 300).write(tmp_path / "snapshot.pickle")
    trace = load(SAMPLES / "decode_small.sqlite")
    with pytest.raises(InputError, match=r"^b is a memory snapshot, a is none: .* one by one$"):
        merge_profiles([trace, load(path)], ["a", "b"])


def test_moments_and_lives_are_those_of_each_rank(tmp_path: Path) -> None:
    """A time on the clock of all is one of each rank's own, and tables go together row by row."""
    profile = merged(tmp_path, rank(100, 300), rank(700, 500))
    memory = profile.memory
    assert memory is not None
    cut = TableCut(devices=(1, 2))
    assert [one.live for one in memory.moments("peak", cut)] == [600, 1_400]
    assert memory.moments("alloc", cut) == ()
    table, lives = memory.table("alloc", cut), memory.lives("alloc", cut)
    assert table.measures["alloc"].tolist() == lives.size.tolist() == [300, 300, 700, 700]
    assert lives.alive.tolist() == [False, True, False, True]
    peaks = {one.device: one.peak_time for one in memory.devices}
    for curve in memory.curves:
        time = peaks[curve.device]
        assert time is not None and curve.time[curve.live.argmax()] == time
        (moment,) = memory.moments("peak", TableCut(devices=(curve.device,), moment=time))
        assert (moment.device, moment.time) == (curve.device, time)
        assert moment.live == curve.live.max()
