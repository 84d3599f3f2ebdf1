"""The export dialog: what is written, where to, and what is never overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.filters import ShowStacks
from flame.core.projection.selection import Selection
from flame.tui.dialogs import write_files
from flame.tui.dialogs.export import ExportDialog
from flame.tui.dialogs.write_files import free_name, output_file, save_screenshot
from flame.tui.session.session import Projection, project
from tests.tui import traces
from tests.tui.dialog_stage import PENDING, Player, stage

FOLDED = "decode.collapsedstack.txt"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace, in another folder than the current, empty one."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return traces.decode(tmp_path / "decode.sqlite")


@pytest.fixture
def profile(trace: Path) -> Profile:
    return load(trace)


@pytest.fixture
def shown(profile: Profile) -> Projection:
    """The second layer, of stacks with ``gemm``."""
    shown = project(profile, Selection(levels=("nvtx", "kernel"), where=(ShowStacks("gemm"),)))
    tree = shown.view.tree
    shown.view.cursor.select(tree.find(("generate", "model.layers.1")))
    shown.view.zoom_in()
    return shown


@pytest.fixture
def dialog(trace: Path, profile: Profile, shown: Projection) -> ExportDialog:
    return ExportDialog(Inputs((trace,)), profile, shown)


async def written(user: Player) -> str:
    await user.until(lambda: user.result is not PENDING)
    assert isinstance(user.result, str)
    return user.result


# What is written


async def test_enter_writes_what_is_shown_as_folded_stacks(dialog: ExportDialog) -> None:
    async with stage(dialog) as user:
        assert user.entry == FOLDED
        await user.press("enter")
        assert await written(user) == f"wrote {FOLDED}: 1 stack, GPU time 140 µs"
        stack = b"generate;model.layers.1;model.layers.1.mlp;gemm"
        assert Path(FOLDED).read_bytes() == stack + b" 140000\n"


async def test_everything_leaves_the_filters_and_the_zoom_out(
    dialog: ExportDialog, profile: Profile
) -> None:
    async with stage(dialog) as user:
        await user.press("down", "right")
        assert "all of the trace, with its usual levels" in user.read()
        await user.press("enter")
        await written(user)
        values = [int(line.rsplit(b" ", 1)[1]) for line in Path(FOLDED).read_bytes().splitlines()]
        assert sum(values) == profile.gpu_time


async def test_speedscope_of_what_is_shown_has_one_profile(dialog: ExportDialog) -> None:
    async with stage(dialog) as user:
        await user.press("right", "enter")
        assert (await written(user)).startswith("wrote decode.speedscope.json: 1 stack")
        data = json.loads(Path("decode.speedscope.json").read_bytes())
        assert data["name"] == "decode.sqlite"
        assert [one["weights"] for one in data["profiles"]] == [[140_000]]


async def test_speedscope_of_everything_has_all_metrics(dialog: ExportDialog) -> None:
    async with stage(dialog) as user:
        await user.click("everything")
        await user.click("speedscope")
        await user.press("enter")
        await written(user)
        data = json.loads(Path("decode.speedscope.json").read_bytes())
        assert len(data["profiles"]) == 5


@pytest.mark.parametrize(
    ("presses", "suffix", "begin"),
    [(2, "pb.gz", b"\x1f\x8b"), (3, "svg", b"<?xml"), (4, "html", b"<!DOCTYPE html>")],
)
async def test_what_is_shown_is_a_profile_a_picture_or_a_page(
    presses: int, suffix: str, begin: bytes, dialog: ExportDialog
) -> None:
    async with stage(dialog) as user:
        await user.press(*["right"] * presses, "enter")
        assert await written(user) == f"wrote decode.{suffix}: 1 stack, GPU time 140 µs"
    data = Path(f"decode.{suffix}").read_bytes()
    assert data.startswith(begin)
    if suffix != "pb.gz":
        assert b"model.layers.1.mlp" in data and b"model.layers.0" not in data


class Label(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Static("the view below")


async def test_the_picture_is_of_the_screen_without_the_dialog(dialog: ExportDialog) -> None:
    async with stage() as user:
        await user.app.push_screen(Label())
        await user.open(dialog)
        await user.press("left", "enter")
        assert await written(user) == "wrote decode.screen.svg: the screen as SVG"
        picture = Path("decode.screen.svg").read_text("utf-8").replace("&#160;", " ")
        assert "the view below" in picture
        assert "enter write" not in picture


async def test_what_would_be_written_is_said_in_words(
    dialog: ExportDialog, shown: Projection
) -> None:
    async with stage(dialog) as user:
        assert "1 filter, below model.layers.1" in user.read()
        shown.view.closer(1)
        await user.press("tab")
        assert "not only the stretch on screen" in user.read()


async def test_what_weighs_nothing_is_not_written(tmp_path: Path, trace: Path) -> None:
    bare = traces.nothing(tmp_path / "nothing.sqlite")
    profile = load(bare)
    async with stage(ExportDialog(Inputs((bare,)), profile, project(profile, Selection()))) as user:
        await user.press("enter")
        await user.until(lambda: user.dialog.note)
        assert user.dialog.note == "nothing to export: host self time is zero"
        assert not list(Path().iterdir())
        await user.press("escape")
        assert user.result is None


async def test_a_failed_write_is_said_and_can_be_tried_again(
    dialog: ExportDialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    async with stage(dialog) as user:
        with monkeypatch.context() as broken:
            broken.setattr("flame.tui.dialogs.write_files.write", full)
            await user.press("enter")
            await user.until(lambda: user.dialog.note)
        assert user.dialog.note.endswith("cannot be written: No space left on device")
        assert not list(Path().iterdir())
        await user.press("enter")
        await written(user)


# The file


async def test_what_is_there_is_replaced_only_by_a_second_enter(dialog: ExportDialog) -> None:
    Path(FOLDED).write_text("before")
    async with stage(dialog) as user:
        assert "is there already" in user.read()
        await user.press("enter")
        assert "enter again replaces it" in user.read()
        assert Path(FOLDED).read_text() == "before"
        await user.press("enter")
        await written(user)
        assert Path(FOLDED).read_text() != "before"


async def test_another_name_has_to_be_agreed_on_again(dialog: ExportDialog) -> None:
    Path("other").write_text("other")
    async with stage(dialog) as user:
        Path(FOLDED).write_text("before")
        await user.press("enter")
        await user.type("other")
        await user.press("enter")
        assert "enter again replaces it" in user.read()
        assert Path("other").read_text() == "other"


async def test_the_format_changes_the_end_of_the_name(dialog: ExportDialog) -> None:
    async with stage(dialog) as user:
        await user.type("mine.collapsedstack.txt")
        await user.press("right")
        assert user.entry == "mine.speedscope.json"
        await user.type("mine.json")
        await user.press("right")
        assert user.entry == "mine.json"


async def test_the_name_is_typed_where_it_stands(dialog: ExportDialog) -> None:
    async with stage(dialog) as user:
        await user.press("down", "j", "ctrl+u", *"he/q")
        assert "there is no folder he" in user.read()
        await user.press("ctrl+u", *"q", "left", "e", "enter")
        assert await written(user) == "wrote eq: 1 stack, GPU time 140 µs"


async def test_the_entry_can_be_clicked_and_left(dialog: ExportDialog) -> None:
    async with stage(dialog) as user:
        await user.pilot.click("#entry")
        await user.settle()
        assert "▸ file" in user.read()
        await user.press("shift+tab", "space")
        assert "(x) everything" in user.read()


async def test_rows_can_be_clicked(dialog: ExportDialog) -> None:
    async with stage(dialog) as user:
        await user.click("file  ")
        await user.press("ctrl+u", "x")
        assert user.entry == "x"
        await user.click("  scope")
        assert user.line("▸").startswith("▸ scope")


@pytest.mark.parametrize("key", ["escape", "q", "e"])
async def test_leaving_writes_nothing(dialog: ExportDialog, key: str) -> None:
    async with stage(dialog) as user:
        await user.press(key)
        assert user.result is None
        assert not list(Path().iterdir())


async def test_it_works_on_the_smallest_screen(dialog: ExportDialog) -> None:
    async with stage(dialog, (60, 15)) as user:
        assert "(x) folded" in user.read() and "enter write" in user.read()
        assert user.entry == FOLDED


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "type a file name"),
        ("  ", "type a file name"),
        ("nowhere/file", "there is no folder nowhere"),
        ("all.txt.zst", "flame packs by gzip only: end the name with .gz"),
        (".", "that is a folder"),
        ("new/", "that is a folder"),
        ("../decode.sqlite", "that is the trace itself"),
        ("link", "that is the trace itself"),
        ("/dev/null", "that is no ordinary file"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_where_nothing_is_written(trace: Path, name: str, problem: str) -> None:
    Path("link").symlink_to(trace)
    assert output_file(name, Inputs((trace,))).problem == problem


def test_where_something_is_written(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path.cwd()))
    Path("old").touch()
    assert output_file("new", Inputs((trace,))) == ("new", "", False)
    assert output_file(" old ", Inputs((trace,))) == ("old", "", True)
    assert output_file("~/new", Inputs((trace,))).path == str(Path.cwd() / "new")
    assert (
        output_file("~nobody-here/new", Inputs((trace,))).problem
        == "there is no folder ~nobody-here"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_read_only_places(trace: Path) -> None:
    Path("file").touch(0o400)
    Path("folder").mkdir(0o500)
    assert output_file("file", Inputs((trace,))).problem == "that file is read-only"
    assert output_file("folder/file", Inputs((trace,))).problem == "the folder folder is read-only"


# Screenshots


async def test_screenshots_take_a_free_name(trace: Path) -> None:
    async with stage() as user:
        await user.app.push_screen(Label())
        await user.settle()
        assert save_screenshot(user.app, Inputs((trace,))) == "decode.screen.svg"
        assert save_screenshot(user.app, Inputs((trace,))) == "decode-2.screen.svg"
        assert "the&#160;view&#160;below" in Path("decode-2.screen.svg").read_text("utf-8")


async def test_a_screenshot_that_another_flame_takes_the_name_of_gets_the_next(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look for a free name and the end of the writing."""
    write = write_files.write_picture

    def overtaken(svg: str, path: str, *, replace: bool) -> str:
        if path == "decode.screen.svg":
            Path(path).write_text("theirs")
        return write(svg, path, replace=replace)

    monkeypatch.setattr(write_files, "write_picture", overtaken)
    async with stage() as user:
        assert save_screenshot(user.app, Inputs((trace,))) == "decode-2.screen.svg"
    assert Path("decode.screen.svg").read_text() == "theirs"
    assert Path("decode-2.screen.svg").stat().st_size > 0


@pytest.mark.parametrize("picture", [False, True])
async def test_what_appears_after_the_check_is_not_replaced(
    picture: bool, dialog: ExportDialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "decode.screen.svg" if picture else FOLDED
    check = ExportDialog._check

    def overtaken(self: ExportDialog) -> write_files.OutputFile:
        target = check(self)
        if self.note == "" and target.path == name and armed:
            Path(name).write_text("theirs")
        return target

    armed: list[bool] = []
    monkeypatch.setattr(ExportDialog, "_check", overtaken)
    async with stage(dialog) as user:
        if picture:
            await user.press("left")
        armed.append(True)
        await user.press("enter")
        await user.until(lambda: "is there already" in user.read())
        assert Path(name).read_text() == "theirs"
        armed.clear()
        await user.press("enter", "enter")
        assert (await written(user)).startswith(f"wrote {name}: ")
    assert Path(name).read_text() != "theirs"


def test_a_dangling_link_is_not_free(trace: Path) -> None:
    Path("a.svg").symlink_to("nowhere")
    assert free_name("a", ".svg") == "a-2.svg"
