"""What things are called, by the kind of trace, and what a file of stacks shows of itself."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from flame.core.analysis.words.formats import (
    NVTX,
    OPERATORS,
    coverage_of,
    kind_word,
    short_place,
    terms_of,
)
from flame.core.loading.many import load
from flame.core.model.frames import Frame, Kind
from flame.core.model.meta import Source
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.projection.selection import Selection
from flame.tui.session.wording import lasts, mark_of, whole_of
from flame.tui.toolkit.lines import Line
from flame.tui.toolkit.palette import Palette
from flame.tui.widgets.header import coverage_gap, header, shown_levels
from flame.tui.widgets.pages import coverage_lines
from tests.support.profiles.project_tree import project_tree
from tests.tui import sources, traces

PALETTE = Palette((18, 18, 18), (224, 224, 224))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return load(traces.decode(tmp_path_factory.mktemp("nsys") / "decode.sqlite"))


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return sources.training(tmp_path_factory.mktemp("training") / "decode.sqlite")


def text(lines: list[Line]) -> str:
    return "\n".join("".join(piece.text for piece in line) for line in lines)


def test_ranges_are_called_what_the_profiler_calls_them(
    recorded: Profile, training: Profile
) -> None:
    assert terms_of(recorded) is NVTX
    assert terms_of(training) is OPERATORS
    both = replace(training, sources=(*training.sources, Source("b", recorded.meta)))
    assert terms_of(both).ranges == "ranges"


def test_a_frame_says_what_it_is_and_where_it_stands() -> None:
    operator = Frame(Kind.NVTX, "aten::mm", extra=(("captured", "yes"),))
    assert (kind_word(operator, NVTX), kind_word(operator, OPERATORS)) == ("nvtx", "operator")
    assert kind_word(Frame(Kind.KERNEL, "gemm"), OPERATORS) == "kernel"
    assert mark_of(operator) == "↻"
    assert mark_of(Frame(Kind.NVTX, "aten::mm")) == ""
    assert short_place(Frame(Kind.PYTHON, "f", "a/b/model.py", 12)) == "model.py:12"
    assert short_place(Frame(Kind.PYTHON, "f", r"C:\lib\model.py", 12)) == "model.py:12"
    assert short_place(Frame(Kind.PYTHON, "f", "model.py")) == "model.py"
    assert short_place(Frame(Kind.PYTHON, "f")) == ""


def test_only_times_of_single_activities_have_a_mean_and_a_spread() -> None:
    assert [metric.key for metric in METRICS if not lasts(metric)] == ["count"]
    assert not any(map(lasts, sources.stacks().metrics))


def test_the_header_of_stacks_says_what_was_measured() -> None:
    profile = sources.stacks()
    tree = project_tree(profile)
    line = text([header("cpu.folded", profile, Selection(), tree, PALETTE, 120)])
    assert line.startswith(" flame  cpu.folded · 40 samples · 2 stacks  ")
    assert line.endswith("samples ▾   thread › stack ")
    assert shown_levels(tree) == ["thread", "stack"]
    assert coverage_gap(profile) == ""
    assert whole_of(profile) == 40


def test_coverage_is_of_operators_where_these_are(training: Profile) -> None:
    assert coverage_gap(training) == "coverage 93 % launch 93 % operators "


def test_the_notes_of_stacks_have_no_gpu_and_no_length() -> None:
    shown = text(coverage_lines(sources.stacks(), 100))
    assert "GPU" not in shown
    assert "not known: the file has no times" in shown
    assert "bytes allocated 4.10 kB" in shown and "stacks          2" in shown
    assert "server [7]" in shown


def test_the_notes_name_the_steps_and_the_kind_of_ranges(training: Profile) -> None:
    shown = text(coverage_lines(training, 100))
    assert re.search(r"^  there are +3 of the PyTorch profiler$", shown, re.MULTILINE)
    assert "median 30.0 µs, slowest 3: 30.0 µs, 1.00 × the median" in shown
    assert "  operator  " in shown


def test_several_files_are_told_apart_in_the_notes(training: Profile) -> None:
    metas = [replace(training.meta, path=f"/runs/{name}.json") for name in "ab"]
    pair = tuple(Source(f"rank {place}", meta) for place, meta in enumerate(metas))
    shown = text(coverage_lines(replace(training, sources=pair), 100))
    assert "rank 0          /runs/a.json" in shown and "rank 1          /runs/b.json" in shown


def test_scopes_and_ranges_of_stacks_are_not_called_nvtx() -> None:
    stacks = sources.stacks()
    proton = replace(stacks, sources=(Source("", replace(stacks.meta, format="proton")),))
    scope = Frame(Kind.NVTX, "naive_softmax")
    assert kind_word(scope, terms_of(proton)) == "scope"
    assert kind_word(scope, terms_of(stacks)) == "range"
    assert terms_of(stacks).ranges == "ranges"


def test_what_a_profiler_never_records_is_not_missing(recorded: Profile, training: Profile) -> None:
    assert [title for title, _ in coverage_of(recorded).values()][1:] == [
        "NVTX",
        "python",
        "native",
    ]
    assert [title for title, _ in coverage_of(training).values()][1:] == ["operators", "python"]
    assert "native frames" not in text(coverage_lines(training, 100))
