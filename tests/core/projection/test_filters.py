"""Filters: which activities they keep."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core import regex
from flame.core.errors import NoMatchError
from flame.core.model.frames import Kind
from flame.core.model.meta import ProfilerSteps
from flame.core.model.profile import Profile
from flame.core.projection import filters as filter_module
from flame.core.projection.filter_options import parse_nvtx_range
from flame.core.projection.filters import (
    Devices,
    Filter,
    Include,
    Kernel,
    Pids,
    Steps,
    Streams,
    Tids,
    Time,
)
from flame.core.projection.labels import Labels, exact_labels
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves


def kept(profile: Profile, *filters: Filter) -> set[str]:
    """Names of the activities that pass."""
    tree = project_tree(profile, levels="kernel", where=filters, metric="count")
    return {names[0] for names in leaves(tree)}


def none_kept(profile: Profile, *filters: Filter) -> bool:
    try:
        return not kept(profile, *filters)
    except NoMatchError:
        return True


# -- times ------------------------------------------------------------------------------------


def starting_at(*times: int) -> Profile:
    trace = Recorded()
    for time in times:
        trace.kernel(f"at {time}", time, time + 100)
    return trace.profile()


def test_an_activity_belongs_to_the_window_in_which_it_starts() -> None:
    profile = starting_at(9, 10, 19, 20)
    assert kept(profile, Time(10, 20)) == {"at 10", "at 19"}
    assert kept(profile, Time(None, 10)) == {"at 9"}
    assert kept(profile, Time(20, None)) == {"at 20"}


@given(
    st.lists(st.integers(-5, 20), min_size=1, unique=True),
    st.lists(st.integers(-6, 21), min_size=1, unique=True).map(sorted),
)
def test_windows_that_touch_partition_the_activities(starts: list[int], cuts: list[int]) -> None:
    profile = starting_at(*starts)
    table = profile.activities
    windows = itertools.starmap(Time, itertools.pairwise([None, *cuts, None]))
    assert (np.sum([window.rows(profile, table) for window in windows], axis=0) == 1).all()


def test_several_windows_must_all_hold() -> None:
    assert kept(starting_at(5, 10, 15), Time(6, None), Time(None, 15)) == {"at 10"}


# -- ranges -----------------------------------------------------------------------------------


@pytest.fixture
def ranged() -> Profile:
    """Kernels named after the ranges around their launches."""
    trace = Recorded()
    stacks = {
        "prefill": [("prefill", "")],
        "decode": [("decode_1", "")],
        "reduce": [("decode_1", ""), ("reduce", "NCCL")],
        "own reduce": [("reduce", "")],
        "bare": [],
    }
    for at, (kernel, ranges) in enumerate(stacks.items()):
        for depth, (name, domain) in enumerate(ranges):
            trace.range(name, 100 * at + depth, 100 * at + 50 - depth, domain=domain)
        trace.call("cudaLaunchKernel", 100 * at + 20, 100 * at + 25, corr=at + 1)
        trace.kernel(kernel, 1_000 + at, 1_010 + at, corr=at + 1)
    return trace.profile()


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        ("prefill", {"prefill"}),
        ("decode*", {"decode", "reduce"}),
        ("*ode_?", {"decode", "reduce"}),
        ("?ecode_1", {"decode", "reduce"}),
        ("reduce", {"reduce", "own reduce"}),
        ("reduce@NCCL", {"reduce"}),
        ("*@N*", {"reduce"}),
        ("reduce@", {"own reduce"}),
        ("*", {"prefill", "decode", "reduce", "own reduce"}),
    ],
)
def test_a_range_filter_keeps_what_was_launched_anywhere_below(
    text: str, kernels: set[str], ranged: Profile
) -> None:
    assert kept(ranged, parse_nvtx_range(text)) == kernels


def test_brackets_in_a_range_glob_are_brackets() -> None:
    trace = Recorded()
    trace.range("[Executor] _forward_step", 0, 50)
    trace.call("cudaLaunchKernel", 20, 25, corr=1)
    trace.kernel("gemm", 30, 40, corr=1)
    assert kept(trace.profile(), parse_nvtx_range("[Exec*] _forward_step")) == {"gemm"}


@pytest.mark.parametrize("text", ["decode", "ecode_1", "DECODE_1", "cudaLaunchKernel", "gemm"])
def test_a_range_glob_matches_whole_names_of_ranges(text: str, ranged: Profile) -> None:
    assert none_kept(ranged, parse_nvtx_range(text))


# -- places -----------------------------------------------------------------------------------


@pytest.fixture
def placed() -> Profile:
    """Kernels that differ in device, stream, process, thread or kind."""
    trace = Recorded()
    for thread in range(3):
        trace.call("cudaLaunchKernel", 0, 1, corr=thread + 1, thread=thread)
    demangled = (("demangled", "void gemm<float>(float*)"),)
    trace.kernel("gemm", 10, 11, corr=1, extra=demangled)
    trace.kernel("softmax", 10, 11, corr=2, stream=9)
    trace.kernel("other process", 10, 11, corr=3, process=1, device=1)
    trace.kernel("no launch", 10, 11, device=1)
    trace.kernel("nowhere", 10, 11, process=-1, device=-1, stream=-1)
    trace.kernel("memset", 10, 11, kind=Kind.MEMSET)
    return trace.profile()


@pytest.mark.parametrize(
    ("one", "kernels"),
    [
        (Devices((1,)), {"other process", "no launch"}),
        (Streams((9,)), {"softmax"}),
        (Streams((9, 7)), {"gemm", "softmax", "other process", "no launch", "memset"}),
        (Pids((200,)), {"other process"}),
        (Tids((100,)), {"gemm"}),
        (Tids((101, 200)), {"softmax", "other process"}),
        (Kernel("^(gemm|soft)"), {"gemm", "softmax"}),
        (Kernel("<float>"), {"gemm"}),
        (Include((Kind.MEMSET,)), {"memset"}),
    ],
    ids=lambda value: repr(sorted(value) if isinstance(value, set) else value),
)
def test_a_filter_keeps_what_it_names(one: Filter, kernels: set[str], placed: Profile) -> None:
    assert kept(placed, one) == kernels


@pytest.mark.parametrize(
    "one", [Devices((7,)), Streams((1,)), Pids((100_000,)), Tids((1,)), Kernel("memset")], ids=repr
)
def test_a_filter_that_keeps_nothing_is_no_match(one: Filter, placed: Profile) -> None:
    with pytest.raises(NoMatchError):
        project_tree(placed, where=(one,))


def test_filters_hold_together(placed: Profile) -> None:
    assert kept(placed, Devices((0,)), Streams((7,)), Include((Kind.KERNEL,))) == {"gemm"}


def test_an_unlaunched_activity_passes_where_nothing_asks_for_its_launch(placed: Profile) -> None:
    assert "no launch" in kept(placed, Pids((100,)))
    assert "no launch" not in kept(placed, Tids((100, 101, 200)))


# -- profiler steps ---------------------------------------------------------------------------


def stepped() -> Profile:
    """Steps 1 and 2 of process 0, and step 1 of process 1, in other places."""
    trace = Recorded()
    trace.call("cudaLaunchKernel", 10, 12, corr=1)
    trace.kernel("first", 500, 510, corr=1)  # launched in step 1, run in step 2
    trace.call("cudaLaunchKernel", 110, 112, corr=2)
    trace.kernel("second", 600, 610, corr=2)
    trace.call("cudaLaunchKernel", 110, 112, corr=1, thread=2)
    trace.kernel("other", 700, 710, corr=1, process=1)
    trace.kernel("unlaunched", 150, 160)
    steps = ProfilerSteps(
        np.array([1, 2, 1]),
        np.array([0, 0, 1], np.int32),
        np.array([0, 100, 100]),
        np.array([100, 200, 200]),
        np.array([0, 0, 2], np.int32),
    )
    return replace(trace.profile(), steps=steps)


def test_a_step_holds_what_was_launched_in_it_by_its_own_process() -> None:
    profile = stepped()
    assert kept(profile, Steps(((1, 1),))) == {"first", "other"}
    assert kept(profile, Steps(((2, 2),))) == {"second", "unlaunched"}
    assert kept(profile, Steps(((1, 2),))) == {"first", "second", "other", "unlaunched"}
    assert none_kept(profile, Steps(((3, 9),)))


def test_a_trace_without_steps_has_nothing_in_them() -> None:
    profile = replace(stepped(), steps=None)
    assert none_kept(profile, Steps(((0, 9),)))


def test_making_names_takes_no_time_of_the_search_for_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]

    def slowly(*args: Any) -> Labels:
        clock[0] += 1000.0
        return exact_labels(*args)

    monkeypatch.setattr(regex, "monotonic", lambda: clock[0])
    monkeypatch.setattr(filter_module, "exact_labels", slowly)
    trace = Recorded()
    trace.kernel("gemm", 10, 20, 1)
    profile = trace.profile()
    assert Kernel("gemm").groups(profile, profile.activities).all()
