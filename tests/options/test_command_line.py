"""Command lines lead back to what they were made of, and so do states."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.cli.main import main
from flame.cli.parser import build_parser
from flame.core.errors import InputError, UsageError
from flame.core.frame import COLOURS
from flame.core.loading.inputs import Inputs
from flame.core.model.frames import ACTIVITY_KINDS
from flame.core.model.metrics import METRICS
from flame.core.model.tree import ORDERS, TreeLayout
from flame.core.names.rename import parse_rename
from flame.core.options import LoadOptions
from flame.core.projection.filters import (
    MOMENTS,
    At,
    Devices,
    HideFrames,
    HideFramework,
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
from flame.core.projection.labels import KERNEL_NAMES, Naming
from flame.core.projection.levels import LEVELS
from flame.core.projection.named_levels import NAMED_LEVELS, NamedLevels, arrange
from flame.core.projection.selection import Selection
from flame.options.command_line import command_line, options_of, report_line
from flame.options.config import state_path
from flame.options.selection import load_options_of, parse, selection_of
from flame.options.state import AppState, ViewName, decode, encode, save

HOSTILE = "a7 @\\'\"$`!;&|<>*?[]{}()-=,./~#%\n\t\x1b\x7f\u202eé火🔥\udc80"
texts = st.text(st.sampled_from(HOSTILE) | st.characters(exclude_characters="\0"), max_size=6)
names = texts.filter(lambda text: text not in ("", "--"))
files = names.filter(lambda name: not os.path.isdir(name))  # noqa: PTH112 (takes any text)
expressions = (
    texts.map(re.escape) | st.sampled_from(["-a", "--a", "", "^(gemm|-x)$", "(?x) a "])
).filter(lambda text: "\0" not in text and text != "--")
moments = st.integers(-(10**19), 10**19)
windows = st.one_of(
    st.tuples(moments, st.integers(1, 10**12)).map(lambda at: Time(at[0], at[0] + at[1])),
    st.builds(Time, begin=moments),
    st.builds(Time, end=moments),
)
ids = st.lists(st.integers(0, 10**17), min_size=1, max_size=3).map(tuple)
kinds = st.lists(st.sampled_from(ACTIVITY_KINDS), min_size=1, max_size=3).map(tuple)


def several(filters: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(filters, max_size=most, unique=True)


rank_names = texts.map(str.strip).filter(lambda text: text and "," not in text)

# In the order in which options make them.
wheres = st.tuples(
    several(windows),
    several(st.builds(At, moments | st.sampled_from(MOMENTS)), 1),
    several(st.lists(st.integers(0, 99), min_size=1, max_size=9).map(Steps.of)),
    several(st.builds(Ranks, st.lists(rank_names, min_size=1, max_size=3).map(tuple))),
    several(st.builds(NvtxRange, names, st.none() | texts)),
    *(several(st.builds(kind, ids), 1) for kind in (Devices, Streams, Pids, Tids)),
    several(st.builds(Kernel, expressions)),
    several(st.builds(Include, kinds), 1),
    *(
        several(st.builds(kind, expressions))
        for kind in (ShowStacks, HideStacks, ShowFrom, HideFrames)
    ),
    several(st.just(HideFramework()) | st.builds(HideFramework, expressions), 1),
    several(st.builds(MinShare, st.floats(0, 100)), 1),
).map(lambda groups: tuple(one for group in groups for one in group))
rules = st.tuples(expressions.filter(bool), texts).map("=".join)


@st.composite
def renames(draw: st.DrawFn) -> Any:
    try:
        return parse_rename(draw(rules))
    except UsageError:
        return parse_rename(r"layers\.(\d+)(?=\.)=-\1=")


named = st.sampled_from([named.levels for named in NAMED_LEVELS])
levels = named | st.lists(st.sampled_from(LEVELS), min_size=1, unique=True).map(tuple)
namings = st.builds(
    Naming,
    kernel_names=st.sampled_from(KERNEL_NAMES),
    shapes=st.booleans(),
    rename=st.lists(renames(), max_size=2).map(tuple),
    fold=st.booleans(),
    numbers=st.booleans(),
)
USUAL = Naming("short", numbers=True)
USUAL_SELECTION = Selection(naming=USUAL)
layouts = st.builds(TreeLayout, st.booleans(), st.booleans(), st.sampled_from(ORDERS))
selections = st.builds(
    Selection,
    levels,
    wheres,
    st.none() | st.sampled_from([metric.key for metric in METRICS]),
    namings,
    layouts,
    st.sampled_from(COLOURS),
    st.booleans(),
)
load_options = st.builds(
    LoadOptions,
    st.sampled_from(["clean", "raw"]),
    st.booleans(),
    st.just(True),  # links to forward operators are always read, to be switched on
    st.lists(names, max_size=2).map(tuple),
    peak=st.none() | st.sampled_from(["bf16=989,mem=3350", "fp8=1.5"]),
    dtype=st.none() | st.just("bf16"),
    model_flops=st.none() | st.just("6.2e15"),
)
stacks = st.lists(st.text(max_size=4) | texts, max_size=3)
states = st.builds(
    AppState,
    view=st.sampled_from(get_args(ViewName)),
    zoom=stacks,
    selected=stacks,
    search=texts,
    exact=st.booleans(),
    all_open=st.booleans(),
    chains=st.lists(st.tuples(st.integers(1, 99), stacks), max_size=2),
    section=texts,
    row=st.integers(-1, 99),
)


def normal(selection: Selection) -> Selection:
    """``selection`` without `--shapes` where the levels, given without it, have the last word."""
    naming = selection.naming
    if selection.levels is None or "shapes" in selection.levels:
        return selection
    return replace(selection, naming=replace(naming, shapes=False))


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


Ran = tuple[list[str], LoadOptions, Selection, AppState | None]


@pytest.fixture(scope="module")
def opened() -> Callable[[str], Ran]:
    """What the app is run with by a line typed into a shell."""

    def type_in(line: str) -> Ran:
        program, *words = shlex.split(line)
        assert program == "flame"
        seen: list[Ran] = []

        def run(inputs: Inputs, options: Any, select: Any, state: Any, *more: object) -> int:
            seen.append(([str(path) for path in inputs.paths], options, select(), state))
            return 0

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("flame.tui.main.app.run", run)
            patch.setattr("flame.cli.view.is_on_terminal", lambda: True)
            patch.setenv("FLAME_CONFIG", "/dev/null")
            assert main(words) == 0
        return seen[0]

    return type_in


@given(st.lists(files, min_size=1, max_size=3), load_options, selections, states)
def test_a_command_line_opens_the_app_at_the_same_place(
    opened: Callable[[str], Ran],
    paths: list[str],
    options: LoadOptions,
    selection: Selection,
    state: AppState,
) -> None:
    line = command_line(paths, options, selection, state)
    assert line.splitlines()[0].startswith("flame view ")
    found = opened(line)
    named = [str(Path(path)) for path in paths]
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


# States


@given(states, st.lists(texts), st.lists(texts))
def test_a_state_is_one_line_of_printable_ascii(
    state: AppState, options: list[str], paths: list[str]
) -> None:
    state.options, state.paths = options, paths
    text = encode(state)
    assert text.isascii()
    assert text.isprintable()
    assert decode(text) == state


def test_what_is_as_on_opening_is_not_written() -> None:
    assert encode(AppState()) == "{}"
    assert encode(AppState(view="top", zoom=["a"])) == '{"view":"top","zoom":["a"]}'


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"veiw":"top"}',
        '{"view":"flat"}',
        '{"zoom":"all"}',
        '{"zoom":[1]}',
        '{"zoom":' + 5_000 * "[",
    ],
)
def test_what_is_no_state_is_said_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="--state: is no state of flame: ") as caught:
        decode(text)
    assert len(str(caught.value)) < 200


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "flame"


def test_the_last_state_is_kept_in_the_users_state_folder(folder: Path) -> None:
    assert save(AppState(search="one")) == folder / "state.json"
    save(AppState(search="two"))
    assert decode("") == decode(str(state_path())) == AppState(search="two")
    assert [path.name for path in folder.iterdir()] == ["state.json"]
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_without_a_state_folder_it_is_the_usual_one(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_path() == tmp_path / ".local/state/flame/state.json"


def test_a_state_that_is_not_there_is_an_input_error(folder: Path) -> None:
    with pytest.raises(InputError, match=r"state\.json: cannot be read: No such file"):
        decode("")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"SQLite format 3\x00", b"", b"[]"])
def test_a_file_that_holds_no_state_is_a_usage_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="trace: is no state of flame"):
        decode(str(path))


@pytest.fixture
def kept(tmp_path: Path) -> Callable[[AppState], str]:
    """A file that holds a state."""

    def keep(state: AppState) -> str:
        path = tmp_path / "kept.json"
        path.write_text(encode(state))
        return shlex.quote(str(path))

    return keep


def test_the_options_of_a_state_come_before_those_given(
    opened: Callable[[str], Ran], kept: Callable[[AppState], str]
) -> None:
    file = kept(AppState("old.sqlite", ["--metric", "idle", "--stream", "7", "--invert"], "top"))
    paths, _, selection, state = opened(f"flame --metric count --state {file} --stream 9")
    assert (paths, selection.metric, selection.where) == (
        ["old.sqlite"],
        "count",
        (Streams((7, 9)),),
    )
    assert selection.layout.inverted
    assert state is not None
    assert state.view == "top"
    assert opened(f"flame view new.sqlite --state {file}")[0] == ["new.sqlite"]


def test_a_state_names_all_its_traces(
    opened: Callable[[str], Ran], kept: Callable[[AppState], str]
) -> None:
    file = kept(AppState(paths=["rank0.json", "rank1.json"]))
    assert opened(f"flame view --state {file}")[0] == ["rank0.json", "rank1.json"]


def test_traces_may_stand_before_and_behind_options(opened: Callable[[str], Ran]) -> None:
    paths, _, selection, _ = opened("flame a.json b.json --metric count c.json --invert d.json")
    assert (paths, selection.metric) == (["a.json", "b.json", "c.json", "d.json"], "count")


def test_words_behind_an_unknown_option_are_not_taken_for_traces(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["info", "a.json", "--depth", "3"]) == UsageError.exit_code
    assert "unknown: --depth" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["--print", "--web", "other.sqlite", "--state", "-h"])
def test_the_options_of_a_state_say_what_to_show_and_no_more(
    word: str, kept: Callable[[AppState], str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = shlex.split(kept(AppState("trace.sqlite", [word])))[0]
    assert main(["view", "--state", file]) == UsageError.exit_code
    assert word in capsys.readouterr().err


def test_a_state_without_a_path_needs_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "--state", json.dumps({"view": "top"})]) == UsageError.exit_code
    assert "name a trace" in capsys.readouterr().err
