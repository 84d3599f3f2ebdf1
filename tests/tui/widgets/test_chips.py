"""The chip bar: filters in words, cut fairly, each with a cross to take it away."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.meta import Device
from flame.core.model.profile import Profile
from flame.core.projection.filters import (
    Devices,
    Filter,
    HideFrames,
    HideStacks,
    Include,
    Kernel,
    MinShare,
    NvtxRange,
    Pids,
    Ranks,
    ShowFrom,
    ShowStacks,
    Steps,
    Streams,
    Tids,
    Time,
)
from flame.tui.session.query import SelectedName
from flame.tui.shell.actions import QuickFilter
from flame.tui.toolkit.lines import Line, line_width
from flame.tui.widgets.chips import chips, describe, fold_chip, quick_filter
from tests.tui import sources, traces
from tests.tui.traces import HOSTILE

MS = 1_000_000


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return load(traces.decode(tmp_path_factory.mktemp("chips") / "decode.sqlite"))


def text(line: Line) -> str:
    return "".join(piece.text for piece in line)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (ShowStacks("gemm"), "only stacks with gemm"),
        (HideStacks("idle|wait"), "without idle|wait"),
        (ShowFrom(r"^model\.layers\.1$"), "from model.layers.1"),
        (HideFrames("^$"), "hide [empty]"),
        (Time(200 * MS, 400 * MS), "time 200–400 ms"),
        (Time(2_000 * MS, 4_000 * MS), "time 2–4 s"),
        (Time(12_345_678_000, 12_345_702_000), "time 12.345678–12.345702 s"),
        (Time(-5, 5), "time -5–5 ns"),
        (Time(1_500 * MS, None), "time from 1.5 s"),
        (Time(None, 20 * MS), "time until 20 ms"),
        (Time(), "time from 0 ns"),
        (NvtxRange("decode*"), "NVTX decode*"),
        (NvtxRange("step", "NCCL"), "NVTX step in NCCL"),
        (Steps(((3, 5),)), "steps 3–5"),
        (Steps(((4, 4),)), "step 4"),
        (Steps(((3, 5), (9, 9))), "steps 3–5, 9"),
        (Steps.of(range(0, 40, 2)), "steps 0, 2, 4, 6 and 16 more"),
        (Ranks(("0", "2")), "rank 0, 2"),
        (Ranks(("rank 1",)), "rank 1"),
        (Devices((0, 1)), "device 0, 1"),
        (Streams((7,)), "stream 7"),
        (Pids((100,)), "process 100"),
        (Tids((100, 101)), "thread 100, 101"),
        (Kernel("gemm|flash"), "kernel gemm|flash"),
        (Include((Kind.KERNEL, Kind.MEMCPY)), "kinds kernel, memcpy"),
        (MinShare(0.5), "≥ 0.5 %"),
        (MinShare(2.0), "≥ 2 %"),
    ],
)
def test_filters_in_words(one: Filter, words: str) -> None:
    assert describe(one) == words


def test_a_filter_by_operator_is_not_called_nvtx(tmp_path: Path) -> None:
    training = sources.training(tmp_path / "decode.sqlite")
    assert describe(NvtxRange("aten::mm"), training) == "in aten::mm"


def test_a_number_that_several_have_is_no_name(profile: Profile) -> None:
    alike = replace(profile, devices=(Device(0, "H100"), Device(0, "H100")))
    assert describe(Devices((0,)), alike) == "device GPU 0 H100"
    other = replace(profile, devices=(Device(0, "H100"), Device(0, "A100")))
    assert describe(Devices((0,)), other) == "device 0"


def test_what_the_trace_names_has_its_name(profile: Profile) -> None:
    assert describe(Devices((0,)), profile) == "device GPU 0 NVIDIA H100 80GB HBM3"
    assert describe(Pids((100,)), profile) == "process vllm [100]"
    assert describe(Tids((100,)), profile) == "thread worker [100]"
    assert describe(Streams((7,)), profile) == "stream 7"
    assert describe(Devices((5,)), profile) == "device 5"


@given(
    st.integers(0, 10**14).flatmap(
        lambda begin: st.tuples(st.just(begin), st.integers(1, 10**12).map(lambda n: begin + n))
    )
)
def test_the_ends_of_a_window_are_told_apart(window: tuple[int, int]) -> None:
    shown = describe(Time(*window)).removeprefix("time ").split()[0]
    first, last = shown.split("–")
    assert float(first) < float(last)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", QuickFilter)
def test_quick_filters_are_safe_to_show(kind: QuickFilter, name: str) -> None:
    words = describe(quick_filter(kind, SelectedName(name, Kind.NVTX)))
    assert words.isprintable()
    assert len(words) < 5_000


def test_quick_filters_are_for_the_whole_name() -> None:
    a, dotted = (SelectedName(name, Kind.NVTX) for name in ("a", "a.b"))
    assert quick_filter(QuickFilter.ONLY, dotted) == ShowStacks(r"^a\.b$")
    assert quick_filter(QuickFilter.WITHOUT, a) == HideStacks("^a$")
    assert quick_filter(QuickFilter.FROM, a) == ShowFrom("^a$")
    assert quick_filter(QuickFilter.HIDE, a) == HideFrames("^a$")


def test_a_quick_filter_of_a_folded_name_is_for_any_numbers_and_shown_as_it_is() -> None:
    filter_ = quick_filter(QuickFilter.ONLY, SelectedName("a.* v*", Kind.NVTX, ("a.", " v", "")))
    assert describe(filter_) == "only stacks with a.* v*"
    assert isinstance(filter_, ShowStacks)
    for name in ("a.1 v20", "a.7 v*"):
        assert re.search(filter_.pattern, name)
    for name in ("a.b v1", "xa.1 v2", "a.1 v2x", "ab1 v2"):
        assert not re.search(filter_.pattern, name)


def test_a_chip_has_a_cross_and_words_to_click(profile: Profile) -> None:
    line = chips((MinShare(1.0), ShowStacks("gemm")), profile, 80)
    assert text(line) == " × ≥ 1 %  × only stacks with gemm "
    assert [piece.action for piece in line if piece.action] == [
        *("screen.unfilter(0)", "screen.filters", "screen.unfilter(1)", "screen.filters")
    ]


def test_long_chips_are_cut_before_short_ones(profile: Profile) -> None:
    where = (ShowStacks("x" * 300), MinShare(1.0), HideStacks("y" * 200))
    shown = text(chips(where, profile, 80))
    assert "× ≥ 1 % " in shown
    assert shown.count("…") == 2
    assert len(shown) <= 80


def test_what_does_not_fit_is_counted(profile: Profile) -> None:
    line = chips(tuple(ShowStacks(f"frame number {n}") for n in range(9)), profile, 60)
    assert text(line).endswith(" +6 more")
    assert line[-1].action == "screen.filters"


filters = st.builds(ShowStacks, st.text()) | st.builds(Streams, st.lists(st.integers()).map(tuple))


@given(st.lists(filters, max_size=12).map(tuple), st.integers(24, 200))
def test_chips_always_fit(profile: Profile, where: tuple[Filter, ...], width: int) -> None:
    line = chips(where, profile, width)
    assert line_width(line) <= width
    assert all(piece.text.isprintable() for piece in line)
    crosses = sum("unfilter" in piece.action for piece in line)
    counted = int(line[-1].text.split("+")[1].split()[0]) if crosses < len(where) else 0
    assert crosses + counted == len(where)


def test_the_chip_of_folded_numbers_takes_them_back() -> None:
    line = fold_chip()
    assert text(line) == " × numbers folded # "
    assert [piece.action for piece in line].count("screen.numbers") == 3


def test_without_filters_there_are_no_chips(profile: Profile) -> None:
    assert chips((), profile, 80) == []
