"""Trace events of Chrome: nothing overlaps that does not nest, and the trace is read back."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.many import load, load_all
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import where
from flame.core.projection.labels import Naming
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.exporters import chrome
from flame.exporters.chrome_tracks import free_lanes, nested_lanes
from tests.conftest import NSYS_TRACES
from tests.support.paths import SAMPLES
from tests.support.writers.nsysfile import NsysFile

PROCESSOR = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
EXACT = Selection(naming=Naming(kernel_names="demangled"))
SAMPLE_TRACES = ("decode_small.sqlite", "torch_small.pt.trace.json.gz")


def export(profile: Profile, selection: Selection = EXACT) -> dict[str, Any]:
    file = io.BytesIO()
    chrome.write(project(profile, selection), profile, selection, file, name="trace")
    document: dict[str, Any] = json.loads(file.getvalue())
    return document


def slices(document: dict[str, Any]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Events with a duration, by process and thread."""
    found = defaultdict[tuple[int, int], list[dict[str, Any]]](list)
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            found[event["pid"], event["tid"]].append(event)
    return found


def ns(us: float) -> int:
    return round(us * 1_000)


def check_nesting(document: dict[str, Any]) -> None:
    for events in slices(document).values():
        times = [(ns(event["ts"]), -ns(event["dur"])) for event in events]
        ends: list[int] = []
        for start, length in sorted(times):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or start - length <= ends[-1], "crosses what is open"
            ends.append(start - length)


def check_arrows(document: dict[str, Any]) -> None:
    """Each leads from a call to an activity with its number."""
    begin, end = (
        {one["id"]: one for one in document["traceEvents"] if one["ph"] == phase} for phase in "sf"
    )
    assert begin.keys() == end.keys()
    at = {
        (event["pid"], event["tid"], event["ts"], event["cat"]): event
        for events in slices(document).values()
        for event in events
    }
    for number, from_ in begin.items():
        call = at[from_["pid"], from_["tid"], from_["ts"], "cuda_runtime"]
        to = end[number]
        works = [
            at.get((to["pid"], to["tid"], to["ts"], kind))
            for kind in ("kernel", "gpu_memcpy", "gpu_memset")
        ]
        [work] = filter(None, works)
        assert work["args"]["correlation"] == call["args"]["correlation"]


def activities(profile: Profile) -> list[tuple[Any, ...]]:
    """What ran, when after the first, where, and what launched it."""
    table = profile.activities
    first = table.start.min()
    names = (profile.frames[frame].name for frame in table.frame.tolist())
    launches = (profile.frames[frame].name for frame in table.launch.tolist())
    devices = [profile.devices[device].id for device in table.device.tolist()]
    times = (table.start - first).tolist(), table.duration.tolist()
    return sorted(zip(names, *times, devices, table.stream.tolist(), launches, strict=True))


@pytest.mark.parametrize("name", SAMPLE_TRACES)
def test_a_trace_is_read_back(name: str, tmp_path: Path) -> None:
    profile = load(SAMPLES / name)
    document = export(profile)
    check_nesting(document)
    check_arrows(document)
    path = tmp_path / "x.chrome.json"
    path.write_text(json.dumps(document))
    again = load(path)
    assert activities(again) == activities(profile)
    trees = [project(one, Selection(("nvtx",))) for one in (profile, again)]
    sums = [
        {tree.names(node): int(own) for node, own in enumerate(tree.own) if own} for tree in trees
    ]
    if name.startswith("torch"):  # There are no graphs, whose ranges are of another time.
        assert sums[1] == sums[0]


