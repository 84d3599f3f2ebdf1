"""How busy GPUs were: to the nanosecond as counted by hand, in any window."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.analysis.utilization import (
    Utilization,
    gap_edges,
    idle_gaps,
    kernels_busy,
    utilizations,
)
from flame.core.loading.many import load, load_all
from flame.core.model.activities import GroupTotals
from flame.core.model.frames import COPIES, Kind
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import where
from flame.core.projection.filters import Time
from flame.core.timeline.busy_time import BusyTime, TimeWindow
from tests.conftest import EVERY_NSYS_TRACE, NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.paths import SAMPLES
from tests.support.tiers import examples
from tests.support.writers.nsysfile import HTOD, NsysFile

KINETO_TRACES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))
OPAQUE = ("cuda_graph_opaque.sqlite", "cuda_graph_small.sqlite")
"""NVIDIA's rule does not count graphs traced as a whole as work."""

random_traces = examples(1, [HealthCheck.too_slow])
intervals = st.lists(st.tuples(st.integers(-5, 30), st.integers(0, 8)))


def union(pairs: list[tuple[int, int]]) -> BusyTime:
    start = np.array([start for start, _ in pairs], np.int64)
    return BusyTime.union(start, start + np.array([length for _, length in pairs], np.int64))


def moments(pairs: list[tuple[int, int]]) -> set[int]:
    """The nanoseconds in which any of the (start, length) is open."""
    return {moment for start, length in pairs for moment in range(start, start + length)}


def recorded(
    profile: Profile, device: int, without: tuple[Kind, ...] = ()
) -> list[tuple[int, int]]:
    """(start, length) of what ran on ``device``, row by row."""
    table, found = profile.activities, []
    for row in range(len(table)):
        start, length = int(table.start[row]), int(table.duration[row])
        kind = Kind(int(table.kind[row]))
        if kind == Kind.GRAPH and not start and not length:
            continue
        if table.device[row] == device and kind not in without:
            found.append((start, length))
    return found


def gaps_of(each: Utilization) -> list[tuple[int, int]]:
    low, high = gap_edges(each)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def check_sums(profile: Profile, each: Utilization) -> None:
    """What must hold of every GPU, in whatever window."""
    assert 0 <= each.busy <= each.length
    assert each.busy + each.idle == each.length
    assert sum(high - low for low, high in gaps_of(each)) == each.idle
    assert 0 <= kernels_busy(profile, each) <= each.busy
    for number in (1, 7, 60):
        busy, length = each.in_cells(each.window, number)
        assert length.sum() == each.window.length and length.max() - length.min() <= 1
        assert (busy <= length).all() and (busy >= 0).all()
        assert busy.sum() == each.stretches.within(each.window.moved(-each.origin))


# Stretches


