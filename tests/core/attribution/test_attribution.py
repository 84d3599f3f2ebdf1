"""Flame's attribution equals the naive one, activity by activity, on real and on random traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.model.meta import GraphNodes
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from tests.conftest import EVERY_NSYS_TRACE, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.oracles.facts import differences, flame_facts, naive_facts
from tests.support.oracles.naive import Row, naive
from tests.support.oracles.naive_host import HostTime, naive_host
from tests.support.paths import SAMPLES
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

RAW = LoadOptions(nvtx_names="raw")
SAMPLE = SAMPLES / "decode_small.sqlite"


def assert_same(profile: Profile, rows: list[Row]) -> None:
    assert differences(flame_facts(profile), naive_facts(rows)) == []
    assert differences(flame_kernels(profile), naive_kernels(rows)) == []
    assert differences(flame_shares(profile), naive_shares(rows)) == []
    assert differences(flame_idle(profile), naive_idle(rows)) == []
    nodes = GraphNodes(
        sum(row.node is not None for row in rows), sum(bool(row.captured) for row in rows)
    )
    assert profile.graph_nodes == nodes


def flame_kernels(profile: Profile) -> Iterable[object]:
    for start, frame in zip(profile.activities.start, profile.activities.frame, strict=True):
        known = profile.frames[int(frame)]
        yield int(start), known.get("demangled"), known.get("mangled")


def naive_kernels(rows: list[Row]) -> Iterable[object]:
    return ((row.start, row.demangled or "", row.mangled or "") for row in rows)


def flame_shares(profile: Profile) -> Iterable[object]:
    """Per activity; which of equally early ones bears the remainder is left open."""
    table = profile.activities
    columns = (table.start, table.launch_start, table.launch_end, table.launch_share)
    return zip(*(column[table.launched].tolist() for column in columns), strict=True)


def naive_shares(rows: list[Row]) -> Iterable[object]:
    return ((row.start, row.call.start, row.call.end, row.launch_share) for row in rows if row.call)


def flame_idle(profile: Profile) -> Iterable[object]:
    """Per activity; which of equally early ones ends the idle time is left open."""
    table = profile.activities
    gpus = (profile.devices[device].id for device in table.device.tolist())
    return zip(gpus, table.start.tolist(), table.idle.tolist(), strict=True)


def naive_idle(rows: list[Row]) -> Iterable[object]:
    return ((row.gpu, row.start, row.idle) for row in rows)


def flame_host(profile: Profile) -> dict[object, int]:
    """Host time by thread, open ranges and innermost call."""
    table, found = profile.host, Counter[object]()
    for row, ns in enumerate(table.duration.tolist()):
        thread = profile.threads[int(table.thread[row])]
        path = table.stacks.path(int(table.nvtx[row]))
        call = int(table.launch[row])
        key = (
            profile.processes[thread.process].pid,
            thread.tid,
            tuple(profile.frames[frame].name for frame in path),
            profile.frames[call].name if call >= 0 else None,
        )
        found[key] += ns
    return {key: ns for key, ns in found.items() if ns}


def summed(times: list[HostTime]) -> dict[object, int]:
    found = Counter[object]()
    for one in times:
        found[one.pid, one.tid, one.ranges, one.call] += one.ns
    return dict(found)


@needs_traces
@pytest.mark.parametrize("name", EVERY_NSYS_TRACE)
def test_real_traces_are_attributed_as_the_naive_computation_does(
    name: str, nsys_trace: Callable[[str], Path]
) -> None:
    path = nsys_trace(name)
    profile, rows = load(path, RAW), naive(path)
    assert_same(profile, rows)
    assert flame_host(profile) == summed(naive_host(path))


@needs_traces
def test_real_start_end_ranges_are_included_on_request(
    nsys_trace: Callable[[str], Path],
) -> None:
    path = nsys_trace("nvtx_textid_json_no_kernels.sqlite")
    profile = load(path, LoadOptions("raw", nvtx_start_end=True))
    expected = summed(naive_host(path, start_end=True))
    assert flame_host(profile) == expected
    assert expected != summed(naive_host(path))


def test_the_sample_is_attributed_as_the_naive_computation_does() -> None:
    """It has what no real trace at hand has: graphs replayed node by node, Python frames."""
    profile, rows = load(SAMPLE, RAW), naive(SAMPLE)
    assert any(row.captured for row in rows)
    assert any(row.python for row in rows)
    assert_same(profile, rows)
    assert flame_host(profile) == summed(naive_host(SAMPLE))


def test_a_graph_node_described_in_two_ways_has_no_captured_ranges(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 90, 99, corr=1, graph_node=1)
        file.api("cudaGraphLaunch_v10000", 80, 85, corr=1)
        file.nvtx("layer", 10, 20)
        file.node(1, None, 12)
        file.node(1, None, 15)
    profile = load(file.path, RAW)
    assert profile.graph_nodes == GraphNodes(activities=1, captured=0)
    assert_same(profile, naive(file.path))


def test_times_of_the_wall_clock_are_kept_to_the_nanosecond(tmp_path: Path) -> None:
    """``nsys export --ts-normalize=true`` writes nanoseconds since 1970 instead of the start."""
    now = 1_760_000_000_123_456_789
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", now + 7, now + 10, corr=1)
        file.api("cudaLaunchKernel_v7000", now + 2, now + 5, corr=1)
        file.nvtx("layer", now, now + 2)
    profile = load(file.path, RAW)
    assert profile.activities.start.tolist() == [now + 7]
    assert profile.duration == 10
    assert_same(profile, naive(file.path))


@examples(1.2, [HealthCheck.too_slow])
@given(script=scripts(), start_end=st.booleans())
def test_random_traces_are_attributed_as_the_naive_computation_does(
    script: Script, start_end: bool, trace_file: Path
) -> None:
    path = script.write(trace_file)
    profile = load(path, LoadOptions("raw", start_end))
    assert_same(profile, naive(path, start_end=start_end))
    assert flame_host(profile) == summed(naive_host(path, start_end=start_end))
