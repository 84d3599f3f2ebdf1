"""What is remembered between starts: written, read back, forgotten; whatever the file holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.projection.levels import LEVELS
from flame.options import preferences
from flame.options.config import Config
from flame.options.preferences import (
    Memory,
    Preferences,
    ShownLevels,
    open_memory,
    preferences_of,
)
from tests.support.waiting import PATIENCE

KERNELS = ShownLevels(("kernel",), True, False)
ALL: dict[str, Any] = {
    "theme": "flame-light",
    "details": False,
    "kernel_names": "base",
    "colours": "category",
    "hide_framework": True,
    "fold_numbers": False,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "flame" / "preferences.json"


@pytest.fixture(autouse=True)
def _writing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is; an app that is left waits for a second."""
    monkeypatch.setattr(preferences, "_TIMEOUT", PATIENCE)


def written(memory: Memory, path: Path) -> Any:
    memory.settle()
    return json.loads(path.read_text("ascii"))


# Written and read


def test_nothing_is_remembered_and_no_file_made_before_anything_changes(path: Path) -> None:
    memory = Memory(path)
    assert memory.preferences == Preferences()
    memory.settle()
    assert not path.exists()


def test_what_has_changed_is_there_at_the_next_start(path: Path) -> None:
    memory = Memory(path)
    memory.remember(**ALL)
    memory.remember_levels("kineto", KERNELS)
    memory.settle()
    assert Memory(path).preferences == Preferences(**ALL, levels={"kineto": KERNELS})
    assert Memory(path).preferences == memory.preferences


def test_it_is_for_this_user_alone(path: Path) -> None:
    memory = Memory(path)
    memory.remember(details=False)
    memory.settle()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_is_as_usual_again_is_no_longer_in_the_file(path: Path) -> None:
    memory = Memory(path)
    memory.remember(**ALL)
    memory.remember_levels("kineto", KERNELS)
    memory.remember_levels("nsys-sqlite", KERNELS)
    memory.remember(theme=None, details=None)
    memory.remember_levels("kineto", ShownLevels())
    assert memory.preferences.names == [*list(ALL)[2:], "levels"]
    assert written(memory, path).keys() == {*list(ALL)[2:], "levels"}
    assert Memory(path).preferences.levels == {"nsys-sqlite": KERNELS}
    memory.remember_levels("nsys-sqlite", ShownLevels())
    assert "levels" not in written(memory, path)


def test_two_sessions_do_not_undo_what_the_other_remembers(path: Path) -> None:
    one, other = Memory(path), Memory(path)
    one.remember(theme="flame-light")
    one.remember_levels("kineto", KERNELS)
    one.settle()
    other.remember(details=False)
    other.remember_levels("fdump", KERNELS)
    other.settle()
    known = Memory(path).preferences
    assert (known.theme, known.details) == ("flame-light", False)
    assert known.levels == {"kineto": KERNELS, "fdump": KERNELS}


def test_what_another_version_has_written_stays(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True)
    path.write_text('{"later": [1], "theme": "flame-sepia"}')
    memory = Memory(path)
    assert memory.preferences == Preferences()
    memory.remember(details=False)
    assert written(memory, path) == {"later": [1], "theme": "flame-sepia", "details": False}


def test_everything_can_be_forgotten(path: Path) -> None:
    memory = Memory(path)
    memory.remember(**ALL)
    memory.remember_levels("kineto", KERNELS)
    assert memory.forget() == Preferences(**ALL, levels={"kineto": KERNELS})
    assert memory.preferences == Preferences()
    assert written(memory, path) == {}
    assert memory.forget().names == []


def test_without_a_file_nothing_is_kept() -> None:
    memory = Memory()
    memory.remember(**ALL)
    memory.remember_levels("kineto", KERNELS)
    memory.settle()
    assert memory.preferences == Preferences()
    assert not memory.is_kept


# Who wins