@given(intervals, st.integers(-10, 40), st.integers(0, 30), st.integers(1, 9))
def test_stretches_are_the_union_of_intervals(
    pairs: list[tuple[int, int]], low: int, length: int, number: int
) -> None:
    busy, open_at, window = union(pairs), moments(pairs), TimeWindow(low, low + length)
    assert busy.total == len(open_at)
    assert busy.within(window) == len(open_at & set(range(*window)))
    cells, lengths = busy.in_cells(window, number)
    edges = [low + length * at // number for at in range(number + 1)]
    by_hand = [len(open_at & set(range(*edge))) for edge in pairwise(edges)]
    assert cells.tolist() == by_hand and lengths.sum() == length


@given(intervals)
def test_stretches_neither_touch_nor_overlap(pairs: list[tuple[int, int]]) -> None:
    busy = union(pairs)
    assert (busy.low[1:] > busy.high[:-1]).all()
    ends = [start + length for start, length in pairs]
    if pairs:
        assert busy.window == (min(pairs)[0], max(ends))


# Random traces


@given(intervals, intervals, st.data())
def test_times_meet_stretches_that_they_share_a_nanosecond_with(
    pairs: list[tuple[int, int]], times: list[tuple[int, int]], data: st.DataObject
) -> None:
    busy, open_at = union(pairs), moments(pairs)
    cut = np.array([data.draw(st.booleans()) for _ in range(len(busy))], bool)
    parts = zip(busy.low[cut], busy.high[cut], strict=True)
    gone = {moment for low, high in parts for moment in range(int(low), int(high))}
    busy = BusyTime.between(busy.low, np.where(cut, busy.low, busy.high))  # some without length
    low = np.array([start for start, _ in times], np.int64)
    high = low + np.array([length for _, length in times], np.int64)
    told = [not (open_at - gone).isdisjoint(moments([one])) for one in times]
    assert busy.meets(low, high).tolist() == told


@random_traces
@given(scripts(), st.integers(-3, 20), st.integers(0, 20))
def test_gpus_are_as_busy_as_counted_by_hand(
    trace_file: Path, script: Script, begin: int, length: int
) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    given_ = Time(begin + script.offset, begin + length + script.offset)
    whole, part = utilizations(profile), utilizations(profile, (given_,))
    used = {int(device) for device in profile.activities.device if recorded(profile, device)}
    assert {each.device for each in whole} == {each.device for each in part} == used
    for each, cut in zip(whole, part, strict=True):
        pairs = recorded(profile, each.device)
        open_at = moments(pairs)
        assert each.window == (min(pairs)[0], max(start + length for start, length in pairs))
        assert (each.length, each.busy) == (each.window.length, len(open_at))
        kernels = moments(recorded(profile, each.device, COPIES))
        assert kernels_busy(profile, each) == len(kernels)
        chosen = set(
            range(max(given_.begin or 0, profile.begin), min(given_.end or 0, profile.end))
        )
        assert (cut.length, cut.busy) == (len(chosen), len(open_at & chosen))
        idle = {moment for low, high in gaps_of(cut) for moment in range(low, high)}
        assert idle == chosen - open_at
        assert kernels_busy(profile, cut) == len(kernels & chosen)
        check_sums(profile, each)
        check_sums(profile, cut)


@random_traces
@given(scripts())
def test_gaps_lie_between_activities(trace_file: Path, script: Script) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    table, found = profile.activities, idle_gaps(profile, 1000)
    assert sum(gap.length for gap in found) == sum(each.idle for each in utilizations(profile))
    assert [gap.length for gap in found] == sorted((gap.length for gap in found), reverse=True)
    for gap in found:
        assert table.start[gap.before] + table.duration[gap.before] == gap.begin
        assert table.start[gap.after] == gap.end
        assert table.device[gap.before] == table.device[gap.after] == gap.device


# Real traces


@cache
def real(name: str) -> Profile:
    return load(TRACES / ("nsys" if name.endswith(".sqlite") else "kineto") / name)


@needs_traces
@pytest.mark.parametrize("trace", [*EVERY_NSYS_TRACE, *KINETO_TRACES])
def test_sums_agree_on_real_traces(trace: str) -> None:
    profile = real(trace)
    for each in utilizations(profile):
        check_sums(profile, each)
        middle = sum(each.window) // 2
        halves = [
            next(one for one in utilizations(profile, (window,)) if one.device == each.device)
            for window in (Time(end=middle), Time(begin=middle))
        ]
        assert sum(half.busy for half in halves) == each.busy
        assert sum(half.idle for half in halves) == each.idle
        for half in halves:
            check_sums(profile, half)


@needs_traces
@pytest.mark.parametrize("trace", EVERY_NSYS_TRACE)
def test_busy_time_is_that_of_a_plain_sweep(trace: str) -> None:
    profile = real(trace)
    for each in utilizations(profile):
        busy, until = 0, each.window.low
        for start, length in sorted(recorded(profile, each.device)):
            busy += max(start + length - max(start, until), 0)
            until = max(until, start + length)
        assert (each.busy, each.window.high) == (busy, until)


@needs_traces
@pytest.mark.parametrize("trace", [name for name in NSYS_TRACES if name not in OPAQUE])
def test_gaps_are_those_of_nvidias_rule(trace: str) -> None:
    path = TRACES / "reports" / f"{Path(trace).stem}.gpu_gaps_0ms.csv"
    if not path.exists():
        pytest.skip("the rule has not been run on this trace")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    profile = real(trace)
    if len({row["PID"] for row in rows}) > len({row["Device ID"] for row in rows}):
        pytest.skip("the rule looks at each process of a GPU by itself")
    told = {(int(row["Start:ts_ns"]), int(row["Duration:dur_ns"])) for row in rows}
    found = {(gap.begin, gap.length) for gap in idle_gaps(profile, 1_000_000)}
    assert found == told


def test_a_graph_traced_as_a_whole_is_work() -> None:
    if not NSYS_TRACES:
        pytest.skip("no real traces")
    [gpu] = utilizations(real("cuda_graph_opaque.sqlite"))
    assert gpu.idle < 1_000_000 < gpu.busy


# What has it, and what not


def write(path: Path, pid: int, *kernels: tuple[int, int, int]) -> Path:
    """Kernels as (device, start, length)."""
    with NsysFile(path) as file:
        file.process(pid, "trainer")
        for device, start, length in kernels:
            file.kernel("gemm", start, start + length, pid=pid, device=device)
    return path


def test_streams_and_processes_are_not_added_up(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "x.sqlite") as file:
        for pid, stream, start in ((100, 7, 0), (100, 13, 50), (101, 7, 60)):
            file.process(pid, "rank")
            file.kernel("gemm", start, start + 100, pid=pid, stream=stream)
    [gpu] = utilizations(load(tmp_path / "x.sqlite"))
    assert (gpu.length, gpu.busy, gpu.idle, gpu.share) == (160, 160, 0, 1.0)


def test_each_gpu_of_each_file_is_by_itself(tmp_path: Path) -> None:
    first = write(tmp_path / "a.sqlite", 1, (0, 0, 100), (0, 300, 100), (1, 50, 50))
    second = write(tmp_path / "b.sqlite", 2, (0, 0, 30), (0, 40, 20))
    profile = load_all([first, second])
    found = {
        (profile.devices[each.device].source, profile.devices[each.device].id): each
        for each in utilizations(profile)
    }
    assert {key: (each.length, each.busy) for key, each in found.items()} == {
        (0, 0): (400, 200),
        (0, 1): (50, 50),
        (1, 0): (60, 50),
    }
    assert len({each.label for each in found.values()}) == 3


def test_filters_choose_gpus_and_time_but_not_what_ran(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sqlite", 1, (0, 0, 100), (0, 300, 100), (1, 0, 50))
    profile = load(path, LoadOptions("raw"))
    [gpu] = utilizations(profile, where(device=1))
    assert profile.devices[gpu.device].id == 1
    assert len(utilizations(profile, where(kernel="nothing"))) == 2
    cut, _ = utilizations(profile, (Time(50, 320),))
    assert (cut.window, cut.length, cut.busy) == ((50, 320), 270, 70)
    outside, _ = utilizations(profile, (Time(1_000, 2_000),))
    assert (outside.length, outside.busy, outside.share) == (0, 0, None)


def test_steps_choose_the_time_of_their_processes() -> None:
    profile = load(SAMPLES / "torch_small.pt.trace.json.gz")
    steps = profile.steps
    assert steps is not None
    number = int(steps.number[0])
    [gpu] = utilizations(profile, where(step=(str(number),)))
    [at] = np.flatnonzero(steps.number == number).tolist()
    assert gpu.window == (int(steps.start[at]), int(steps.end[at]))
    check_sums(profile, gpu)


def test_what_ran_around_a_gap_is_known(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "x.sqlite") as file:
        file.memcpy(HTOD, 0, 90, corr=None)
        file.kernel("early", 20, 100)
        for corr, name in ((1, "first"), (2, "last")):
            file.api("cudaLaunchKernel", 10 * corr, 10 * corr + 5, corr=corr)
            file.kernel(name, 500, 600, corr=corr, stream=corr)
    profile = load(tmp_path / "x.sqlite")
    [gap] = idle_gaps(profile, 5)
    assert (gap.begin, gap.length) == (100, 400)
    table = profile.activities
    names = [profile.frames[int(table.frame[row])].name for row in (gap.before, gap.after)]
    assert names == ["early", "last"]
    [cut] = idle_gaps(profile, 5, (Time(200, 300),))
    assert (cut.begin, cut.length, cut.before, cut.after) == (200, 100, -1, -1)


def test_nothing_is_said_where_nothing_is_known(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "x.sqlite") as file:
        file.process(100, "idle")
        file.api("cudaMalloc", 0, 100)
    bare = load(tmp_path / "x.sqlite")
    assert utilizations(bare) == () and idle_gaps(bare, 5) == ()
    (tmp_path / "x.folded").write_text("a;b 3\n")
    assert utilizations(load(tmp_path / "x.folded")) == ()
    whole = load(write(tmp_path / "y.sqlite", 1, (0, 0, 100)))
    assert utilizations(whole)
    forgotten = GroupTotals({}, {}, since=whole.begin + 1)
    assert utilizations(replace(whole, totals=forgotten)) == ()


def test_a_graph_without_times_is_in_no_interval(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "x.sqlite") as file:
        file.graph(start=0, end=0, graph_id=1)
        file.kernel("gemm", 1_000, 1_100)
    [gpu] = utilizations(load(tmp_path / "x.sqlite", LoadOptions("raw")))
    assert (gpu.window, gpu.busy) == ((1_000, 1_100), 100)
