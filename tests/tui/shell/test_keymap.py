"""Keys that the user has given to commands: what is understood, what works, what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.errors import UsageError
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.options.config import Config
from flame.tui.main.app import run
from flame.tui.shell.command import Command
from flame.tui.shell.commands import COMMANDS, GROUPS
from flame.tui.shell.keymap import keymap_of, remapped, short_id
from flame.tui.toolkit.themes import NAMES
from tests.tui.conftest import open_app


def shown(command: str, **keys: str) -> str:
    """How the help shows ``command``."""
    changed = remapped(COMMANDS, keymap_of(keys))
    return next(one.shown for one in changed if short_id(one) == command)


# What is understood


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("ctrl+z", "ctrl+z"),
        ("Ctrl+z,F5", "ctrl+z,f5"),
        ("ctrl+z, f5", "ctrl+z,f5"),
        (";", "semicolon"),
        ("semicolon", "semicolon"),
        ("ctrl+?", "ctrl+question_mark"),
        ("Ö", "Ö"),
        ("f6,f6", "f6"),
        ("shift+f5", "shift+f5"),
    ],
)
def test_keys_are_named_as_people_do(keys: str, expected: str) -> None:
    assert keymap_of({"undo": keys}) == {"flame.undo": expected}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"undu": "x"}, "[keys]: unknown command 'undu': did you mean undo?"),
        ({"flame.undo": "x"}, "[keys]: unknown command 'flame.undo': did you mean undo?"),
        ({"undo": "spce"}, "[keys] undo: unknown key 'spce': did you mean space?"),
        ({"undo": "ctlr+z"}, "[keys] undo: unknown key 'ctlr': did you mean ctrl?"),
        ({"undo": "ctrl+"}, "[keys] undo: unknown key ''"),
        ({"undo": ""}, "[keys] undo: no key"),
        ({"undo": ","}, "[keys] has , for both undo and pan_left"),
        ({"undo": "q"}, "[keys] has q for both undo and quit"),
        ({"undo": "ctrl+b", "redo": "ctrl+b"}, "[keys] has ctrl+b for both undo and redo"),
        ({"undo": "ctrl+c"}, "[keys] has ctrl+c for both undo and quit"),
    ],
)
def test_mistakes_are_told(
    monkeypatch: pytest.MonkeyPatch, keys: dict[str, str], said: str
) -> None:
    monkeypatch.setenv("FLAME_CONFIG", "/etc/mine.toml")
    with pytest.raises(UsageError) as raised:
        keymap_of(keys)
    assert str(raised.value).startswith(f"/etc/mine.toml: {said}")


def test_two_commands_may_swap_keys() -> None:
    assert keymap_of({"undo": "Z", "redo": "z"}) == {"flame.undo": "Z", "flame.redo": "z"}


def test_mistakes_are_told_before_the_app_appears(
    monkeypatch: pytest.MonkeyPatch, decode: Path
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.__stderr__.isatty", lambda: True, raising=False)
    with pytest.raises(UsageError, match="unknown command"):
        run(Inputs((decode,)), LoadOptions(), Selection(), config=Config(keys={"nothing": "x"}))


def test_commands_have_short_ids_of_their_own() -> None:
    ids = [short_id(command) for command in COMMANDS if command.keys]
    assert len(set(ids)) == len(ids)
    assert all(name.replace("_", "").isalpha() and name.islower() for name in ids)


# What works


async def test_the_new_key_works_and_the_old_one_does_not(decode: Path) -> None:
    config = Config(keys={"theme": "f9,ctrl+t", "undo": "t"})
    async with open_app(decode, config=config) as user:
        await user.press("t")
        assert user.app.theme == NAMES[0]
        await user.press("f9")
        assert user.app.theme == NAMES[1]
        await user.press("ctrl+t")
        assert user.app.theme == NAMES[2]


async def test_swapped_keys(decode: Path) -> None:
    async with open_app(decode, config=Config(keys={"down": "k", "up": "j"})) as user:
        await user.press("k")
        assert user.selected != "all"
        await user.press("j")
        assert user.selected == "all"


async def test_a_key_that_is_typed_into_the_search_stays_a_letter(decode: Path) -> None:
    async with open_app(decode, config=Config(keys={"quit": "x", "sandwich": "q"})) as user:
        await user.press("slash", "x", "q")
        assert user.read("status").strip() == "no frame matches"
        assert user.app.is_running


# What is shown


def test_what_has_its_own_keys_is_shown_as_ever() -> None:
    assert remapped(COMMANDS, {}) == list(COMMANDS)


def test_new_keys_are_shown() -> None:
    assert shown("help", help="f2,ctrl+h") == "f2 ctrl+h"
    assert shown("undo", undo="semicolon") == "; Z"
    assert shown("undo", redo="ctrl+r") == "z ctrl+r"
    assert shown("out", out="left_square_bracket", details_up="f3") == "["
    assert shown("left", right="f4") == "← h f4"


def test_others_are_shown_as_ever() -> None:
    changed = remapped(COMMANDS, keymap_of({"undo": "f2"}))
    different = [one for one, other in zip(changed, COMMANDS, strict=True) if one != other]
    assert [short_id(command) for command in different] == ["undo"]


def test_groups_can_be_shown_one_by_one() -> None:
    keymap = keymap_of({"redo": "f2"})
    grouped: list[Command] = [c for _, group in GROUPS for c in remapped(group, keymap)]
    assert grouped == remapped(COMMANDS, keymap)
