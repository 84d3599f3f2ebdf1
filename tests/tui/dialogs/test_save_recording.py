"""The dialog that saves a live recording."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from textual.pilot import Pilot

from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.selection import Selection
from flame.core.readers.fdump.layout import parse_header
from flame.tui.dialogs.save_recording import SaveDialog
from flame.tui.session.session import Projection, project
from tests.support.writers.fdumpfile import DumpFile
from tests.tui.dialog_stage import PENDING, Player, Stage, stage


class Dump:
    """A dump of 70 ns on the GPU; ``gate`` keeps the copy from going on until it is set."""

    def __init__(self, pid: int) -> None:
        made = DumpFile(pid)
        made.launch(100, 110, 1, tid=pid)
        made.kernel("gemm", 120, 190, 1, tid=pid)
        self.data = made.data()
        self.path = f"nowhere/{pid}-1.fdump"
        self.header = parse_header(self.data)
        self.gate = threading.Event()
        self.gate.set()

    def copy_to(self, file: BinaryIO) -> None:
        file.write(self.data[:100_000])
        file.flush()
        self.gate.wait(10)
        file.write(self.data[100_000:])


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Dump]:
    """Two dumps; the current folder is empty."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return [Dump(7), Dump(8)]


@pytest.fixture
def profile(tmp_path: Path, dumps: list[Dump]) -> Profile:
    (tmp_path / "7.fdump").write_bytes(dumps[0].data)
    return load(tmp_path / "7.fdump")


@pytest.fixture
def shown(profile: Profile) -> Projection:
    return project(profile, Selection(levels=("kernel",)))


@pytest.fixture
def dialog(dumps: list[Dump], profile: Profile, shown: Projection) -> SaveDialog:
    return SaveDialog(dumps, "train.py", profile, shown)


async def saved(user: Player) -> str:
    await user.until(lambda: user.result is not PENDING)
    assert isinstance(user.result, str)
    return user.result


def here() -> list[str]:
    return sorted(one.name for one in Path().iterdir())


# What is saved


async def test_enter_saves_every_dump_into_a_folder(dialog: SaveDialog) -> None:
    async with stage(dialog) as user:
        assert user.entry == "train.py.flame"
        assert "2 processes, 524 kB now" in user.read()
        await user.press("enter")
        assert await saved(user) == "wrote train.py.flame: 2 processes, 524 kB"
    assert here() == ["train.py.flame"]
    assert load("train.py.flame").gpu_time == 2 * 70


async def test_the_stacks_on_screen_can_be_saved_instead(dialog: SaveDialog) -> None:
    async with stage(dialog) as user:
        await user.click("folded")
        assert user.entry == "train.py.collapsedstack.txt"
        assert "the GPU time, levels and order on screen" in user.read()
        await user.press("enter")
        assert await saved(user) == "wrote train.py.collapsedstack.txt: 1 stack, GPU time 70 ns"
    assert Path("train.py.collapsedstack.txt").read_bytes() == b"gemm 70\n"


async def test_speedscope_gets_the_name_of_the_recording(dialog: SaveDialog) -> None:
    async with stage(dialog) as user:
        await user.press("left", "enter")
        await saved(user)
    assert json.loads(Path("train.py.speedscope.json").read_bytes())["name"] == "train.py"


async def test_without_dumps_there_are_only_stacks_to_save(
    profile: Profile, shown: Projection
) -> None:
    async with stage(SaveDialog((), "train.py", profile, shown)) as user:
        assert ") dump" not in user.read()
        await user.press("enter")
        assert (await saved(user)).startswith("wrote train.py.collapsedstack.txt")


# Where


async def test_a_name_that_is_there_is_not_proposed(
    dumps: list[Dump], profile: Profile, shown: Projection
) -> None:
    Path("train.py.flame").mkdir()
    async with stage(SaveDialog(dumps, "train.py", profile, shown)) as user:
        assert user.entry == "train.py-2.flame"


async def test_nothing_is_replaced_however_often_enter_is_pressed(dialog: SaveDialog) -> None:
    Path("mine").write_text("mine")
    async with stage(dialog) as user:
        await user.type("mine")
        assert "is there already: type another name" in user.read()
        await user.press("enter", "enter")
        assert user.result is PENDING
        await user.click("folded")
        await user.press("enter", "enter")
        assert user.result is PENDING
    assert Path("mine").read_text() == "mine"


