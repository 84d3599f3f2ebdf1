"""The help of dialogs: every key is explained, on every page of every dialog."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual.binding import Binding, BindingType

import flame.tui
from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.projection.selection import Selection
from flame.tui.dialogs.export import ExportDialog
from flame.tui.dialogs.filters import FiltersDialog
from flame.tui.dialogs.levels import LevelsChoice, LevelsDialog
from flame.tui.dialogs.save_recording import SaveDialog
from flame.tui.session.query import SelectedName
from flame.tui.session.session import project
from flame.tui.toolkit.dialog import Dialog
from flame.tui.toolkit.dialog.page import Page, bindings_of
from flame.tui.toolkit.lines import Line, Lines, Piece
from tests.tui import traces
from tests.tui.dialog_stage import PENDING, Player, stage
from tests.tui.explained_keys import unexplained


def made_from(kind: type[Dialog[Any]]) -> Iterator[type[Dialog[Any]]]:
    """All dialogs of the app."""
    for one in kind.__subclasses__():
        if one.__module__.startswith("flame."):
            yield one
        yield from made_from(one)


def all_dialogs() -> list[type[Dialog[Any]]]:
    for module in pkgutil.walk_packages(flame.tui.__path__, "flame.tui."):
        importlib.import_module(module.name)
    return sorted(set(made_from(Dialog)), key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", all_dialogs(), ids=lambda kind: kind.__name__)
def test_every_key_of_every_dialog_is_explained(kind: type[Dialog[Any]]) -> None:
    assert [one.key for one in unexplained(bindings_of(kind, Dialog))] == []
    own = kind.__dict__.get("BINDINGS", ())
    assert all(isinstance(one, Binding) for one in own)


def test_only_the_words_of_another_binding_of_the_action_stand_for_those_that_lack() -> None:
    pair = [Binding("up", "move(-1)", "up, down"), Binding("down", "move(1)")]
    assert unexplained(pair) == []
    lone = Binding("x", "remove")
    assert unexplained([*pair, lone]) == [lone]


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    return load(traces.decode(tmp_path / "decode.sqlite"))


def levels() -> LevelsDialog:
    return LevelsDialog(LevelsChoice(("kernel",)), ("kernel",), ("nvtx", "kernel"))


def filters(profile: Profile) -> FiltersDialog:
    return FiltersDialog(profile, (), SelectedName("gemm", Kind.KERNEL))


def export(profile: Profile) -> ExportDialog:
    return ExportDialog(Inputs((Path("decode.sqlite"),)), profile, project(profile, Selection()))


def page(user: Player) -> list[str]:
    """The lines of the help that is open."""
    assert isinstance(user.app.screen, Page)
    source = user.app.screen.query_one(Lines)._source(86, 0)
    return ["".join(piece.text for piece in source[row]) for row in range(len(source))]


def keys(lines: list[str]) -> list[str]:
    """What stands on the left of the keys' part."""
    first = lines.index("") + 1
    part = lines[first : lines.index("", first)]
    return [
        line.strip().split("  ")[0] for line in part if line.startswith("  ") and line[2] != " "
    ]


MOVING = ["↑ ↓", "pgup pgdn", "home end"]


async def test_the_help_is_made_of_the_bindings_and_esc_comes_back() -> None:
    async with stage(levels()) as user:
        await user.press("down", "down")
        before = user.read()
        for key in ("question_mark", "f1"):
            await user.press(key)
            lines = page(user)
            assert lines[0] == "Arrangements, and levels from the root down"
            own = ["enter", "space", "shift+↑ ↓", "1 … 9 0 p", "f b", "u"]
            assert keys(lines) == [*MOVING, *own, "?", "esc q"]
            await user.press("escape")
            assert user.read() == before and user.result is PENDING


async def test_the_help_of_levels_says_what_the_words_mean() -> None:
    async with stage(levels()) as user:
        await user.press("question_mark")
        words = {line.split()[0] for line in page(user) if line.strip()}
        assert words >= {"arrangement", "level", "fold", "forward"}


async def test_each_page_of_filters_explains_the_keys_that_it_has(profile: Profile) -> None:
    async with stage(filters(profile)) as user:
        await user.press("question_mark")
        assert keys(page(user)) == [*MOVING, "enter", "space", "x", "r", "a", "?", "esc q"]
        assert any("time" in line and "the trace runs from" in line for line in page(user))
        await user.press("escape")
        await user.click("  device")
        await user.press("question_mark")
        assert page(user)[0] == "Filter: device"
        assert keys(page(user)) == [*MOVING, "enter", "space", "r", "?", "esc q"]
        await user.press("q", "x", "a")
        assert user.result is PENDING and "[ ] GPU 0" in user.read()


async def test_while_text_is_typed_f1_helps_and_a_question_mark_is_text(profile: Profile) -> None:
    async with stage(filters(profile)) as user:
        await user.press("enter")
        assert user.read().endswith("· f1 help")
        await user.press("ctrl+u", "?")
        assert user.entry == "?"
        await user.press("f1")
        assert keys(page(user)) == ["enter", "ctrl+u", "?", "esc q"]
        await user.press("escape", "g")
        assert user.entry == "?g"


async def test_the_help_of_files_explains_the_formats(profile: Profile) -> None:
    for dialog in (export(profile), SaveDialog((), "x", profile, project(profile, Selection()))):
        async with stage(dialog) as user:
            assert "· ? help" in user.read()
            await user.press("question_mark")
            lines = page(user)
            assert keys(lines) == ["↑ ↓", "← →", "enter", "ctrl+u", "?", "esc q"]
            assert any(line.startswith("  speedscope") and "https" in line for line in lines)
            await user.press("q", "down", "down")
            assert user.result is PENDING


class Bare(Dialog[None]):
    """A dialog of three rows with a long hint."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def head(self, width: int) -> list[Line]:
        return [[Piece("Bare")]]

    def rows(self, width: int) -> list[Line]:
        return [[Piece(f"row {row}")] for row in range(3)]

    def hint(self) -> str:
        return "first · second · third"


@pytest.mark.parametrize(
    ("width", "hint"),
    [
        (100, "first · second · third · ? help"),
        (30, "first · second · ? help"),
        (22, "first · ? help"),
        (14, "? help"),
    ],
)
async def test_the_hint_keeps_what_comes_first_and_the_help(width: int, hint: str) -> None:
    async with stage(Bare(), (width, 20)) as user:
        assert user.read().splitlines()[-1] == hint
