"""The static view, the text of ``flame info``, and what both rest on: safe text and a progress."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.console.info import HEAVIEST, as_json, as_text, facts
from flame.console.print_view import MOST_LINES, MOST_NAMES, NARROWEST, view
from flame.console.trace_words import gpus
from flame.core.analysis.trace_summary import summarize
from flame.core.errors import NoMatchError
from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load
from flame.core.model.meta import Device
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import where
from flame.core.projection.filters import Time
from flame.core.projection.labels import Naming
from flame.core.projection.selection import Selection
from flame.core.shown_text import cells, cut, printable
from flame.core.units import format_ns, format_percent
from flame.exporters import speedscope
from tests.conftest import NSYS_TRACES
from tests.support.paths import SAMPLES
from tests.support.project_tree import project_tree
from tests.support.sampled import Run
from tests.support.waiting import PATIENCE
from tests.support.writers.nsysfile import HTOD, NsysFile

SAMPLE = SAMPLES / "torch_small.pt.trace.json.gz"

Arrange = Callable[[NsysFile], None]


@pytest.fixture
def profile_of(tmp_path: Path) -> Callable[[Arrange], Profile]:
    """The profile of a trace that a function arranges."""

    def arranged(arrange: Arrange) -> Profile:
        with NsysFile(tmp_path / "trace.sqlite") as file:
            arrange(file)
        return load(tmp_path / "trace.sqlite")

    return arranged


Load = Callable[[Arrange], Profile]


def inputs(path: str) -> Inputs:
    return Inputs((Path(path),))


def drawn(profile: Profile, width: int = 120, **selection: object) -> list[str]:
    """Lines of the static view."""
    chosen = Selection(**selection)  # type: ignore[arg-type]
    return view(profile, chosen, "trace.sqlite", width).splitlines()


def torch_profile() -> Profile:
    """The sample of PyTorch."""
    return load(SAMPLE)


def icicle(lines: list[str]) -> list[str]:
    """The lines between the head of the tree and the next empty line."""
    first = next(i for i, line in enumerate(lines) if line.endswith(("count", " total"))) + 1
    return lines[first : lines.index("", first)]


def launched(file: NsysFile, name: str, start: int, ns: int, corr: int) -> None:
    """One kernel with its launch, 10 ns before it."""
    file.api("cudaLaunchKernel_v7000", start - 10, start - 5, corr=corr)
    file.kernel(name, start, start + ns, corr=corr)


def three_kernels(file: NsysFile) -> None:
    file.gpu(0, "NVIDIA Test")
    file.nvtx("forward", 0, 2_000)
    launched(file, "gemm", 1_000, 600, corr=1)
    launched(file, "norm", 1_700, 300, corr=2)
    launched(file, "norm", 3_000, 100, corr=3)


# -- static view ------------------------------------------------------------------------------


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


# -- info -------------------------------------------------------------------------------------


def test_levels_present_are_those_with_frames(profile_of: Load) -> None:
    profile = profile_of(three_kernels)
    found = ("process", "thread", "device", "stream", "launch", "nvtx", "category", "kernel")
    assert summarize(profile).levels == found


def test_levels_of_a_trace_without_gpu_work(profile_of: Load) -> None:
    profile = profile_of(lambda file: file.nvtx("load", 0, 100))
    assert summarize(profile).levels == ("process", "thread", "nvtx")


def test_facts_are_told_to_people_too(profile_of: Load) -> None:
    profile = profile_of(three_kernels)
    text = as_text(profile, inputs("trace.sqlite"))
    assert "GPU time    1.00 µs" in text
    assert re.search(r"^  kernel +3$", text, re.MULTILINE)
    assert re.search(r"^  NVTX +90\.0 % +900 ns$", text, re.MULTILINE)
    assert re.search(r"^GPUs +GPU 0  NVIDIA Test$", text, re.MULTILINE)
    assert facts(profile, inputs("trace.sqlite"))["warnings"] == list(profile.warnings)


def test_graph_kernels_with_captured_ranges_are_counted(profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        file.nvtx("capture", 0, 90)
        file.node(1, None, 50)
        file.node(2, 1, 90)
        file.api("cudaGraphLaunch_v10000", 100, 110, corr=1)
        file.kernel("known", 200, 300, corr=1, graph_node=2)
        file.kernel("unknown", 300, 400, corr=1, graph_node=77)

    profile = profile_of(arrange)
    assert facts(profile, inputs("x"))["graph_nodes"] == {"activities": 2, "captured": 1}
    assert "ranges of their capture: 1 of 2" in as_text(profile, inputs("x"))


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


def test_the_steps_of_a_training_are_told_with_their_times() -> None:
    profile = torch_profile()
    known = facts(profile, inputs("x"))
    text, told = as_text(profile, inputs("x")), known["steps"]
    assert isinstance(told, list) and len(told) > 1
    for step in told:
        times = rf"{re.escape(format_ns(step['duration_ns']))} +"
        times += re.escape(format_ns(step["gpu_time_ns"]))
        times += rf" +{re.escape(format_percent(step['busy_ns'], step['window_ns']))}"
        assert re.search(rf"^ +{step['number']} +{times}$", text, re.MULTILINE)
        only = project_tree(profile, where=where(step=(str(step["number"]),)))
        assert only.total[0] == step["gpu_time_ns"]
    assert text.count("steps: 5 of the PyTorch profiler\n  median 896 µs, slowest 5: 7.76 ms") == 1
    assert "  outside of them no GPU time\n" in text
    assert known["iterations"] == {
        "source": "profiler",
        "count": 5,
        "median_ns": sorted(step["duration_ns"] for step in told)[2],
        "slowest": 5,
        "slowest_ns": max(step["duration_ns"] for step in told),
        "outside": {
            part: {"gpu_time_ns": 0, "activities": 0}
            for part in ("before", "between", "after", "elsewhere")
        },
    }
    assert re.search(r"^  operators +\d", text, re.MULTILINE)
    assert not re.search(r"^  native +\d", text, re.MULTILINE)


def test_what_files_of_stacks_measure_stands_apart_from_its_title(tmp_path: Path) -> None:
    with (tmp_path / "x.json").open("wb") as file:
        speedscope.write(torch_profile(), Selection(), file, name="x")
    text = as_text(load(tmp_path / "x.json"), inputs("x.json"))
    assert re.search(r"^GPU activities +226$", text, re.MULTILINE)


def test_a_long_list_is_cut(profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        for number in range(30):
            file.process(1_000 + number, f"rank{number}")
            file.kernel("gemm", number * 10, number * 10 + 5, pid=1_000 + number)

    text = as_text(profile_of(arrange), inputs("x"))
    assert "and 20 more" in text
    assert "rank9" in text
    assert "rank10" not in text


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ([], ""),
        ([Device(3)], "GPU"),
        ([Device(0), Device(1)], "2 × GPU"),
        ([Device(0, "H100"), Device(1, "H100")], "2 × H100"),
        ([Device(0, "H100"), Device(1, "A2"), Device(2, "A2")], "H100 + 2 × A2"),
        ([Device(0, "\x1b[2J")], r"\x1b[2J"),
    ],
)
def test_gpus_in_short(devices: list[Device], said: str) -> None:
    assert gpus(devices) == said


# -- text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("void gemm<λ>()", "void gemm<λ>()"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\nb\tc\x85d", r"a\nb\tc\x85d"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\udcff", r"\udcff"),
        ("a\u00a0b\u3000c", "a b c"),
        ("层 🔥", "层 🔥"),
    ],
)
def test_printable(text: str, safe: str) -> None:
    assert printable(text) == safe


@given(st.text())
def test_printable_is_always_printable(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("short", 5, "short"),
        ("abcdefghij", 7, "abcd…ij"),
        ("abcdefghij", 1, "…"),
        ("模块模块模块", 7, "模块…块"),
        ("e\u0301" * 4, 4, "e\u0301" * 4),
    ],
)
def test_cut(text: str, width: int, short: str) -> None:
    assert cut(text, width) == short


@given(st.text(), st.integers(1, 30))
def test_cut_fits(text: str, width: int) -> None:
    text = printable(text)
    assert cells(cut(text, width)) <= width


# -- progress ---------------------------------------------------------------------------------

REPORT = """
import sys
from types import SimpleNamespace
import flame.console.progress
now = 100.0
flame.console.progress.time = SimpleNamespace(monotonic=lambda: now)
with flame.console.progress.progress_on_stderr() as progress:
    progress("reading", 1, 4)
    now += {patiences} * flame.console.progress.DELAY
    progress("attributing", 3, 4)