async def test_a_folder_may_be_typed_with_a_slash(dialog: SaveDialog) -> None:
    async with stage(dialog) as user:
        await user.type("run/")
        await user.press("enter")
        assert (await saved(user)).startswith("wrote run: 2 processes")


async def test_what_is_wrong_with_a_name_is_said(dialog: SaveDialog) -> None:
    async with stage(dialog) as user:
        await user.type("nowhere/run")
        assert "there is no folder nowhere" in user.read()
        await user.type("")
        assert "type a file name" in user.read()
        await user.press("enter")
        assert user.result is PENDING


async def test_the_end_of_a_typed_name_follows_what_is_saved(dialog: SaveDialog) -> None:
    async with stage(dialog) as user:
        await user.type("mine.flame")
        await user.press("right")
        assert user.entry == "mine.collapsedstack.txt"
        await user.type("mine")
        await user.press("right")
        assert user.entry == "mine"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("a/b \x1b[31m c", "a-b-31m-c.flame"),
        ("../..", "recording.flame"),
        ("2 traces: x, y", "2-traces-x-y.flame"),
    ],
)
async def test_any_title_makes_a_name(
    dumps: list[Dump], profile: Profile, shown: Projection, title: str, name: str
) -> None:
    async with stage(SaveDialog(dumps, title, profile, shown)) as user:
        assert user.entry == name


# On the way


async def test_the_progress_is_shown_and_esc_stops_it(
    dialog: SaveDialog, dumps: list[Dump]
) -> None:
    dumps[0].gate.clear()
    async with stage(dialog) as user:
        await user.press("enter")
        await user.until(lambda: "100 kB of 524 kB" in user.read())
        assert "━" in user.read() and "esc stops" in user.read()
        await user.press("enter", "escape")
        dumps[0].gate.set()
        await user.until(lambda: user.dialog.note)
        assert "stopped: nothing was written" in user.read()
        assert here() == []
        await user.press("enter")
        await saved(user)
    assert here() == ["train.py.flame"]


async def test_leaving_the_app_leaves_no_half_copy(dialog: SaveDialog, dumps: list[Dump]) -> None:
    dumps[0].gate.clear()
    async with stage(dialog) as user:
        await user.press("enter")
        await user.until(lambda: "100 kB of 524 kB" in user.read())
        dumps[0].gate.set()
    assert here() in ([], ["train.py.flame"])


async def test_why_it_failed_is_said_and_it_can_be_tried_again(
    dialog: SaveDialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Dump, file: BinaryIO) -> None:
        file.write(self.data[:100_000])
        raise OSError(28, "No space left on device")

    async with stage(dialog) as user:
        with monkeypatch.context() as broken:
            broken.setattr(Dump, "copy_to", full)
            await user.press("enter")
            await user.until(lambda: user.dialog.note)
        said = "train.py.flame: cannot be written: No space left on device"
        assert user.dialog.note == said
        assert here() == []
        await user.press("enter")
        await saved(user)


# The dialog


@pytest.mark.parametrize("key", ["escape", "q", "S"])
async def test_leaving_writes_nothing(dialog: SaveDialog, key: str) -> None:
    async with stage(dialog) as user:
        await user.press(key)
        assert user.result is None
    assert here() == []


async def test_the_name_is_typed_where_it_stands(dialog: SaveDialog) -> None:
    async with stage(dialog) as user:
        await user.press("tab", "ctrl+u", *"Sq", "enter")
        assert (await saved(user)).startswith("wrote Sq: ")


async def test_it_works_on_the_smallest_screen(dialog: SaveDialog) -> None:
    async with stage(dialog, (60, 15)) as user:
        assert "(x) dump" in user.read() and "enter write" in user.read()
        assert user.entry == "train.py.flame"
        assert "2 processes" in user.read()


def test_picture(
    dialog: SaveDialog, snap_compare: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path("/home/user"))

    async def play(pilot: Pilot[None]) -> None:
        await Player(pilot.app, pilot).open(dialog)

    assert snap_compare(Stage(), terminal_size=(80, 24), run_before=play)
