"""The picker: a list that renews itself, and what it is left with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from flame.attach.discover.model import Discovery, WatchMethod
from flame.core.errors import InputError, UsageError
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.options.config import DEFAULTS, Config
from flame.tui.attach import picker
from flame.tui.attach.picker import Picker, PickerScreen
from flame.tui.attach.run import run
from flame.tui.shell.start import Start
from flame.tui.toolkit.dialog.page import bindings_of
from flame.tui.toolkit.list_screen import ListScreen
from tests.tui.attach.jobs import ended, job
from tests.tui.attach.picking import NOTHING, FakeFinder, User, opened
from tests.tui.explained_keys import unexplained

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
