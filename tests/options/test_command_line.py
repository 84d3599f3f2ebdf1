"""Command lines lead back to what they were made of."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.cli.main import main
from flame.cli.parser import build_parser
from flame.core.errors import UsageError
from flame.core.model.frames import ACTIVITY_KINDS
from flame.core.model.tree import TreeLayout
from flame.core.options import LoadOptions
from flame.core.projection.filters import (
    Devices,
    HideFrames,
    Include,
    Kernel,
    MinShare,
    NvtxRange,
    ShowStacks,
    Time,
)
from flame.core.projection.labels import Naming
from flame.core.projection.named_levels import NAMED_LEVELS, NamedLevels, arrange
from flame.core.projection.selection import Selection
from flame.options.command_line import command_line, options_of, report_line
from flame.options.selection import load_options_of, parse, selection_of
from flame.options.state import AppState
from tests.options.conftest import Ran
from tests.options.strategies import (
    USUAL,
    USUAL_SELECTION,
    files,
    load_options,
    normal,
    selections,
    states,
)


@given(load_options, selections)
def test_options_lead_back_to_what_they_were_made_of(
    options: LoadOptions, selection: Selection
) -> None:
    assert parse(options_of(options, selection)) == (options, normal(selection))


@given(load_options, selections)
def test_a_line_of_the_report_is_of_the_same_selection(
    options: LoadOptions, selection: Selection
) -> None:
    line = report_line(["-a b.sqlite"], options, selection, "idle")
    args = build_parser().parse_args(shlex.split(line)[1:])
    assert (args.paths, args.section) == (["./-a b.sqlite"], "idle")
    drawn = replace(selection, metric=None, layout=TreeLayout(), colours="level")
    assert selection_of(args) == normal(drawn)
    assert load_options_of(args) == replace(options, forward=selection.forward)


def test_what_is_as_by_default_needs_no_option() -> None:
    assert options_of(LoadOptions(), USUAL_SELECTION) == []


@pytest.mark.parametrize(
    ("names", "usual", "words"),
    [
        ("short", "short", []),
        ("base", "short", ["--kernel-names", "base"]),
        ("short", "base", ["--kernel-names", "short"]),
        ("base", "base", ["--kernel-names", "base"]),
    ],
)
def test_kernel_names_are_said_unless_nobody_could_have_others(
    names: str, usual: str, words: list[str]
) -> None:
    assert options_of(LoadOptions(), Selection(naming=Naming(names, numbers=True)), usual) == words


def test_unknown_colours_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="--colours: unknown 'name': choose from level, category"):
        parse(["--colours", "name"])


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ((Time(0, 10), Time(5, None)), ["--time", "0ns/10ns", "--time", "5ns/"]),
        ((Time(1_500_000_000, 2_000_000_001),), ["--time", "1.5s/2.000000001s"]),
        ((Time(-20_000_000, None),), ["--time=-20ms/"]),
        ((Time(),), []),
        ((Devices((0, 1, 2)), Devices((2, 1))), ["--device", "1,2"]),
        ((MinShare(2), MinShare(0.5)), ["--min-percent", "2"]),
        ((Include(ACTIVITY_KINDS[:2]), Include(ACTIVITY_KINDS[1:])), ["--include", "memcpy"]),
        ((Kernel("a"), Kernel("a")), ["--kernel", "a"]),
        ((Kernel("--"),), ["--kernel=-[-]"]),
        ((HideFrames("-x"), ShowStacks("y")), ["--show-stacks", "y", "--hide-frames=-x"]),
        ((NvtxRange("a@b\\", "c@d"),), ["--nvtx-range", r"a\@b\\@c\@d"]),
    ],
)
def test_filters_are_spelled_as_a_user_would(filters: tuple[Any, ...], words: list[str]) -> None:
    assert options_of(LoadOptions(), replace(USUAL_SELECTION, where=filters)) == words


@pytest.mark.parametrize("named", NAMED_LEVELS, ids=[named.name for named in NAMED_LEVELS])
def test_arrangements_are_called_by_their_names(named: NamedLevels) -> None:
    words = options_of(LoadOptions(), arrange(Selection(naming=USUAL), named))
    assert words == ([] if named.levels is None else ["--arrange", named.name])


def test_an_arrangement_that_is_not_folded_as_usual_is_none() -> None:
    layers = Selection(levels=("nvtx", "kernel"), naming=USUAL)
    assert options_of(LoadOptions(), layers) == ["--levels", "nvtx,kernel"]
    kernels = replace(layers, levels=("kernel",), naming=replace(USUAL, fold=True))
    assert options_of(LoadOptions(), kernels) == ["--levels", "kernel", "--fold-layers"]


def test_forward_operators_are_usual_and_can_be_left_out() -> None:
    assert options_of(LoadOptions(), Selection(naming=USUAL, forward=False)) == ["--no-forward"]
    options, selection = parse(["--no-forward"])
    assert options.forward and not selection.forward
    assert parse([])[1].forward


@given(st.lists(files, min_size=1, max_size=3), load_options, selections, states)
def test_a_command_line_opens_the_app_at_the_same_place(
    opened: Callable[[str], Ran],
    paths: list[Path],
    options: LoadOptions,
    selection: Selection,
    state: AppState,
) -> None:
    line = command_line(paths, options, selection, state)
    assert line.splitlines()[0].startswith("flame view ")
    found = opened(line)
    named = [*map(str, paths)]
    assert found == (named, options, normal(selection), None if state == AppState() else state)


def test_a_place_that_no_shell_takes_is_left_out() -> None:
    state = AppState(zoom=["x" * 200_000])
    assert command_line(["a b"], LoadOptions(), USUAL_SELECTION, state) == "flame view 'a b'"


def test_where_the_app_remembers_settings_a_place_is_named_for_they_do_not_count_then(
    opened: Callable[[str], Ran],
) -> None:
    line = command_line(["x"], LoadOptions(), USUAL_SELECTION, AppState(), remembers=True)
    assert line == "flame view x --state '{}'"
    assert opened(line)[2:] == (USUAL_SELECTION, AppState())


def test_traces_may_stand_before_and_behind_options(opened: Callable[[str], Ran]) -> None:
    paths, _, selection, _ = opened("flame a.json b.json --metric count c.json --invert d.json")
    assert (paths, selection.metric) == (["a.json", "b.json", "c.json", "d.json"], "count")


def test_words_behind_an_unknown_option_are_not_taken_for_traces(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["info", "a.json", "--depth", "3"]) == UsageError.exit_code
    assert "unknown: --depth" in capsys.readouterr().err
