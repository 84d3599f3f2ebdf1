"""How option texts spell filters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import UsageError
from flame.core.model.frames import Kind
from flame.core.projection.filter_options import (
    parse_include,
    parse_nvtx_range,
    parse_steps,
    parse_window,
    where,
)
from flame.core.projection.filters import (
    Devices,
    Include,
    Kernel,
    NvtxRange,
    Pids,
    Steps,
    Streams,
    Tids,
    Time,
)
from flame.core.units import parse_time

S, MS, US = 1_000_000_000, 1_000_000, 1_000


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
