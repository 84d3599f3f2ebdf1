"""One GPU under several processes of a recording: told of as one, and as busy as it was."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple, cast

from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.utilization import idle_gaps, utilizations
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.allocator.recorded import RecordedMemory
from flame.core.model.meta import Device, Meta
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import where
from flame.core.report.parties.ranks import measure_ranks
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.timeline.intervals import timeline
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves

BOOT = "boot 1700000000"


class Ran(NamedTuple):
    """A kernel on the GPU that its process calls ``ordinal``."""

    ordinal: int
    start: int
    length: int


class Worker(NamedTuple):
    """A process: which GPUs it sees, when its clock began, and what it ran."""

    sees: tuple[str, str]
    origin: int
    ran: tuple[Ran, ...]

    def profile(self, clock: str = BOOT, **more: Any) -> Profile:
        recorded = Recorded()
        for number, (ordinal, start, length) in enumerate(self.ran, 1):
            recorded.call("cudaLaunchKernel", start, start + 1, number)
            recorded.kernel("gemm", start, start + length, number, device=ordinal)
        one = recorded.profile(Meta(clock=clock, origin=self.origin, host="node"))
        gpus = tuple(Device(at, f"GPU of {uuid}", uuid=uuid) for at, uuid in enumerate(self.sees))
        return replace(one, devices=gpus, **more)


def merged(workers: list[Worker]) -> Profile:
    labels = [f"rank {number}" for number in range(len(workers))]
    return merge_profiles([one.profile() for one in workers], labels)


def gpu_of(workers: list[Worker], worker: int, ordinal: int) -> tuple[object, ...]:
    """What tells a GPU from others: its UUID, or whose it is and which."""
    uuid = workers[worker].sees[ordinal]
    return (uuid,) if uuid else (worker, ordinal)


def naive(workers: list[Worker]) -> dict[tuple[object, ...], list[tuple[int, int]]]:
    """When each GPU ran something, in the order of files and rows, on one clock."""
    found = defaultdict(list)
    for number, worker in enumerate(workers):
        for ran in worker.ran:
            start = worker.origin + ran.start
            found[gpu_of(workers, number, ran.ordinal)].append((start, start + ran.length))
    return found


def busy(times: list[tuple[int, int]]) -> int:
    """Count the nanoseconds of a GPU in which anything ran, one by one."""
    return len({at for start, end in times for at in range(start, end)})


def idle_before(times: list[tuple[int, int]]) -> list[int]:
    """Say how long nothing had run before each of them; 0 of the first."""
    order = sorted(range(len(times)), key=lambda at: (times[at][0], at))
    idle = [0] * len(times)
    for place, at in enumerate(order):
        ends = [times[other][1] for other in order[:place]]
        idle[at] = max(0, times[at][0] - max(ends)) if ends else 0
    return idle


RAN = st.builds(Ran, st.integers(0, 1), st.integers(0, 60), st.integers(1, 20))
UUIDS = st.permutations(["a", "b", "c", ""]).map(lambda all_: (all_[0], all_[1]))
WORKERS = st.lists(
    st.builds(Worker, UUIDS, st.integers(0, 30), st.lists(RAN, min_size=1, max_size=8).map(tuple)),
    min_size=2,
    max_size=4,
)


@given(WORKERS)
def test_a_gpu_is_as_busy_as_all_of_its_processes_made_it(workers: list[Worker]) -> None:
    whole, expected = merged(workers), naive(workers)
    keys = {gpu_of(workers, number, at) for number in range(len(workers)) for at in (0, 1)}
    assert len(whole.devices) == len(keys)
    assert len({gpu.uuid for gpu in whole.devices if gpu.uuid}) == len(
        [gpu for gpu in whole.devices if gpu.uuid]
    )
    found = {}
    for each in utilizations(whole):
        gpu = whole.devices[each.device]
        key = (gpu.uuid,) if gpu.uuid else (gpu.source, gpu.id)
        found[key] = each.busy, each.length
    assert found == {
        key: (busy(times), max(map(max, times)) - min(map(min, times)))
        for key, times in expected.items()
    }
    ran = sum(ran.length for worker in workers for ran in worker.ran)
    assert int(whole.activities.duration.sum()) == ran
    assert sum(leaves(project_tree(whole, "device")).values()) == ran
    gaps = defaultdict[int, int](int)
    for gap in idle_gaps(whole, 1000):
        gaps[gap.device] += gap.length
    assert all(gaps[each.device] == each.idle for each in utilizations(whole))


@given(WORKERS)
def test_idle_time_before_work_is_that_of_the_gpu(workers: list[Worker]) -> None:
    whole, at = merged(workers), defaultdict[tuple[object, ...], int](int)
    expected = {key: idle_before(times) for key, times in naive(workers).items()}
    for row, (number, ran) in enumerate(
        (number, ran) for number, worker in enumerate(workers) for ran in worker.ran
    ):
        key = gpu_of(workers, number, ran.ordinal)
        assert int(whole.activities.idle[row]) == expected[key][at[key]], row
        at[key] += 1


@given(WORKERS)
def test_budgets_are_of_gpus_and_count_to_each_of_their_ranks(workers: list[Worker]) -> None:
    scope = Scope(merged(workers))
    found = budgets(scope)
    assert {one.gpu.device for one in found} == {one.device for one in scope.gpus}
    assert not any(one.check for one in found)
    ranks = measure_ranks(scope)
    for number, worker in enumerate(workers):
        own = {gpu_of(workers, number, at) for at in (0, 1)}
        times = [times for key, times in naive(workers).items() if key in own]
        windows = [max(map(max, each)) - min(map(min, each)) for each in times]
        assert int(ranks.window[number]) == sum(windows), worker


SHARING = [
    Worker(("a", "b"), 0, (Ran(0, 10, 20), Ran(1, 0, 5))),
    Worker(("c", "a"), 5, (Ran(1, 15, 30),)),
]


def test_a_gpu_has_one_frame_and_a_lane_for_each_process() -> None:
    whole = merged(SHARING)
    assert [(gpu.uuid, gpu.id, gpu.sources) for gpu in whole.devices] == [
        ("a", 0, (0, 1)),
        ("b", 1, (0,)),
        ("c", 0, (1,)),
    ]
    assert leaves(project_tree(whole, "device")) == {
        ("GPU 0 GPU of a",): 50,
        ("GPU 1 GPU of b",): 5,
    }
    assert leaves(project_tree(whole, "rank,device")) == {
        ("rank 0", "GPU 0 GPU of a"): 20,
        ("rank 0", "GPU 1 GPU of b"): 5,
        ("rank 1", "GPU 0 GPU of a"): 30,
    }
    assert [label for label, _ in timeline(whole).devices] == ["rank 0+1 GPU0", "rank 0 GPU1"]
    lanes = {lane.label: lane.owner for lane in timeline(whole).lanes if "GPU0" in lane.label}
    assert lanes == {"rank 0 GPU0 stream 7 [100]": 0, "rank 1 GPU0 stream 7 [100]": 0}
    assert not any("one GPU" in text for text in whole.warnings)


def test_a_rank_chooses_the_gpus_that_it_used() -> None:
    whole = merged(SHARING)
    [shared] = utilizations(whole, where(rank="rank 1"))
    assert (shared.busy, shared.length) == (40, 40)


def test_gpus_of_several_recordings_and_with_memory_stay_apart() -> None:
    one, other = SHARING[0].profile(), SHARING[1].profile(clock="boot 1800000000")
    assert len(merge_profiles([one, other], ["a", "b"]).devices) == 4
    memory = cast(RecordedMemory, None)  # what it would be is not looked at
    kept = replace(one, memory_builder=lambda: memory), SHARING[1].profile()
    whole = merge_profiles(kept, ["a", "b"])
    assert len(whole.devices) == 4
    [warning] = [text for text in whole.warnings if "one GPU" in text]
    assert "GPU 0 of a and GPU 1 of b" in warning
