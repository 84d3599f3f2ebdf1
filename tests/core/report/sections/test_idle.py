"""What the host ran while GPUs were idle: by hand, and where its rows lead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given

from flame.core.loading.many import load
from flame.core.model.tree import StackTree
from flame.core.options import LoadOptions
from flame.core.projection.filters import Time
from flame.core.projection.project import project
from flame.core.projection.selection import select
from flame.core.report.scope import Scope
from flame.core.report.sections.idle import idle_section
from flame.core.report.table import Place
from tests.conftest import TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.paths import SAMPLES
from tests.support.profiles.report_rows import table_rows
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

LOADS = 10
"""More ranges that differ in a number are one."""


def trace(path: Path) -> Path:
    """Kernels of 10 ns every 100, the last but one later by 100; a range before all but that."""
    with NsysFile(path) as file:
        file.kernel("gemm", 0, 10, corr=None)
        for number in range(1, LOADS + 2):
            at = 100 * number + 100 * (number >= LOADS)
            file.api("cudaLaunchKernel_v7000", at - 5, at, corr=number)
            file.kernel("gemm", at, at + 10, corr=number)
            if number != LOADS:
                file.nvtx(f"load {number}", at - 45 - number, at)
    return path


def test_what_differs_in_numbers_alone_is_one_row_which_leads_to_its_longest_time(
    tmp_path: Path,
) -> None:
    scope = Scope(load(trace(tmp_path / "trace.sqlite")))
    section = idle_section(scope)
    numbers = [*range(1, LOADS), LOADS + 1]
    found = {row["frame"]: row["ns"] for row in table_rows(section, "by_host_frame")}
    loads = sum(40 + number for number in numbers)
    assert found == {"[none]": 85 * len(numbers) + 185 - loads, "load *": loads}
    [table] = [one for one in section.tables if one.key == "by_host_frame"]
    last = 100 * (LOADS + 2)
    windows = {place.window for place in table.places if place}
    assert windows == {None, (100 * LOADS - 90, 100 * LOADS + 95)}
    [place] = [place for place in table.places if place and place.frames]
    assert place == Place(("nvtx", "cause"), (f"load {LOADS + 1}",), "waiting")
    [row] = [row for row in table_rows(section, "by_host_frame") if row["frame"] == "load *"]
    longest = row["longest_begin_ns"], row["longest_ns"]
    assert longest == (last - 45 - LOADS - 1, 40 + LOADS + 1)


def test_where_it_leads_is_within_the_window(tmp_path: Path) -> None:
    window = select(where=(Time(220, 290),))
    scope = Scope(load(trace(tmp_path / "trace.sqlite")), window)
    rows = table_rows(idle_section(scope), "by_host_frame")
    assert [(row["longest_begin_ns"], row["longest_ns"]) for row in rows] == [(252, 38), (220, 32)]


def check_places(scope: Scope) -> None:
    """Every row leads to a frame of its name in the tree that its place tells of."""
    places = [
        place
        for table in idle_section(scope).tables
        if table.key == "by_host_frame"
        for place in table.places
    ]
    trees: dict[tuple[str, ...], StackTree] = {}
    for place in places:
        if place is not None and place.frames:
            if place.levels not in trees:
                selection = replace(scope.selection, metric=place.metric, levels=place.levels)
                trees[place.levels] = project(scope.profile, selection)
            tree = trees[place.levels]
            assert tree.names(tree.find(place.frames)) == place.frames


@examples(0.5, [HealthCheck.too_slow])
@given(scripts())
def test_rows_lead_to_frames_of_the_picture(trace_file: Path, script: Script) -> None:
    check_places(Scope(load(script.write(trace_file), LoadOptions("raw"))))


@needs_traces
@pytest.mark.parametrize(
    "name", ["nsys/rtx3070_train_17k.sqlite", "kineto/h100_qwen_python.json.gz"]
)
def test_rows_of_real_traces_lead_to_frames_of_the_picture(name: str) -> None:
    check_places(Scope(load(TRACES / name)))


def test_functions_are_told_with_their_lines() -> None:
    scope = Scope(load(SAMPLES / "torch_small.pt.trace.json.gz"))
    at = {row["frame"]: row["at"] for row in table_rows(idle_section(scope), "by_host_frame")}
    assert (at["decode_step"], at["replay"]) == ("run.py:36", "graphs.py:118")
    assert at["<built-in method item of type object>"] is None
