"""Help begins with examples that work, and breaks no word; mistyped words are told for what."""

from __future__ import annotations

import re
import shlex

import pytest

from flame.cli.arguments import TRACES
from flame.cli.help.examples import EXAMPLES
from flame.cli.parser import COMMANDS, command_parsers, parse_command_line
from flame.core.errors import UsageError
from flame.core.frame import LEVELS
from flame.core.model.metrics import ALL_METRICS
from flame.core.readers.formats import FORMATS
from tests.cli.conftest import Flame

LINES = [line for examples in EXAMPLES.values() for line, _ in examples]


def help_of(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    return command_parsers((command,))[command].format_help()


@pytest.mark.parametrize("line", LINES)
def test_examples_are_understood(line: str) -> None:
    (call,) = (part.strip() for part in line.split(" | ") if part.strip().startswith("flame "))
    words = shlex.split(re.sub(r" > [\w.]+$", "", call))[1:]
    assert callable(parse_command_line(words).run)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_examples(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = help_of(command, monkeypatch)
    assert text.index("\nexamples:\n") < text.index("\noptions:\n")
    assert text.startswith(f"usage: flame {command} ")
    assert text.index("\n\n") < 100  # of usage, a line or two


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_eighty_columns_and_breaks_no_word(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = help_of(command, monkeypatch)
    narrow = [line for line in text.splitlines() if len(line) > 80]
    monkeypatch.setenv("COLUMNS", "400")
    wide = command_parsers((command,))[command].format_help()
    assert [line for line in narrow if line not in wide] == []
    assert set(text.split()) - set(wide.split()) == set()


MOST = 12
"""Options that a person finds in one list."""


@pytest.mark.parametrize("command", COMMANDS)
def test_long_lists_of_options_are_groups(command: str) -> None:
    groups = command_parsers((command,))[command]._action_groups
    long = {group.title for group in groups if len(group._group_actions) > MOST}
    assert long <= {"filters (all must hold)"}  # of which each is one thing to choose by


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (("help",), "usage: flame [-h]"),
        (("help", "report"), "usage: flame report "),
        (("help", "nothing"), "usage: flame [-h]"),
    ],
)
def test_help_is_understood_as_a_word(words: tuple[str, ...], begins: str, flame: Flame) -> None:
    assert flame(*words).out.startswith(begins)


def test_levels_are_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(LEVELS) - {"wait"} <= set(re.findall(r"\w+", help_of("view", monkeypatch)))


def test_metrics_are_named() -> None:
    (metric,) = (one for one in command_parsers(("view",))["view"]._actions if one.dest == "metric")
    named = re.findall(r"\w+", str(metric.help))
    assert [one.key for one in ALL_METRICS if one.key not in named] == []


def test_every_format_that_is_opened_is_named() -> None:
    words = {word for one in FORMATS for word in one.name.split()}
    assert words - set(re.findall(r"\w+", TRACES)) == set()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["viwe", "x"], "viwe: no command and no file: did you mean flame view?"),
        (["Reprot"], "Reprot: no command and no file: did you mean flame report?"),
        (["view", "--levls", "kernel"], "unknown: --levls (did you mean --levels?)"),
        (["info", "x", "--jsn"], "unknown: --jsn (did you mean --json?)"),
        (["info", "x", "--zzz"], "unknown: --zzz (see flame info --help)"),
    ],
)
def test_a_mistyped_word_is_told_what_was_meant(words: list[str], says: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_command_line(words)
    assert str(raised.value) == says


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("--levels", "kernl"), "kernel"),
        (("--metric", "cuont"), "count"),
        (("--arrange", "kernles"), "kernels"),
        (("--sort", "weigth"), "weight"),
        (("--colours", "categroy"), "category"),
        (("--kernel-names", "shrot"), "short"),
        (("--include", "kernal"), "kernel"),
    ],
)
def test_a_mistyped_name_is_told_what_was_meant(
    words: tuple[str, ...], meant: str, flame: Flame, trace: object
) -> None:
    told = flame("view", "run.sqlite", "--print", *words).complaint()
    assert told.endswith(f"; did you mean {meant}?")


def test_a_mistyped_section_is_told_what_was_meant(flame: Flame, trace: object) -> None:
    told = flame("report", "run.sqlite", "--section", "kernles").complaint()
    assert told.endswith("; did you mean kernels?")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("export", "run.sqlite", "-f", "foldd"), "folded"),
        (("completion", "bsh"), "bash"),
        (("cache", "claer"), "clear"),
        (("record", "--graphs", "nod", "true"), "node"),
        (("report", "run.sqlite", "--unit", "mss"), "ms"),
        (("report", "run.sqlite", "--by", "confg"), "config"),
        (("report", "run.sqlite", "--fail-on", "idel > 30%"), "idle"),
        (("top", "run.sqlite", "--level", "kernle"), "kernel"),
        (("top", "run.sqlite", "--by", "conut"), "count"),
        (("diff", "run.sqlite", "run.sqlite", "--per", "setp", "--print"), "step"),
    ],
)
def test_a_mistyped_word_of_a_few_is_told_what_was_meant(
    words: tuple[str, ...], meant: str, flame: Flame, trace: object
) -> None:
    said = flame(*words).complaint()
    assert re.search(rf"; did you mean {meant}\?( \(see |$)", said), said


def test_a_file_called_nearly_like_a_command_is_opened(flame: Flame, folder: object) -> None:
    assert flame("viwe", "--print").complaint().startswith("viwe: no command")
    with open("viwe", "wb") as file:  # noqa: PTH123
        file.write(b"main;work 12\n")
    assert "work" in flame("viwe", "--print").out
