"""Folded stacks: what stands in the lines, and that they always add up to the tree."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given

from flame.core.loading.many import load
from flame.core.model.tree import StackTree
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.exporters import folded
from tests.conftest import NSYS_TRACES
from tests.exporters.profiles import HOSTILE, LINE_ENDS, Row, chain, profile_of, some_rows
from tests.support.generated.sampled import Run, runs
from tests.support.profiles.project_tree import project_tree


def written(tree: StackTree) -> bytes:
    file = io.BytesIO()
    folded.write(tree, file)
    return file.getvalue()


def lines_of(*rows: Row, levels: str | None = None) -> list[str]:
    tree = project_tree(profile_of(rows), levels=levels, metric="gpu")
    return written(tree).decode().splitlines()


def parse(data: bytes) -> dict[str, int]:
    """Stacks and values, by the expression with which speedscope and flamegraph.pl read a line."""
    values: dict[str, int] = {}
    for line in data.decode().split("\n")[:-1]:
        found = re.fullmatch(r"(.*) ([0-9]+)", line)
        assert found, line
        assert found[1] not in values
        values[found[1]] = int(found[2])
    return values


def naive(stacks: Iterable[tuple[tuple[str, ...], int]]) -> dict[str, int]:
    """Values by line, told anew and one character at a time."""
    values: Counter[str] = Counter()
    for names, value in stacks:
        frames = ["".join(map(plain, name)) or "[empty]" for name in names]
        values[";".join(frames) or "all"] += value
    return {line: value for line, value in values.items() if value}


def spelled(row: Row) -> tuple[str, ...]:
    """Names as the lines have them: of Python functions with file and line."""
    places = [f"{file}:{line}" if line else file for _, file, line in row.python]
    python = [
        f"{name} ({place})" if file else name
        for (name, file, _), place in zip(row.python, places, strict=True)
    ]
    return (*python, *row.names()[len(python) :])


def plain(character: str) -> str:
    if character == ";":
        return ":"
    if len(f"a{character}b".splitlines()) > 1:
        return " "
    if "\ud800" <= character <= "\udfff":
        return f"\\u{ord(character):x}"
    return character


def test_one_line_per_stack_root_first_sorted() -> None:
    assert lines_of(
        Row("gemm", 70, nvtx=("forward", "layer 1"), launch="cudaLaunchKernel"),
        Row("gemm", 5, nvtx=("forward", "layer 1"), launch="cudaLaunchKernel"),
        Row("softmax", 30, nvtx=("forward",), launch="cudaGraphLaunch"),
        Row("memset", 1),
    ) == [
        "[no launch recorded];memset 1",
        "cudaGraphLaunch;forward;softmax 30",
        "cudaLaunchKernel;forward;layer 1;gemm 75",
    ]


def test_own_time_of_an_inner_frame_is_a_line() -> None:
    rows = Row("", 3, nvtx=("a",)), Row("", 4, nvtx=("a", "b"))
    assert lines_of(*rows, levels="nvtx") == ["a 3", "a;b 4"]


def test_activities_without_any_frame_are_the_line_all() -> None:
    assert lines_of(Row("gemm", 3, nvtx=("a",)), Row("gemm", 4), levels="nvtx") == ["a 3", "all 4"]


def test_stacks_without_a_value_are_left_out() -> None:
    assert lines_of(Row("gemm", 0), Row("softmax", 1), levels="kernel") == ["softmax 1"]


def test_a_separator_in_a_name_becomes_a_colon() -> None:
    assert lines_of(Row("f<a;b>;", 1), levels="kernel") == ["f<a:b>: 1"]


@pytest.mark.parametrize("end", LINE_ENDS, ids=ascii)
def test_a_line_break_in_a_name_becomes_a_space(end: str) -> None:
    assert lines_of(Row(f"{end}a{end}b", 1), levels="kernel") == [" a b 1"]


def test_stacks_equal_after_replacement_are_one_line() -> None:
    rows = Row("a;b", 1), Row("a:b", 2), Row("a:b", 4, nvtx=("",)), Row("a;b", 8, nvtx=("[empty]",))
    assert lines_of(*rows, levels="nvtx,kernel") == ["[empty];a:b 12", "a:b 3"]


def test_a_name_that_utf8_cannot_hold_is_spelled_out() -> None:
    assert lines_of(Row("k\udcff", 1), levels="kernel") == [r"k\udcff 1"]


def test_names_that_end_in_numbers_keep_them() -> None:
    tree = project_tree(
        profile_of([Row("step 103", 5), Row(" 7 ", 6)]), levels="kernel", metric="gpu"
    )
    assert parse(written(tree)) == {"step 103": 5, " 7 ": 6}


def test_values_are_exact_beyond_what_a_double_holds() -> None:
    assert lines_of(Row("gemm", (1 << 53) + 1), levels="kernel") == [f"gemm {(1 << 53) + 1}"]


def test_very_deep_stacks_cost_no_more_than_their_length() -> None:
    line = written(chain(100_000)).decode()
    assert line.count(";") == 99_999
    assert line.endswith("range 2;range 1 1\n")


@given(some_rows)
def test_lines_are_those_of_a_naive_walk(rows: list[Row]) -> None:
    tree = project_tree(profile_of(rows), metric="gpu")
    assert parse(written(tree)) == naive((spelled(row), row.duration) for row in rows)


@given(some_rows)
def test_order_of_activities_does_not_matter(rows: list[Row]) -> None:
    forth, back = profile_of(rows), profile_of(rows[::-1])
    assert written(project_tree(forth, metric="gpu")) == written(project_tree(back, metric="gpu"))


def test_functions_of_one_name_in_two_places_stay_apart() -> None:
    rows = [Row("gemm", 3, python=(("forward", "model.py", line),)) for line in (1, 2)]
    lines = lines_of(*rows, levels="python,kernel")
    assert lines == ["forward (model.py:1);gemm 3", "forward (model.py:2);gemm 3"]


def test_no_character_splits_a_line() -> None:
    assert len(lines_of(Row(HOSTILE, 1), levels="kernel")) == 1


@pytest.mark.parametrize("trace", NSYS_TRACES)
def test_real_traces_add_up(trace: str, nsys_trace: Callable[[str], Path]) -> None:
    profile = load(nsys_trace(trace))
    for selection in (Selection(), Selection(levels=("nvtx",)), Selection(metric="host")):
        tree = project(profile, selection)
        assert sum(parse(written(tree)).values()) == tree.total[0]


def test_instructions_and_reasons_end_their_stacks() -> None:
    run = Run((((), (), "gemm", 70),), (((0, 0, 0, 4), (0, 3, 3, 3)),), (0,))
    profile = run.profile()
    assert parse(written(project_tree(profile))) == {
        "launch;gemm;+0x0000 LDG.E R2, [R4];Long Scoreboard": 40,
        "launch;gemm;+0x0030 BAR.SYNC;Barrier": 30,
    }
    assert parse(written(project_tree(profile, "stall", metric="stalls"))) == {
        "Long Scoreboard": 4,
        "Barrier": 3,
    }


@given(runs)
def test_lines_add_up_to_the_tree_however_it_is_split(run: Run) -> None:
    profile = run.profile()
    for levels in ("kernel,sass,stall", "stall,kernel", "sass"):
        for metric in ("gpu", "stalls"):
            tree = project_tree(profile, levels, metric=metric)
            assert sum(parse(written(tree)).values()) == tree.total[0]
