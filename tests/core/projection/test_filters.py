"""Filters, and how option texts spell them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core import regex
from flame.core.errors import NoMatchError, UsageError
from flame.core.model.frames import Kind
from flame.core.model.meta import ProfilerSteps
from flame.core.model.profile import Profile
from flame.core.projection import filters as filter_module
from flame.core.projection.filter_options import (
    parse_include,
    parse_nvtx_range,
    parse_steps,
    parse_window,
    where,
)
from flame.core.projection.filters import (
    Devices,
    Filter,
    Include,
    Kernel,
    NvtxRange,
    Pids,
    Steps,
    Streams,
    Tids,
    Time,
)
from flame.core.projection.labels import Labels, exact_labels
from flame.core.units import parse_time
from tests.support.project_tree import project_tree
from tests.support.recorded import Recorded, leaves

S, MS, US = 1_000_000_000, 1_000_000, 1_000


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


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("5s", 5 * S),
        ("500ms", 500 * MS),
        ("1s2ms", S + 2 * MS),
        ("1m30s", 90 * S),
        ("2h", 7_200 * S),
        ("3us", 3 * US),
        ("3µs", 3 * US),
        ("17ns", 17),
        ("5", 5 * S),
        ("0.25s", 250 * MS),
        ("1.5ms", 1_500 * US),
        ("0.0000000019s", 1),
        ("-20ms", -20 * MS),
        ("-1s2ms", -(S + 2 * MS)),
        ("0", 0),
        ("9007199.254740993s", 9_007_199_254_740_993),
    ],
)
def test_a_time_as_nsys_spells_it(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize(
    "text", ["", "-", "s", "5 s", "5sec", "5s-2ms", "--5s", "1e3s", ".5s", "5.s", "soon", "5s\n"]
)
def test_what_is_no_time_is_a_usage_error_that_shows_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match="5s, 500ms, 1s2ms"):
        parse_time(text)


@given(st.integers(0, 10**18))
def test_a_time_in_parts_is_their_sum(ns: int) -> None:
    seconds, rest = divmod(ns, S)
    assert parse_time(f"{seconds}s{rest}ns") == parse_time(f"{ns}ns") == ns


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("5s/7s", Time(5 * S, 7 * S)),
        ("500ms/", Time(500 * MS, None)),
        ("/2s", Time(None, 2 * S)),
        ("-20ms/1s", Time(-20 * MS, S)),
    ],
)
def test_a_window_may_be_open_on_either_side(text: str, window: Time) -> None:
    assert parse_window(text) == window


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5s", "use A/B"),
        ("/", "use A/B"),
        ("", "use A/B"),
        ("7s/5s", "empty"),
        ("5s/5s", "empty"),
        ("5s/soon", "'soon' is not a time"),
        ("1s/2s/3s", "'2s/3s' is not a time"),
    ],
)
def test_a_wrong_window_is_a_usage_error(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_window(text)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("decode*", NvtxRange("decode*")),
        ("all_reduce@NCCL", NvtxRange("all_reduce", "NCCL")),
        ("*@N*", NvtxRange("*", "N*")),
        (r"user\@host", NvtxRange("user@host")),
        (r"user\@host@N\@1", NvtxRange("user@host", "N@1")),
        ("step@", NvtxRange("step", "")),
        ("a@b@c", NvtxRange("a", "b@c")),
    ],
)
def test_a_range_is_spelled_name_at_domain(text: str, expected: NvtxRange) -> None:
    assert parse_nvtx_range(text) == expected


@pytest.mark.parametrize("text", ["", "@NCCL"])
def test_a_range_without_a_name_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="a range name is missing"):
        parse_nvtx_range(text)


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


# -- from option texts ------------------------------------------------------------------------


def test_kinds_are_a_list() -> None:
    assert parse_include("kernel, graph") == Include((Kind.KERNEL, Kind.GRAPH))


@pytest.mark.parametrize(
    ("text", "said"),
    [("kernel,nvtx", "unknown kind 'nvtx'"), ("", "no kind given"), (",", "no kind given")],
)
def test_a_wrong_kind_is_a_usage_error_that_names_the_choices(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"{said}: choose from kernel, memcpy, memset, graph"):
        parse_include(text)


def test_where_makes_filters_of_option_texts() -> None:
    made = where(
        time="5s/7s",
        nvtx="decode*@vLLM",
        device=0,
        stream=(7, 9),
        pid=100,
        tid=101,
        kernel="gemm",
        include="kernel",
    )
    assert made == (
        Time(5 * S, 7 * S),
        NvtxRange("decode*", "vLLM"),
        Devices((0,)),
        Streams((7, 9)),
        Pids((100,)),
        Tids((101,)),
        Kernel("gemm"),
        Include((Kind.KERNEL,)),
    )


def test_where_without_options_keeps_everything() -> None:
    assert where() == ()


def test_a_bad_kernel_regex_is_found_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match="--kernel: '\\(' is not a regular expression"):
        where(kernel="(")


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


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("3", Steps(((3, 3),))),
        ("3-5", Steps(((3, 5),))),
        (" 0 ", Steps(((0, 0),))),
        ("8, 3-5,4-6,7", Steps(((3, 8),))),
        ("9,3-5", Steps(((3, 5), (9, 9)))),
    ],
)
def test_steps_are_spelled_as_one_or_as_a_stretch(text: str, step: Steps) -> None:
    assert where(step=text) == (step,) == (parse_steps(text),)


@pytest.mark.parametrize("text", ["", "-1", "5-3", "a", "1-2-3", "1..2", "9" * 30])
def test_what_is_no_step_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--step"):
        parse_steps(text)


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