@pytest.mark.deep
@pytest.mark.parametrize("trace", NSYS_TRACES)
def test_real_traces_nest_and_have_all_their_time(
    trace: str, nsys_trace: Callable[[str], Path]
) -> None:
    profile = load(nsys_trace(trace))
    if not len(profile.activities):
        return
    document = export(profile)
    check_nesting(document)
    work = [
        event
        for events in slices(document).values()
        for event in events
        if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    assert sum(ns(event["dur"]) for event in work) == profile.gpu_time
    assert len(work) <= profile.size


def test_filters_leave_only_what_passes_and_the_time_around(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with NsysFile(path) as file:
        for corr, name in enumerate(("gemm", "copy", "gemm"), 1):
            file.api("cudaLaunchKernel_v7000", 1_000 * corr, 1_000 * corr + 10, corr=corr)
            file.kernel(name, 1_000 * corr + 20, 1_000 * corr + 120, corr=corr)
    document = export(load(path), Selection(where=where(kernel="copy")))
    names = [event["name"] for events in slices(document).values() for event in events]
    assert sorted(names) == ["copy", "cudaLaunchKernel"]


def test_processes_and_gpus_of_equal_numbers_stay_apart(tmp_path: Path) -> None:
    paths = []
    for rank in range(2):
        path = tmp_path / f"rank{rank}.sqlite"
        with NsysFile(path) as file:
            file.api("cudaLaunchKernel_v7000", 1_000, 1_010, corr=1)
            file.kernel(f"of {rank}", 1_020, 1_090, corr=1)
        paths.append(path)
    document = export(load_all(paths))
    tracks = {events[0]["pid"] for events in slices(document).values()}
    assert len(tracks) == 4
    named = [
        (event["pid"], event["args"]["name"])
        for event in document["traceEvents"]
        if event["name"] == "process_name"
    ]
    assert {pid for pid, _ in named} == tracks


def test_stacks_have_no_times(tmp_path: Path) -> None:
    path = tmp_path / "x.folded"
    path.write_text("a;b 3\n")
    with pytest.raises(UsageError, match="has no activities with times"):
        export(load(path), Selection())


def test_a_trace_in_which_nothing_ran(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with NsysFile(path) as file:
        file.api("cudaFree_v3020", 1_000, 1_010)
    with pytest.raises(NoMatchError, match="nothing to lay out"):
        export(load(path, LoadOptions()))


intervals = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(1, 8)), min_size=1, max_size=30
)


@given(intervals)
def test_intervals_of_a_lane_nest(drawn: list[tuple[int, int, int]]) -> None:
    track, start, length = (np.array(column, np.int64) for column in zip(*drawn, strict=True))
    order, lane = nested_lanes(track, start, start + length)
    assert sorted(order.tolist()) == list(range(len(drawn)))
    placed = [
        (int(track[at]), int(row), int(start[at]), int(start[at] + length[at]))
        for at, row in zip(order.tolist(), lane.tolist(), strict=True)
    ]
    for one, (of, row, low, high) in enumerate(placed):
        same = [(a, b) for t, r, a, b in placed[:one] if (t, r) == (of, row)]
        assert all(high <= b or low >= b for a, b in same), "none crosses an earlier one"
        if row:  # There was no room on the lane before it.
            before = [(a, b) for t, r, a, b in placed[:one] if (t, r) == (of, row - 1)]
            assert any(a < high and low < b < high for a, b in before)


@given(intervals)
def test_intervals_of_a_free_lane_do_not_overlap(drawn: list[tuple[int, int, int]]) -> None:
    track, start, length = (np.array(column, np.int64) for column in zip(*drawn, strict=True))
    lane = free_lanes(track, start, start + length)
    placed = sorted(
        zip(track.tolist(), lane.tolist(), start.tolist(), length.tolist(), strict=True)
    )
    for (t, row, low, size), (u, other, next_low, _) in pairwise(placed):
        assert (t, row) != (u, other) or low + size <= next_low
    for of in set(track.tolist()):
        at_once = max(
            sum(a <= moment < a + size for t, _, a, size in placed if t == of)
            for moment in range(21)
        )
        assert max(row for t, row, _, _ in placed if t == of) == at_once - 1, "no lane too many"


@pytest.mark.deep
@pytest.mark.skipif(not PROCESSOR, reason="no trace_processor of Perfetto on PATH")
def test_perfetto_finds_all_activities_and_arrows(tmp_path: Path) -> None:
    profile = load(SAMPLES / "decode_small.sqlite")
    document = export(profile)
    path, query = tmp_path / "x.json", tmp_path / "x.sql"
    path.write_text(json.dumps(document))
    kinds = "('kernel', 'gpu_memcpy', 'gpu_memset')"
    query.write_text(
        f"select (select sum(dur) from slice where category in {kinds}), "
        "(select count(*) from flow), (select sum(value) from stats where severity = 'error');"
    )
    assert PROCESSOR
    done = subprocess.run(
        [PROCESSOR, "-q", str(query), str(path)], capture_output=True, text=True, check=True
    )
    arrows = sum(event["ph"] == "s" for event in document["traceEvents"])
    assert done.stdout.splitlines()[-1] == f"{profile.gpu_time},{arrows},0"
