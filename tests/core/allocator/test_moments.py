"""Which moment is shown, how much lived over time, and how long each allocation lived."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from flame.core.allocator.live import live_curve
from flame.core.allocator.recorded import HistoryMemory
from flame.core.allocator.snapshot_profile import build_snapshot_profile
from flame.core.allocator.tables import DeviceAllocations
from flame.core.analysis.words.memory import moment_words
from flame.core.columns import I8
from flame.core.compare.sides import Run
from flame.core.errors import UsageError
from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.activities import TableCut
from flame.core.model.allocator.allocations import BEFORE, Allocations
from flame.core.model.allocator.history import AllocatorEvents
from flame.core.model.meta import Meta
from flame.core.model.profile import Profile
from flame.core.projection.filters import At, Devices, Filter, Moment, Ranks, ShowStacks, Time
from flame.core.projection.project import project, shown_moments
from flame.core.projection.selection import Selection
from flame.core.readers.snapshot.document import read_history
from tests.core.allocator.test_allocations import live_by_hand, snapshots
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile
from tests.support.writers.snapshotfile import STEP_US, SnapshotFile

STEP = STEP_US * 1_000


def profile_of(file: SnapshotFile, first: int = 0) -> Profile:
    meta = Meta(path="x", format="memory snapshot", producer="PyTorch")
    return build_snapshot_profile(read_history(file.document(first), 1 << 30), meta)


def total(profile: Profile, *where: Filter, metric: str = "peak") -> int:
    return int(project(profile, Selection(where=where, metric=metric)).total[0])


@pytest.fixture
def file() -> SnapshotFile:
    """300 bytes at first, 1,300 at most, 900 when a request fails, 200 at the end; GPU1: 70."""
    file = SnapshotFile(2)
    early = file.alloc(300, ("main", "weights"))
    much = file.alloc(1_000, ("main", "forward"))
    file.alloc(70, ("main",), device=1)
    file.free(much)
    late = file.alloc(600, ("main", "backward"))
    file.fail(5_000, 80)
    file.free(early)
    file.free(late)
    file.alloc(200, ("main", "state"))
    return file


@pytest.mark.parametrize(("moment", "size"), [("peak", 1_300), ("oom", 900), ("end", 200)], ids=str)
@pytest.mark.parametrize("metric", ["peak", "live"])
def test_both_metrics_show_the_moment_that_is_asked_for(
    file: SnapshotFile, moment: Moment, size: int, metric: str
) -> None:
    assert total(profile_of(file), At(moment), metric=metric) == size


def test_metrics_over_a_time_do_not_know_moments(file: SnapshotFile) -> None:
    profile = profile_of(file)
    for metric in ("alloc", "churn", "held"):
        assert total(profile, At("end"), metric=metric) == total(profile, metric=metric)
        assert not shown_moments(profile, Selection(where=(At("end"),), metric=metric))


def test_a_filter_of_stacks_does_not_move_the_moment(file: SnapshotFile) -> None:
    """When most lived in all; what is asked for had its own peak later."""
    profile = profile_of(file)
    assert total(profile, ShowStacks("forward|backward")) == 1_000
    [moment] = shown_moments(profile, Selection(where=(ShowStacks("backward"),)))
    assert moment.live == 1_300
    assert total(profile, At("oom"), ShowStacks("backward")) == 600


def test_names_of_moments_are_those_of_the_window(file: SnapshotFile) -> None:
    profile = profile_of(file)
    [peak] = shown_moments(profile, Selection())
    assert peak.time is not None
    window = Time(peak.time + 1, None)
    assert total(profile, At("peak"), window) == 1_300  # lived on into it
    assert total(profile, At("peak"), Time(None, peak.time)) == 300
    assert total(profile, At("end"), Time(None, peak.time + 1)) == 1_300
    with pytest.raises(UsageError, match="no request for memory failed here"):
        total(profile, At("oom"), Time(None, peak.time))


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ((At(-5),), "--at -5 ns: the history runs from 0 ns to"),
        ((At(10**15),), "the history runs from"),
        ((At(3 * STEP), Time(4 * STEP, None)), "lies outside of --time"),
        ((At("peak"), At("end")), "only one moment"),
    ],
    ids=["before", "after", "outside", "two"],
)
def test_a_moment_that_there_is_not_is_refused(
    file: SnapshotFile, where: tuple[Filter, ...], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        total(profile_of(file), *where)


def test_histories_without_times_know_moments_by_name(file: SnapshotFile) -> None:
    for trace in file.traces:
        for entry in trace:
            del entry["time_us"]
    profile = profile_of(file)
    assert [total(profile, At(moment)) for moment in ("peak", "oom", "end")] == [1_300, 900, 200]
    with pytest.raises(UsageError, match="has no times: use peak, oom or end"):
        total(profile, At(STEP))
    assert profile.memory is not None and not profile.memory.curves


def test_traces_without_memory_refuse_it(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as trace:
        trace.kernel("gemm", 0, 10, None)
    with pytest.raises(UsageError, match="not recorded here who allocated"):
        project(load(tmp_path / "trace.sqlite"), Selection(where=(At("peak"),)))


def test_the_gpu_on_which_a_request_failed_is_shown(file: SnapshotFile) -> None:
    file.fail(9_000, 10, device=1)
    profile = profile_of(file)
    assert total(profile, At("oom")) == 70
    assert total(profile, At("oom"), Devices((0,))) == 900
    assert total(profile, At("oom"), Devices((0, 1))) == 70 + 200


@given(snapshots())
@examples(10)
def test_the_curve_is_what_lives_after_each_event(file: SnapshotFile) -> None:
    """And at a time that an event has alone, as much is shown."""
    profile, truth = profile_of(file), file.whole_truth()
    assert profile.memory is not None
    for curve in profile.memory.curves:
        number = profile.devices[curve.device].id
        by_hand = [live_by_hand(truth, number, at) for at in curve.position.tolist()]
        assert curve.live.tolist() == by_hand
        assert curve.reserved is not None and (curve.reserved >= curve.live).all()
        middle = int(curve.time[len(curve.time) // 2])
        cut = TableCut((), (curve.device,), moment=middle)
        [moment] = profile.memory.moments("live", cut)
        assert moment.live == int(profile.memory.table("live", cut).measures["live"].sum())
        assert moment.live == int(curve.live[curve.time == middle].max())


def test_reserved_memory_is_rolled_back_from_the_end(file: SnapshotFile) -> None:
    """Segments of 2 MiB: as many as were got until then, also where the first events are lost."""
    memory = profile_of(file).memory
    assert memory is not None and memory.curves[0].reserved is not None
    assert memory.curves[0].reserved[:4].tolist() == [0, 2 << 20, 2 << 20, 4 << 20]
    late = profile_of(file, first=3).memory
    assert late is not None and late.curves[0].reserved is not None
    assert set(late.curves[0].reserved.tolist()) == {4 << 20}


def test_lost_events_of_segments_leave_reserved_unknown(file: SnapshotFile) -> None:
    file.traces[0].insert(
        0, {"action": "segment_alloc", "addr": 1, "size": 1 << 40, "time_us": file.now_us}
    )
    memory = profile_of(file).memory
    assert memory is not None and memory.curves[0].reserved is None


def test_lifetimes_are_known_where_both_ends_are(file: SnapshotFile) -> None:
    memory = profile_of(file).memory
    assert memory is not None
    lives = memory.lives("alloc", TableCut((), (0,)))
    found = dict(zip(lives.size.tolist(), lives.lifetime.tolist(), strict=True))
    assert found[200] == -1
    assert found[1_000] == 3 * STEP  # a segment, an allocation and it being given back follow
    assert lives.alive.tolist() == [size == 200 for size in lives.size.tolist()]
    late = profile_of(file, first=3).memory
    assert late is not None
    begun = late.lives("peak", TableCut((), (0,)))
    assert dict(zip(begun.size.tolist(), begun.before.tolist(), strict=True))[300]
    assert begun.lifetime.tolist() == [-1, 3 * STEP]


# Many GPUs, and several files


@given(
    st.lists(st.integers(0, 20), max_size=12).map(sorted),
    st.lists(st.integers(0, 22), max_size=8).map(sorted),
)
def test_the_last_events_before_times_are_those_found_one_by_one(
    events: list[int], times: list[int]
) -> None:
    position = np.arange(len(events), dtype=np.int64) * 3
    none: I8 = np.zeros(0, np.int64)
    table = Allocations(*(none,) * 10)  # type: ignore[arg-type]
    own = DeviceAllocations(none, table, live_curve(table), position, np.array(events, np.int64))
    found = own.last_before_each(np.array(times, np.int64)).tolist()
    assert found == sorted({own.last_before(time) for time in times} - {BEFORE})


def test_files_in_which_a_request_failed_are_shown_and_others_named(file: SnapshotFile) -> None:
    """One that failed on the first GPU, one on the second, and two on neither."""
    second, whole = SnapshotFile(2), SnapshotFile(1)
    second.alloc(5_000, ("main", "weights"))
    second.alloc(40, ("main", "other"), device=1)
    second.fail(9_000, 10, device=1)
    whole.alloc(7_000)
    files = [whole, file, second, whole]
    labels = [f"rank {rank}" for rank in range(4)]
    merged = merge_profiles([profile_of(one) for one in files], labels)
    oom = Selection(where=(At("oom"),))
    tree = project(merged, oom)
    sizes = {tree.name(node): int(tree.total[node]) for node in tree.children(0)}
    assert sizes == {"rank 1": 900, "rank 2": 40}
    assert moment_words(merged, oom).endswith("; none failed in rank 0, rank 3")
    assert total(merged, At("oom"), Ranks(("rank 2",))) == 40
    assert not moment_words(merged, Selection(where=(At("oom"), Ranks(("rank 2",))))).count(
        "none failed"
    )
    with pytest.raises(UsageError, match="no request for memory failed here"):
        total(merged, At("oom"), Ranks(("rank 0", "rank 3")))
    everything = Selection(levels=("python",), where=(At("oom"),))
    assert int(project(merged, everything).total[0]) in (900, 40)  # of the last one alone


def test_the_file_without_a_time_is_named(file: SnapshotFile) -> None:
    short = SnapshotFile(1)
    short.alloc(1_000)
    merged = merge_profiles([profile_of(file), profile_of(short)], ["rank 0", "rank 1"])
    with pytest.raises(UsageError, match=r"the history of rank 1 runs from .*: --rank chooses"):
        total(merged, At(5 * STEP))
    assert total(merged, At(5 * STEP), Ranks(("rank 0",))) == 1_300


def test_events_of_many_gpus_are_looked_at_once_for_each_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = SnapshotFile(100)
    for device in range(100):
        file.free(file.alloc(1_000 + device, device=device))
    memory, looked_at, take = profile_of(file).memory, list[int](), AllocatorEvents.take

    def counted(events: AllocatorEvents, rows: I8) -> AllocatorEvents:
        looked_at.append(len(rows))
        return take(events, rows)

    assert isinstance(memory, HistoryMemory)
    monkeypatch.setattr(AllocatorEvents, "take", counted)
    assert [one.peak for one in memory.devices] == [1_000 + device for device in range(100)]
    assert len(memory.curves) == 100
    assert sum(looked_at) == 2 * len(memory.history.events)


def test_of_two_that_are_compared_the_one_without_the_moment_is_named(file: SnapshotFile) -> None:
    oom, whole = Selection(where=(At("oom"),)), SnapshotFile(1)
    whole.alloc(1_000)
    assert int(Run(profile_of(file), "new.pickle").tree(oom).total[0]) == 900
    with pytest.raises(UsageError, match=r"base\.pickle: --at oom: no request for memory failed"):
        Run(profile_of(whole), "base.pickle").tree(oom)
