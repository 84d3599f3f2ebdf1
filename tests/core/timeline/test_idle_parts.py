"""Why a GPU ran nothing: as counted nanosecond by nanosecond, on random and on real traces."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given

from flame.core.loading.many import load
from flame.core.model.calls import call_class
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.timeline.devices import device_times
from flame.core.timeline.idle_parts import CAUSE_OF_CALLS, IdleCause, IdleParts, idle_parts
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.states import (
    NO_STATES,
    StateSpans,
    held_up_scripts,
    in_no_call,
    state_spans,
)
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import examples
from tests.support.writers.nsysfile import HTOD, NsysFile

random_traces = examples(1, [HealthCheck.too_slow])
KINETO_TRACES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))


def causes(profile: Profile) -> dict[str, int]:
    """The idle time of the only GPU by cause, as far as there is any."""
    [parts] = idle_parts(profile)
    device = device_times(profile)[0].busy.window.moved(profile.rows_begin)
    inside = (parts.low >= device.low) & (parts.high <= device.high)
    found: Counter[str] = Counter()
    for cause, length in zip(parts.cause[inside], (parts.high - parts.low)[inside], strict=True):
        found[IdleCause(cause).title] += int(length)
    return dict(found)


# Nanosecond by nanosecond


def expected(
    profile: Profile, device: int, moment: int, spans: StateSpans = NO_STATES
) -> IdleCause | None:
    """The cause at ``moment``; None where the GPU runs anything."""
    table = profile.activities
    mine = [
        row for row in range(len(table)) if table.device[row] == device and not empty(profile, row)
    ]
    if any(table.start[row] <= moment < table.start[row] + table.duration[row] for row in mine):
        return None
    later = [row for row in mine if table.start[row] > moment]
    if not later:
        return IdleCause.UNKNOWN
    first = min(int(table.start[row]) for row in later)
    launched = [row for row in later if table.start[row] == first and table.launched[row]]
    if not launched:
        return IdleCause.UNKNOWN
    last = max(int(table.launch_start[row]) for row in launched)
    possible = {
        by_launch(profile, row, moment, spans)
        for row in launched
        if table.launch_start[row] == last
    }
    return possible.pop() if len(possible) == 1 else IdleCause.PROFILER  # of equals any


def empty(profile: Profile, row: int) -> bool:
    table = profile.activities
    return bool(table.kind[row] == Kind.GRAPH and not table.start[row] and not table.duration[row])


def by_launch(profile: Profile, row: int, moment: int, spans: StateSpans) -> IdleCause:
    table, calls = profile.activities, profile.calls
    if moment >= max(table.launch_end[row], table.launch_start[row]):
        return IdleCause.AFTER_LAUNCH
    if moment >= table.launch_start[row]:
        return IdleCause.IN_LAUNCH
    for call in range(len(calls or ())):
        assert calls is not None
        on_thread = calls.thread[call] == table.thread[row]
        if on_thread and calls.start[call] <= moment < calls.end[call]:
            return CAUSE_OF_CALLS[call_class(profile.frames[int(calls.frame[call])].name)]
    return in_no_call(profile, spans, int(table.thread[row]), moment)


@random_traces
@given(scripts())
def test_every_moment_has_the_cause_that_is_found_by_hand(trace_file: Path, script: Script) -> None:
    check_moments(load(script.write(trace_file), LoadOptions("raw")))


@random_traces
@given(held_up_scripts())
def test_so_has_every_moment_in_a_state(trace_file: Path, script: Script) -> None:
    path = script.write(trace_file)
    check_moments(load(path, LoadOptions("raw")), state_spans(path))


def check_moments(profile: Profile, spans: StateSpans = NO_STATES) -> None:
    for parts in idle_parts(profile):
        found = {
            moment: IdleCause(cause)
            for low, high, cause in zip(parts.low, parts.high, parts.cause, strict=True)
            for moment in range(int(low), int(high))
        }
        for moment in range(profile.begin, profile.end):
            cause = expected(profile, parts.device, moment, spans)
            assert cause is found.get(moment) or cause is IdleCause.PROFILER, moment
        assert len(found) == int((parts.high - parts.low).sum()), "parts overlap"


# By hand


def test_each_cause(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("first", 0, 10, corr=None)
        file.api("cudaMalloc_v3020", 20, 24, corr=7)
        file.api("cudaDeviceSynchronize_v3020", 30, 35, corr=8)
        file.api("cudaMemcpy_v3020", 40, 46, corr=9)
        file.api("cudaEventRecord_v3020", 46, 49, corr=10)
        file.api("cudaLaunchKernel_v7000", 60, 62, corr=11)
        file.api("cudaLaunchKernel_v7000", 70, 77, corr=1)
        file.kernel("second", 90, 100, corr=1)
        file.memcpy(HTOD, 130, 140, corr=None)
    assert causes(load(tmp_path / "trace.sqlite")) == {
        "alloc": 4,
        "sync": 5,
        "copy call": 6,
        "other call": 3,
        "launch call": 2,
        "in launch": 7,
        "after launch": 13,
        "host code": 40,
        "unknown": 30,
    }


def test_of_several_that_begin_together_the_last_launch_counts(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("first", 0, 10, corr=None)
        file.api("cudaLaunchKernel_v7000", 12, 14, corr=1)
        file.api("cudaLaunchKernel_v7000", 40, 45, corr=2)
        file.kernel("early", 50, 60, corr=1)
        file.kernel("late", 50, 60, corr=2, stream=8)
    found = causes(load(tmp_path / "trace.sqlite"))
    assert found == {"host code": 28, "launch call": 2, "in launch": 5, "after launch": 5}


def test_a_launch_before_the_gap_leaves_nothing_to_the_host(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=1)
        file.kernel("first", 10, 20, corr=None)
        file.kernel("second", 50, 60, corr=1)
    assert causes(load(tmp_path / "trace.sqlite")) == {"after launch": 30}


def test_what_is_before_the_first_activity_and_after_the_last_is_there_too(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.nvtx("all", 0, 100)
        file.api("cudaLaunchKernel_v7000", 20, 25, corr=1)
        file.kernel("only", 40, 60, corr=1)
    [parts] = idle_parts(load(tmp_path / "trace.sqlite"))
    assert (parts.begin.tolist(), parts.end.tolist()) == ([0, 60], [40, 100])
    assert [IdleCause(cause).title for cause in parts.cause] == [
        "host code",
        "in launch",
        "after launch",
        "unknown",
    ]


# Real traces


@needs_traces
@pytest.mark.parametrize("name", [*NSYS_TRACES, *KINETO_TRACES])
def test_parts_are_the_gaps_of_real_traces(name: str) -> None:
    folder = "nsys" if name.endswith(".sqlite") else "kineto"
    profile = load(TRACES / folder / name)
    for parts, device in zip(idle_parts(profile), device_times(profile), strict=True):
        check_partition(parts)
        idle = profile.end - profile.rows_begin - device.busy.total
        assert int((parts.high - parts.low).sum()) == idle


def check_partition(parts: IdleParts) -> None:
    """All parts follow each other in their gap."""
    first = np.flatnonzero(np.append(True, parts.gap[1:] != parts.gap[:-1])[: len(parts.gap)])
    last = np.append(first[1:], len(parts.gap))[: len(first)] - 1
    assert parts.gap[first].tolist() == list(range(len(parts.begin)))
    np.testing.assert_array_equal(parts.low[first], parts.begin)
    np.testing.assert_array_equal(parts.high[last], parts.end)
    inside = np.ones(len(parts.gap), bool)
    inside[first] = False
    np.testing.assert_array_equal(parts.low[inside], np.roll(parts.high, 1)[inside])
