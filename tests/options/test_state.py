"""States of the app lead back to what they were made of, and what is no state is refused."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.cli.main import main
from flame.core.errors import InputError, UsageError
from flame.core.projection.filters import Streams
from flame.options.config import state_path
from flame.options.state import AppState, decode, encode, save
from tests.options.conftest import Ran
from tests.options.strategies import states, texts


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
