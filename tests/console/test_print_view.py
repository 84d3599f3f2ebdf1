"""The static view: its header, its tree and its tables, on a terminal of any width."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.console.print_view import MOST_LINES, MOST_NAMES, NARROWEST
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.projection.filter_options import where
from flame.core.projection.filters import Time
from flame.core.projection.labels import Naming
from flame.core.shown_text import cells
from tests.conftest import NSYS_TRACES
from tests.console.printed import (
    Load,
    drawn,
    icicle,
    launched,
    sampled,
    three_kernels,
    torch_profile,
    two_gpus,
)
from tests.support.writers.nsysfile import NsysFile


def test_header_says_what_was_opened_and_what_is_shown(profile_of: Load) -> None:
    first, second, *_ = drawn(profile_of(three_kernels))
    assert first == (
        "trace.sqlite · NVIDIA Test · 2.10 µs · busy 47.6 % · idle 1.10 µs · "
        "GPU time 1.00 µs · 3 activities"
    )
    assert second == (
        "GPU time 1.00 µs by python, native, launch, nvtx, kernel · "
        "coverage: launch 100.0 %, NVTX 90.0 %, python 0 %, native 0 %"
    )


def test_tree_is_indented_and_weighed(profile_of: Load) -> None:
    assert icicle(drawn(profile_of(three_kernels))) == [
        "  100.0   1.00 µs          3  ████████████ all",
        "  100.0   1.00 µs          3  ████████████   cudaLaunchKernel",
        "   90.0    900 ns          2  ██████████▊      forward",
        "   60.0    600 ns          1  ███████▎           gemm",
        "   30.0    300 ns          1  ███▋               norm",
        "   10.0    100 ns          1  █▎               norm",
    ]


def test_frames_of_one_kind_that_hand_nearly_all_on_are_one_line(profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        for depth, name in enumerate(("outer", "middle", "inner")):
            file.nvtx(name, depth, 10_000 - depth)
        launched(file, "gemm", 1_000, 990, corr=1)
        file.nvtx("aside", 9_997, 9_997)
        launched(file, "norm", 9_998, 10, corr=2)

    lines = icicle(drawn(profile_of(arrange)))
    names = ["all", "  cudaLaunchKernel", "    outer › middle › inner", "      gemm"]
    assert [line[43:] for line in lines][:4] == names
    assert [line.split()[0] for line in lines[2:4]] == ["100.0", "99.0"]


def test_top_table_has_self_total_count_and_mean(profile_of: Load) -> None:
    lines = drawn(profile_of(three_kernels))
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines if " kernel  " in line]
    assert rows == [
        ["60.0", "600 ns", "600 ns", "1", "600 ns", "kernel", "gemm"],
        ["40.0", "400 ns", "400 ns", "2", "200 ns", "kernel", "norm"],
    ]


def test_top_table_tells_self_from_total(profile_of: Load) -> None:
    lines = drawn(profile_of(three_kernels), levels=("nvtx", "launch"), where=where(kernel="gemm"))
    assert [line.split()[-1] for line in lines if line.startswith("  100.0")][
        -1
    ] == "cudaLaunchKernel"


def test_what_holds_less_than_a_percent_is_counted_not_shown(profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        file.kernel("large", 0, 10_000)
        for number in range(7):
            file.kernel(f"small{number}", 20_000 + number, 20_099 + number)

    lines = drawn(profile_of(arrange), levels=("kernel",))
    assert "smaller frames not shown: 7" in lines
    assert not any("small0" in line for line in icicle(lines))


def test_a_long_tree_is_cut_to_its_largest_lines(profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        for number in range(60):
            file.kernel(f"kernel{number:02}", number * 1_000, number * 1_000 + 100 + number)

    lines = drawn(profile_of(arrange), levels=("kernel",))
    shown = [line.split()[-1] for line in icicle(lines)[1:-1]]
    assert len(shown) == MOST_LINES - 1
    assert shown == [f"kernel{number:02}" for number in range(59, 59 - len(shown), -1)]
    assert f"smaller frames not shown: {60 - len(shown)}" in lines
    assert sum("  kernel  " in line for line in lines) == MOST_NAMES


def test_a_deep_stack_keeps_room_for_names(profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        for depth in range(200):
            file.nvtx(f"level{depth}", depth, 10_000 - depth)
            launched(file, f"kernel{depth}", 10_000 * (depth + 1), 1_000, corr=depth + 1)
        for depth in range(200):
            file.api("cudaLaunchKernel_v7000", depth, depth, corr=depth + 1_000)
            file.kernel("deep", 10**7 + depth * 1_000, 10**7 + depth * 1_000 + 500, depth + 1_000)

    lines = drawn(profile_of(arrange), width=100, levels=("nvtx", "kernel"))
    assert max(map(cells, lines)) <= 100
    assert any("level30" in line for line in lines)


def test_a_long_chain_shows_its_ends(profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        for depth in range(500):
            file.nvtx(f"level{depth}", depth, 10_000 - depth)
        launched(file, "leaf", 1_000, 1_000, corr=1)

    *_, chain, leaf = icicle(drawn(profile_of(arrange)))
    assert leaf.endswith("  leaf")
    names = re.findall(r"level\d+|… \d+ frames", chain)
    hidden = int(names[1].split()[1])
    last = [f"level{depth}" for depth in range(hidden + 1, 500)]
    assert names == ["level0", f"… {hidden} frames", *last]
    assert chain.endswith(" › ".join(names))


def test_another_metric(profile_of: Load) -> None:
    lines = drawn(profile_of(three_kernels), metric="count", levels=("kernel",))
    assert lines[1].startswith("GPU activities 3 by kernel")
    assert [line.split()[1] for line in icicle(lines)] == ["3", "2", "1"]


def test_a_trace_without_gpu_work_shows_the_host(profile_of: Load) -> None:
    lines = drawn(profile_of(lambda file: file.nvtx("load", 0, 100)))
    assert lines[1] == "host self time 100 ns by thread, python, nvtx, launch"
    assert lines[-1].startswith("note: no GPU activity")


def test_an_empty_trace_is_said_to_be(profile_of: Load) -> None:
    lines = drawn(profile_of(lambda file: file.create("NVTX_EVENTS")))
    assert "nothing to show: host self time is zero" in lines
    assert any(line.startswith("note: ") for line in lines)


def test_nothing_selected_is_an_error(profile_of: Load) -> None:
    with pytest.raises(NoMatchError):
        drawn(profile_of(three_kernels), where=where(device=7))


@pytest.mark.parametrize("width", [0, NARROWEST, 80, 120, 250])
def test_no_line_is_wider_than_the_terminal(width: int, profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        file.gpu(0, "NVIDIA " * 20)
        file.nvtx("模块" * 100, 0, 2_000)
        file.nvtx("x" * 1_000, 1, 1_999)
        launched(file, "void " + "long" * 1_000, 1_000, 600, corr=1)
        launched(file, "\x1b[2J\u202e🔥" * 50, 1_700, 600, corr=2)

    lines = drawn(profile_of(arrange), width=width)
    assert max(map(cells, lines)) <= max(width, NARROWEST)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("name", NSYS_TRACES)
def test_real_traces_fit(name: str, nsys_trace: Callable[[str], Path]) -> None:
    profile = load(nsys_trace(name))
    for width in (NARROWEST, 120):
        lines = drawn(profile, width=width, naming=Naming("demangled", shapes=True))
        assert max(map(cells, lines)) <= width


def test_a_python_function_says_where_it_is(profile_of: Load) -> None:
    lines = drawn(torch_profile(), levels=("python",), naming=Naming(fold=True))
    assert any("forward (model.py:" in line for line in icicle(lines))
    assert re.search(r"python +\S.*  \w+\.py:\d+$", "\n".join(lines), re.MULTILINE)


def test_stars_for_numbers_are_explained(profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        for number in range(9):
            file.nvtx(f"layers.{number}.mlp", 1_000 * number, 1_000 * number + 900)
            launched(file, "gemm", 1_000 * number + 500, 100, corr=number + 1)

    profile = profile_of(arrange)
    said, folded = "* stands for numbers: --no-fold-numbers shows all of them", Naming(numbers=True)
    assert said in drawn(profile, naming=folded)
    assert any("layers.*.mlp" in line for line in icicle(drawn(profile, naming=folded)))
    assert said not in drawn(profile)
    assert said not in drawn(profile, naming=folded, levels=("kernel",))


def test_levels_that_the_trace_lacks_are_named(profile_of: Load) -> None:
    profile = profile_of(three_kernels)
    said = "this trace has no frames of python, native"
    assert said in drawn(profile, levels=("python", "native"))
    assert said not in drawn(profile, levels=("python", "native", "launch", "kernel"))
    hidden = drawn(profile, levels=("kernel",), where=where(hide_frames=(".",)))
    assert not [line for line in hidden if "no frames" in line]


def test_billions_of_samples_keep_their_column(tmp_path: Path) -> None:
    (tmp_path / "many.folded").write_text("main;work 12345678901\nmain 2\n")
    lines = drawn(load(tmp_path / "many.folded"))
    bars = {line.index("█") for line in icicle(lines)}
    assert len(bars) == 1
    assert not [line for line in lines if "count" in line or "mean" in line]


def test_instructions_and_reasons_stand_in_the_static_view() -> None:
    text = "\n".join(drawn(sampled()))
    assert "by python, native, launch, nvtx, kernel, sass, stall" in text
    assert "SASS 40.0 %" in text
    assert "+0x0000 LDG.E R2, [R4] (gemm.cu:7)" in text
    # Their number of activities would be a part of one of two: it stands for nothing.
    assert re.search(r"20.0 +20 ns +20 ns +stall +Long Scoreboard", text)
    assert re.search(r"25.0 +25 ns +█+ +\+0x0000 LDG", text)
    assert re.search(r"40.0 +40 ns +2 +█.* gemm", text)
    counted = "\n".join(drawn(sampled(), metric="stalls", levels=("kernel", "sass")))
    assert "PC samples 8 by kernel, sass" in counted


def test_the_printed_view_is_of_the_time_that_is_chosen(profile_of: Load) -> None:
    profile = profile_of(two_gpus)
    begin = profile.begin
    first, *_ = drawn(profile, where=(Time(begin + 100, begin + 300),))
    assert " · 200 ns · busy 100.0 % · idle 0 ns · " in first
    first, *_ = drawn(profile)
    assert " · busy GPU0 60.0 %, GPU1 100.0 % · idle 0–400 ns · GPU time 1.10 µs" in first
