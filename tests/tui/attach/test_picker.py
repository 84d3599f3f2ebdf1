"""The picker: rows that fit, a list that renews itself, and what it is left with."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widgets import Input

from flame.attach.discover.model import Candidate, Discovery, FinishedRecording, Job, WatchMethod
from flame.core.errors import InputError, UsageError
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.options.config import DEFAULTS, Config
from flame.tui.attach import picker
from flame.tui.attach.picker import Picker, PickerScreen
from flame.tui.attach.picker_rows import Item, about, heads, matches, nothing, refusal, row
from flame.tui.attach.run import run
from flame.tui.shell.start import Start
from flame.tui.toolkit.dialog.page import bindings_of
from flame.tui.toolkit.lines import Line, RowView, line_width
from flame.tui.toolkit.list_screen import ListScreen
from flame.tui.toolkit.palette import Palette
from tests.support.waiting import PATIENCE
from tests.tui.explained_keys import unexplained

PALETTE = Palette((18, 18, 18), (228, 228, 228))
NOTHING = Discovery((), ())


def candidate(pid: int, method: WatchMethod = WatchMethod.DUMP, **fields: object) -> Candidate:
    known = Candidate(pid, f"job{pid}", f"python job{pid}.py --lr 0.1", "ada", 90.0, method)
    if method is WatchMethod.DUMP:
        known = dataclasses.replace(known, dumps=(Path(f"/tmp/flame/{pid}-b.fdump"),))
    return dataclasses.replace(known, **fields)  # type: ignore[arg-type]


def job(pid: int, method: WatchMethod = WatchMethod.DUMP, **fields: object) -> Job:
    """A job of one process; ``kernels`` and the like are those of the job."""
    own = {key: fields.pop(key) for key in ("kernels", "launches", "active") if key in fields}
    root = candidate(pid, method, **fields)
    return dataclasses.replace(Job(root, (root,)), **own)  # type: ignore[arg-type]


def ended(pid: int, name: str = "old.py") -> FinishedRecording:
    return FinishedRecording(
        (Path(f"/tmp/flame/{pid}-a.fdump"),), name, (pid,), 7200.0, 12_000_000, 40_000
    )


class FakeFinder:
    """Finds what it is told to, and counts how often it is asked."""

    def __init__(self, found: Discovery) -> None:
        self.found: Discovery | Exception = found
        self.gate = threading.Event()
        self.gate.set()
        self.looks = 0

    def __call__(self) -> Discovery:
        self.gate.wait(PATIENCE)
        self.looks += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def is_looking(app: Picker) -> bool:
    """Whether a look is going on, or has not been shown yet."""
    return any(isinstance(one, PickerScreen) and one._looking for one in app.screen_stack)


class User:
    """Presses keys in the picker and reads it."""

    def __init__(self, app: Picker, pilot: Pilot[None], find: FakeFinder) -> None:
        self.app = app
        self.pilot = pilot
        self.find = find

    async def press(self, *keys: str) -> None:
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 else key
            self.app.post_message(events.Key(name, key if len(key) == 1 else None))
            await self.settle()

    async def settle(self) -> None:
        for _ in range(3):
            handled = asyncio.Event()
            if self.app.call_later(handled.set):
                await asyncio.wait_for(handled.wait(), PATIENCE)
            await self.pilot.pause(0)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)

    async def renew(self, found: Discovery | Exception) -> None:
        """Have ``found`` found at the next look, which is now."""
        self.find.found, looks = found, self.find.looks
        await self.press("r")
        await self.until(lambda: self.find.looks > looks and not is_looking(self.app))
        await self.settle()

    def read(self, name: str = "items") -> str:
        widget = self.app.screen.query_one(f"#{name}", RowView)
        lines = (widget.render_line(y).text for y in range(widget.size.height))
        return "\n".join(line.rstrip() for line in lines).rstrip()

    @property
    def selected(self) -> str:
        """The selected row."""
        (found,) = (line for line in self.read().splitlines() if line.startswith("▸"))
        return found

    @property
    def left_with(self) -> Item | None:
        """What the app was left with."""
        assert not self.app.is_running or self.app._exit
        return self.app.chosen

    async def click(self, text: str, times: int = 1) -> None:
        rows = self.app.screen.query_one("#items", RowView)
        (y,) = (y for y, line in enumerate(self.read().splitlines()) if text in line)
        await self.pilot.click(rows, offset=(20, y), times=times)
        await self.settle()


@asynccontextmanager
async def opened(
    found: Discovery,
    size: tuple[int, int] = (100, 30),
    config: Config = DEFAULTS,
    wait: bool = True,
) -> AsyncIterator[User]:
    find = FakeFinder(found)
    if not wait:
        find.gate.clear()
    app = Picker(find, config)
    async with app.run_test(size=size) as pilot:
        user = User(app, pilot, find)
        await user.settle()
        if wait:
            await user.until(lambda: find.looks and not is_looking(app))
            await user.settle()
        yield user
        find.gate.set()


def text(line: Line) -> str:
    return "".join(piece.text for piece in line)


# A row


def test_a_row_says_who_runs_what_for_how_long_and_what_was_recorded() -> None:
    shown = text(row(job(41, kernels=1_260_000), False, PALETTE, 110))
    assert shown.split() == [
        *("41", "○", "job41", "python", "job41.py", "--lr", "0.1"),
        *("ada", "90", "s", "1", "1.26M", "recording"),
    ]


def test_what_records_right_now_has_a_light() -> None:
    assert "●" in text(row(job(41, active=True), False, PALETTE, 80))
    lit = text(row(job(41, WatchMethod.CPU, active=True), False, PALETTE, 80))
    assert "●" not in lit and "○" not in lit


def test_of_what_has_not_begun_nothing_is_counted() -> None:
    one = job(41, dumps=(), kernels=0)
    assert text(row(one, False, PALETTE, 110)).split()[-3:] == ["1", "nothing", "yet"]
    assert about(one).startswith("enter waits for its first CUDA call or NVTX range")
    assert refusal(one) == ""


def test_an_ended_recording_has_its_size_where_others_have_their_way() -> None:
    shown = text(row(ended(7), False, PALETTE, 100)).split()
    assert shown == ["7", "old.py", "2", "h", "1", "40.0k", "12.0", "MB"]


def test_a_command_that_repeats_the_name_is_shown_once() -> None:
    shown = text(row(job(41, name="vllm", command="/bin/vllm serve"), False, PALETTE, 100))
    assert shown.split()[2:5] == ["vllm", "serve", "ada"]


def test_a_program_is_shown_without_its_folder_and_on_one_line() -> None:
    command = "/a/very/long/way/to/bin/python -c import sys\nprint(1)"
    shown = text(row(job(41, name="", command=command), False, PALETTE, 120))
    assert " python -c import sys print(1) " in shown


def test_a_long_command_loses_its_middle() -> None:
    command = "python train.py " + "--x " * 200 + "--epochs 3"
    shown = text(row(job(41, command=command), False, PALETTE, 100))
    assert "python train.py" in shown and "…" in shown and "--epochs 3" in shown


@given(
    st.integers(60, 250), st.text(max_size=30), st.text(max_size=90), st.text(max_size=20),
    st.floats(0, 1e9), st.integers(0, 10**12), st.booleans(),
)  # fmt: skip
def test_no_name_leaves_its_row(
    width: int, name: str, command: str, user: str, age: float, kernels: int, selected: bool
) -> None:
    one = job(4_194_304, name=name, command=command, user=user, age=age, kernels=kernels)
    shown = row(one, selected, PALETTE, width)
    assert line_width(shown) == width
    assert text(shown).isprintable()
    assert line_width(heads(width)) == width


def test_columns_go_as_it_gets_narrow_the_way_last() -> None:
    shown = [text(heads(width)).split() for width in (110, 80, 68, 60, 50)]
    assert shown[0] == ["pid", "name", "user", "age", "procs", "kernels", "way"]
    assert shown[1] == ["pid", "name", "age", "procs", "kernels", "way"]
    assert shown[2] == ["pid", "name", "age", "kernels", "way"]
    assert shown[3] == ["pid", "name", "kernels", "way"]
    assert shown[4] == ["pid", "name", "way"]


def test_a_job_can_be_watched_as_the_best_of_its_processes_can() -> None:
    launcher, worker = candidate(1, WatchMethod.NONE), candidate(2, WatchMethod.DUMP)
    assert Job(launcher, (worker,)).method is WatchMethod.DUMP
    assert refusal(Job(launcher, (worker,))) == ""


def test_what_can_not_be_attached_to_says_why() -> None:
    denied = job(1, WatchMethod.CPU, denied="belongs to root")
    assert refusal(denied) == "belongs to root"
    assert refusal(job(1, dumps=(), denied="its dump has been removed")).startswith("its dump")
    assert refusal(job(1, WatchMethod.NONE)) == "not recorded: start it with flame record -- CMD"
    assert refusal(ended(1)) == refusal(job(1)) == refusal(job(1, WatchMethod.REMOTE)) == ""


def test_what_choosing_comes_to_is_said_of_every_kind() -> None:
    assert about(job(1, launches=5)).startswith("enter watches it: 5 launches")
    assert "no NVTX" in about(job(1, WatchMethod.REMOTE))
    assert "without the GPU" in about(job(1, WatchMethod.CPU))
    assert about(ended(1)) == "enter opens it: 1 dump, /tmp/flame"


@pytest.mark.parametrize("words", ["", "41", "JOB41", "ada recording", "lr 0.1"])
def test_a_filter_matches_any_column_word_by_word(words: str) -> None:
    assert matches(job(41), words)
    assert not matches(job(41), f"{words} nowhere")


def test_a_filter_finds_a_job_by_any_of_its_processes() -> None:
    assert matches(Job(candidate(1), (candidate(1), candidate(77))), "77")


def test_nothing_found_says_how_to_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / "libflameinject.so"
    library.touch()
    monkeypatch.setenv("FLAME_LIBRARY", str(library))
    said = "\n".join(text(line) for line in nothing(200))
    assert "flame record -- CMD" in said
    assert f"CUDA_INJECTION64_PATH={library}" in said
    monkeypatch.setenv("FLAME_LIBRARY", str(tmp_path / "nowhere"))
    said = "\n".join(text(line) for line in nothing(200))
    assert "no such library" in said and "CUDA_INJECTION64_PATH" not in said


# The list


async def test_it_is_there_before_anything_is_found() -> None:
    async with opened(Discovery((job(41),), ()), wait=False) as user:
        assert "looking for what runs here" in user.read()
        user.find.gate.set()
        await user.until(lambda: "job41" in user.read())


async def test_jobs_come_first_and_ended_recordings_below_their_title() -> None:
    async with opened(Discovery((job(41), job(42)), (ended(7),))) as user:
        lines = user.read().splitlines()
        assert [line.split()[-1] if line.split() else "" for line in lines] == [
            *("recording", "recording", "", "recordings", "MB")
        ]
        assert user.read("header").endswith("2 running · 1 ended")


async def test_it_looks_again_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picker, "PERIOD", 0.05)
    async with opened(NOTHING) as user:
        user.find.found = Discovery((job(41),), ())
        await user.until(lambda: "job41" in user.read())
        looks = user.find.looks
        await user.until(lambda: user.find.looks > looks + 1)


async def test_a_slow_look_is_not_begun_twice() -> None:
    async with opened(NOTHING, wait=False) as user:
        await user.press("r", "r", "r")
        user.find.gate.set()
        await user.until(lambda: user.find.looks)
        await user.settle()
        assert user.find.looks == 1


async def test_the_selection_stays_with_its_process() -> None:
    async with opened(Discovery((job(41), job(42)), ())) as user:
        await user.press("down")
        await user.renew(Discovery((job(43), job(41), job(42)), (ended(7),)))
        assert "job42" in user.selected
        await user.renew(Discovery((job(43),), (ended(7), ended(42))))
        assert user.selected.split()[1] == "42"
        await user.renew(Discovery((job(43),), ()))
        assert "job43" in user.selected


async def test_a_look_that_fails_says_so_and_keeps_what_was_there() -> None:
    async with opened(Discovery((job(41),), ())) as user:
        await user.renew(InputError("/proc: cannot be read: Permission denied"))
        assert "/proc: cannot be read" in user.read("about")
        assert "job41" in user.selected
        await user.renew(Discovery((job(41),), ()))
        assert "enter watches it" in user.read("about")


async def test_notes_stand_below_the_list_and_many_are_counted() -> None:
    async with opened(Discovery((job(41),), (), ("one \x1b[31mred",))) as user:
        assert user.read("notes") == " one ␛[31mred"
        await user.renew(Discovery((job(41),), (), tuple("abcde")))
        assert user.read("notes") == " a\n b\n and 3 more like these"
        await user.renew(Discovery((job(41),), ()))
        assert user.read("notes") == ""


async def test_a_long_list_scrolls_with_the_selection() -> None:
    jobs = tuple(job(1000 + number) for number in range(50))
    async with opened(Discovery(jobs, (ended(7),)), (60, 15)) as user:
        await user.press("end")
        assert "old.py" in user.selected
        assert "Ended recordings" in user.read()
        await user.press("up")
        assert "job1049" in user.selected
        await user.press("pageup", "k", "j")
        assert "job1039" in user.selected
        await user.press("g")
        assert "job1000" in user.selected


async def test_what_cannot_be_attached_to_says_why_and_enter_stays() -> None:
    async with opened(
        Discovery((job(41, WatchMethod.NONE, denied="belongs to root: use sudo"),), ())
    ) as user:
        assert user.read("about") == " belongs to root: use sudo"
        await user.press("enter")
        assert user.app.is_running


async def test_nothing_found_is_no_empty_table() -> None:
    async with opened(NOTHING, (60, 15)) as user:
        assert "flame record -- CMD" in user.read()
        await user.press("enter", "down", "up")
        assert user.app.is_running


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (250, 70), (20, 6)])
async def test_every_size_is_drawn(size: tuple[int, int]) -> None:
    async with opened(
        Discovery((job(41), job(42, WatchMethod.CPU)), (ended(7),), ("a note",)), size
    ) as user:
        assert "41" in user.selected
        await user.pilot.resize_terminal(100, 30)
        await user.settle()
        assert "job41" in user.selected and "enter watches it" in user.read("about")


async def test_in_ascii_the_selected_row_and_the_light_are_still_marked() -> None:
    found = Discovery((job(41, active=True),), ())
    async with opened(found, config=Config(ascii=True)) as user:
        drawn = "\n".join(
            "".join(segment.text for segment in line)
            for line in user.app.screen._compositor.render_strips()
        )
        assert ">      41 * job41" in drawn and drawn.isascii()


# Filtering


async def test_typing_filters_and_enter_takes_what_is_left() -> None:
    async with opened(Discovery((job(41), job(42)), (ended(7),))) as user:
        await user.press("slash", *"job42")
        assert user.read().splitlines() == [user.selected]
        assert user.read("header").endswith("1 of 2 running · 1 ended")
        await user.press("enter")
        assert user.left_with == job(42)


async def test_arrows_move_while_typing_and_letters_do_not() -> None:
    async with opened(Discovery((job(41), job(42)), ())) as user:
        await user.press("slash", "j", "down")
        assert "job42" in user.selected
        assert user.app.screen.query_one(Input).value == "j"


async def test_esc_takes_the_filter_back_before_it_leaves() -> None:
    async with opened(Discovery((job(41),), (ended(7),))) as user:
        await user.press("slash", *"zzz")
        assert "nothing matches 'zzz'" in user.read()
        await user.press("escape")
        assert "job41" in user.selected and "old.py" in user.read()
        await user.press("escape")
        assert user.left_with is None


async def test_a_filter_holds_for_what_comes() -> None:
    async with opened(Discovery((job(41), job(42)), ())) as user:
        await user.press("slash", *"42")
        user.find.found = Discovery((job(142), job(43), job(42)), ())
        user.app.screen.action_refresh()  # type: ignore[attr-defined]
        await user.until(lambda: "job142" in user.read())
        assert "job43" not in user.read() and "job42" in user.selected


# Leaving


async def test_enter_leaves_with_the_job() -> None:
    async with opened(Discovery((job(41), job(42)), ())) as user:
        await user.press("j", "enter")
        assert user.left_with == job(42)


async def test_enter_leaves_with_an_ended_recording() -> None:
    async with opened(Discovery((job(41),), (ended(7),))) as user:
        await user.press("G", "enter")
        assert user.left_with == ended(7)


@pytest.mark.parametrize("key", ["q", "escape", "ctrl+c", "ctrl+q"])
async def test_leaving_chooses_nothing(key: str) -> None:
    async with opened(Discovery((job(41),), ())) as user:
        await user.pilot.press(key)
        await user.pilot.pause()
        assert user.left_with is None


async def test_a_question_mark_explains_every_key_and_word() -> None:
    assert unexplained(bindings_of(PickerScreen, ListScreen)) == []
    async with opened(Discovery((job(41),), ())) as user:
        for key in ("question_mark", "f1"):
            await user.press(key)
            shown = user.read("page")
            for word in ("/", "enter", "esc", "recording", "nothing yet"):
                assert f"  {word}  " in shown
            await user.press("escape")
            assert isinstance(user.app.screen, PickerScreen) and "job41" in user.selected
        await user.press("/", "question_mark")
        assert isinstance(user.app.screen, PickerScreen)


async def test_a_click_selects_and_a_double_click_attaches() -> None:
    async with opened(Discovery((job(41), job(42), job(43)), ())) as user:
        await user.click("job42")
        assert "job42" in user.selected
        await user.click("job43", times=2)
        assert user.left_with == job(43)


async def test_a_click_beside_the_rows_does_nothing() -> None:
    async with opened(Discovery((job(41),), (ended(7),))) as user:
        await user.click("Ended recordings", times=2)
        await user.pilot.click("#items", offset=(5, 12))
        await user.settle()
        assert "job41" in user.selected


async def test_what_should_not_have_happened_reaches_the_caller() -> None:
    with pytest.raises(ValueError, match="a bug"):
        async with opened(NOTHING) as user:
            user.find.found = ValueError("a bug")
            await user.press("r")
            await user.until(lambda: user.app.crash)
    with pytest.raises(ValueError, match="a bug"):
        user.app.exit_code()


def test_a_terminal_that_cannot_draw_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(UsageError, match="TERM=dumb cannot show the app: flame attach --list"):
        run(None, LoadOptions(), Selection(), None, DEFAULTS, Start())


# Pictures

SHOWN = Discovery(
    (
        job(4123, kernels=1_260_000, launches=1_300_000, active=True, name="train.py"),
        job(77, kernels=3, name="vllm", command="vllm serve --model llama", age=90_000.0),
        job(901, WatchMethod.REMOTE, name="eval.py", age=50.0),
        job(902, WatchMethod.CPU, name="python3.11", command="python3.11 -m http.server"),
        job(
            903, WatchMethod.NONE, name="other", denied="belongs to eve: only eve and root may look"
        ),
    ),
    (ended(55),),
    ("12 processes of other users were not looked at",),
)


@pytest.mark.parametrize("size", [(60, 15), (120, 24)], ids=lambda size: "{}x{}".format(*size))
def test_picture(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    find = FakeFinder(SHOWN)

    async def play(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, Picker)
        user = User(pilot.app, pilot, find)
        await user.until(lambda: "vllm" in user.read())
        await user.press("down")

    assert snap_compare(Picker(find, DEFAULTS), terminal_size=size, run_before=play)