def test_what_the_configuration_says_is_neither_read_nor_written(path: Path) -> None:
    first = Memory(path)
    first.remember(theme="flame-light", details=False)
    first.settle()
    memory = Memory(path, settled={"theme"})
    assert memory.preferences == Preferences(details=False)
    memory.remember(theme="flame-ansi")
    assert written(memory, path) == {"theme": "flame-light", "details": False}


@pytest.mark.parametrize(("config", "kept"), [(Config(), True), (Config(remember=False), False)])
def test_the_configuration_says_whether_anything_is(config: Config, kept: bool) -> None:
    assert open_memory(config).is_kept is kept


def test_it_lies_in_the_folder_of_states(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    memory = open_memory(Config())
    memory.remember(details=False)
    memory.settle()
    assert (tmp_path / "flame" / "preferences.json").exists()


def test_settings_that_something_else_says_are_left_out() -> None:
    known = Preferences(**ALL, levels={"kineto": KERNELS})
    assert known.without({"theme", "levels"}).names == list(ALL)[1:]
    assert known.without({*ALL, "levels"}) == Preferences()
    assert known.without(()) == known


# Files that are damaged, hostile or not one's own


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 50_000,
        b'{"theme": "flame-light"' + b" " * 70_000 + b"}",
        b'{"theme": "auto", "details": 0, "kernel_names": ["base"], "colours": null}',
        b'{"hide_framework": 1, "fold_numbers": "yes", "levels": [1]}',
        b'{"levels": {"kineto": {"levels": ["kernel"]}}}',
        b'{"levels": {"kineto": {"levels": ["gpu"], "fold": true, "forward": true}}}',
        b'{"levels": {"kineto": {"levels": [], "fold": true, "forward": true}}}',
        b'{"levels": {"kineto": {"levels": [["kernel"]], "fold": true, "forward": true}}}',
        b'{"levels": {"kineto": {"levels": 7, "fold": true, "forward": true}}}',
        b'{"levels": {"kineto": {"levels": null, "fold": 1, "forward": true}}}',
        b'{"levels": {"\\u001b[31m": {"levels": ["kernel"], "fold": true, "forward": true}}}',
    ],
)
def test_what_is_not_understood_is_as_if_it_were_not_there(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True)
    path.write_bytes(content)
    memory = Memory(path)
    assert memory.preferences == Preferences()
    memory.remember(details=False)
    assert written(memory, path)["details"] is False
    assert Memory(path).preferences == Preferences(details=False)


def test_one_wrong_value_does_not_cost_the_others() -> None:
    known = preferences_of({**ALL, "theme": "flame-sepia"})
    assert known.names == list(ALL)[1:]


def test_no_more_kinds_are_read_than_there_could_be() -> None:
    many = {"a" * number: KERNELS._asdict() for number in range(1, 70)}
    assert len(preferences_of({"levels": many}).levels) == 32


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.sampled_from(LEVELS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
words = st.sampled_from([*ALL, "levels", "kineto", "fold", "forward"])


@given(st.dictionaries(words, json_values | st.dictionaries(words, json_values)))
def test_whatever_a_file_says_is_a_known_value_or_none(fields: dict[str, Any]) -> None:
    known = preferences_of(fields)
    for name, good in ALL.items():
        value = getattr(known, name)
        assert value is None or type(value) is type(good)
    for shown in known.levels.values():
        assert shown.levels is None or set(shown.levels) <= set(LEVELS)


def test_a_folder_of_others_is_not_used(path: Path) -> None:
    first = Memory(path)
    first.remember(details=False)
    first.settle()
    path.parent.chmod(0o777)
    memory = Memory(path)
    assert memory.preferences == Preferences()
    memory.remember(theme="flame-light")
    memory.settle()
    assert json.loads(path.read_text()) == {"details": False}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_where_nothing_can_be_written_nothing_fails(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    memory = Memory(tmp_path / "flame" / "preferences.json")
    memory.remember(details=False)
    memory.settle()
    assert memory.preferences.details is False


def test_where_there_can_be_no_folder_nothing_fails() -> None:
    memory = Memory(Path(os.devnull, "flame", "preferences.json"))
    memory.remember(details=False)
    memory.settle()
    assert memory.preferences.details is False