print("rich" in sys.modules)
"""


def reported(patiences: float, stderr: int) -> str:
    """What a load prints on stdout that lasts this many patiences and reports to ``stderr``."""
    code = REPORT.format(patiences=patiences)
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=stderr, timeout=PATIENCE, check=True
    )
    return done.stdout.decode()


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A pseudo-terminal: the side to read from, the side to write to."""
    controller, terminal = pty.openpty()
    os.set_blocking(controller, False)
    yield controller, terminal
    os.close(controller)
    os.close(terminal)


def test_a_long_load_shows_its_progress(terminal: tuple[int, int]) -> None:
    controller, stderr = terminal
    assert reported(1.2, stderr) == "True\n"
    said = os.read(controller, 1 << 16).decode()
    assert "attributing" in said
    assert "75%" in said
    assert "reading" not in said


def test_a_short_load_shows_and_imports_nothing(terminal: tuple[int, int]) -> None:
    controller, stderr = terminal
    assert reported(0.2, stderr) == "False\n"
    with pytest.raises(BlockingIOError):
        os.read(controller, 1)


def test_a_load_without_a_terminal_shows_nothing(tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("w+b") as stderr:
        assert reported(1.2, stderr.fileno()) == "False\n"
        assert stderr.tell() == 0


def test_info_says_what_no_gpu_ran() -> None:
    decode = SAMPLE.with_name("decode_small.sqlite")
    lines = as_text(load(decode), Inputs((decode,))).splitlines()
    assert [line.split() for line in lines if line.startswith("synthetic")] == [
        ["synthetic", "no", "GPU", "ran", "this"]
    ]


def test_sentences_of_info_are_as_wide_as_the_terminal() -> None:
    decode = SAMPLE.with_name("decode_small.sqlite")
    notes = {}
    for columns in ("70", "300"):
        command = [sys.executable, "-m", "flame", "info", str(decode)]
        environment = {**os.environ, "COLUMNS": columns}
        text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        notes[columns] = text.stdout[text.stdout.index("note: ") :].splitlines()
    assert 60 < max(map(len, notes["70"])) <= 70
    assert 80 < max(map(len, notes["300"])) <= 100


def sampled() -> Profile:
    """Two launches of gemm of 30 and 10 ns with 8 samples, 60 ns of something without."""
    run = Run(
        tuple(((), (), name, ns) for name, ns in (("gemm", 30), ("gemm", 10), ("copy", 60))),
        (((0, 0, 0, 4), (0, 0, 1, 1), (0, 3, 3, 3)),),
        (0, -1),
    )
    return run.profile()


def test_samples_are_counted_and_it_is_said_whose_they_are() -> None:
    profile = sampled()
    assert profile.sampling is not None
    assert facts(profile, inputs("trace"))["pc_samples"] == {
        "samples": 8,
        "instructions": 2,
        "kernels": 1,
        "attribution": "kernel",
    }
    text = as_text(profile, inputs("trace"))
    assert "PC samples             8  instructions 2, kernels 1\n" in text
    assert "known by kernel: those of all its launches are one" in text
    assert re.search(r"SASS +40.0 % +40 ns", text)
    assert "sass, stall" in text
    own = replace(profile, sampling=replace(profile.sampling, exact=np.array([True])))
    assert "known by launch\n" in as_text(own, inputs("trace"))


def test_without_samples_there_is_no_word_of_them(profile_of: Load) -> None:
    profile = profile_of(three_kernels)
    assert facts(profile, inputs("trace"))["pc_samples"] is None
    assert "PC samples" not in as_text(profile, inputs("trace"))


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


# -- how busy the GPUs were ---------------------------------------------------------------------


def two_gpus(file: NsysFile) -> None:
    """GPU 0 works 600 of 1,000 ns, of which a copy alone takes 100; GPU 1 all of 300."""
    file.gpu(0, "NVIDIA Test")
    file.gpu(1, "NVIDIA Test")
    file.nvtx("layers.3", 0, 10)
    file.api("cudaLaunchKernel", 1, 2, corr=1)
    file.kernel("gemm", 100, 500, corr=1)
    file.kernel("norm", 300, 600, corr=None, stream=13)
    file.memcpy(HTOD, 1_000, 1_100, corr=None)
    file.kernel("gemm", 0, 300, corr=None, device=1)


def test_json_tells_how_busy_each_gpu_was(profile_of: Load) -> None:
    told = json.loads(as_json(profile_of(two_gpus), inputs("x")))
    first, second = told["utilization"]
    chunks = first.pop("chunks")
    assert len(chunks) == 60 and sum(chunks) == first["busy_ns"]
    assert first == {
        "device": 0,
        "source": 0,
        "begin_ns": 100,
        "window_ns": 1_000,
        "busy_ns": 600,
        "idle_ns": 400,
        "busy_percent": 60.0,
        "kernels_busy_ns": 500,
        "copies_alone_ns": 100,
    }
    assert (second["device"], second["window_ns"], second["busy_percent"]) == (1, 300, 100.0)
    assert told["idle_gaps"] == [
        {
            "device": 0,
            "source": 0,
            "begin_ns": 600,
            "ns": 400,
            "before": "norm",
            "after": "memcpy HtoD",
        }
    ]
    heaviest = told["heaviest"]
    assert heaviest["kernels"] == [
        {"name": "gemm", "place": "", "captured": False, "ns": 700, "count": 2},
        {"name": "norm", "place": "", "captured": False, "ns": 300, "count": 1},
    ]
    assert heaviest["ranges"] == [
        {"name": "layers.*", "place": "", "captured": False, "ns": 400, "count": 1}
    ]
    assert heaviest["modules"] == heaviest["functions"] == []


def test_text_tells_how_busy_each_gpu_was(profile_of: Load) -> None:
    lines = as_text(profile_of(two_gpus), inputs("x")).splitlines()
    busy = "GPU 0 NVIDIA Test  window 1.00 µs  busy 60.0 %  copies alone 10.0 %  idle 400 ns"
    assert busy in lines
    drawn = lines[lines.index(busy) + 1].strip()
    assert drawn[0] == drawn[-1] == "█" and " " in drawn
    assert "GPU 1 NVIDIA Test  window 300 ns  busy 100.0 %  idle 0 ns" in lines
    at = lines.index("longest idle gaps")
    assert lines[at + 1] == "   400 ns  GPU0 at 0.000001 s  norm → memcpy HtoD"


def test_nothing_is_told_of_gpus_where_nothing_ran(tmp_path: Path, profile_of: Load) -> None:
    told = facts(profile_of(lambda file: file.api("cudaMalloc", 0, 100)), inputs("x"))
    assert told["utilization"] == told["idle_gaps"] == []
    (tmp_path / "x.folded").write_text("a;b 3\n")
    stacks = facts(load(tmp_path / "x.folded"), inputs("x"))
    assert stacks["utilization"] == stacks["idle_gaps"] == []
    assert stacks["heaviest"] == {kind: [] for kind in HEAVIEST}
    assert "busy" not in as_text(load(tmp_path / "x.folded"), inputs("x"))


def test_the_printed_view_is_of_the_time_that_is_chosen(profile_of: Load) -> None:
    profile = profile_of(two_gpus)
    begin = profile.begin
    first, *_ = drawn(profile, where=(Time(begin + 100, begin + 300),))
    assert " · 200 ns · busy 100.0 % · idle 0 ns · " in first
    first, *_ = drawn(profile)
    assert " · busy GPU0 60.0 %, GPU1 100.0 % · idle 0–400 ns · GPU time 1.10 µs" in first
