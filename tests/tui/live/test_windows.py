"""The app on a recording that goes on: its windows, marks and pauses."""

from __future__ import annotations

from flame.core.live.window import LAST_10, SECOND
from tests.tui.live.following import ATTN, MLP, follow
from tests.tui.live.following import _in_a_hurry as _in_a_hurry
from tests.tui.recording import MS, Recording

# Windows


async def test_an_empty_window_keeps_the_place(recording: Recording) -> None:
    async with follow(recording, LAST_10) as user:
        await user.press("down", "down", "enter")
        recording.wait(20 * SECOND)
        await user.until(lambda: user.screen.shown.empty)
        await user.settle()
        assert "nothing ran" in user.read("empty") and "last 10 s" in user.read("empty")
        assert user.levels == "nvtx,kernel"
        recording.run(MLP)
        await user.shows(MS)
        assert user.zoomed == "step"
        recording.run(ATTN)
        await user.shows(2 * MS)
        assert (user.selected, user.zoomed) == ("attn", "attn")


async def test_whoever_goes_elsewhere_is_not_taken_back(recording: Recording) -> None:
    async with follow(recording, LAST_10) as user:
        await user.press("down", "down", "enter")
        recording.wait(20 * SECOND)
        recording.run(MLP)
        await user.shows(MS)
        await user.press("escape")
        recording.run(ATTN)
        await user.shows(2 * MS)
        assert user.zoomed == "all"


async def test_another_metric_may_be_chosen_while_nothing_runs(recording: Recording) -> None:
    async with follow(recording, LAST_10) as user:
        recording.wait(20 * SECOND)
        await user.until(lambda: user.screen.shown.empty)
        await user.press("ctrl+n")
        recording.run(ATTN, MLP)
        await user.until(lambda: not user.screen.shown.empty)
        assert user.screen.shown.metric.key != "gpu"


async def test_windows_follow_one_another(recording: Recording) -> None:
    async with follow(recording, LAST_10) as user:
        recording.wait(20 * SECOND)
        recording.run(ATTN)
        await user.shows(MS)
        assert "last 10 s" in user.read("recording")
        await user.press("W")
        await user.shows(4 * MS)
        assert "last 60 s" in user.read("recording")
        await user.press("W")
        assert " all ▾" in user.read("recording")
        await user.press("W")
        assert "last 10 s" in user.read("recording")
        await user.shows(MS)


async def test_a_mark_shows_what_runs_from_now_on(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("M")
        assert "marked" in user.read("status")
        await user.until(lambda: user.screen.shown.empty)
        recording.run(MLP)
        await user.shows(MS)
        assert "since mark" in user.read("recording")
        await user.press("W", "W", "W")
        await user.shows(4 * MS)


# Standing still


async def test_a_paused_picture_stands_still_and_can_be_worked_with(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("p")
        assert "paused · 0:00 behind" in user.read("recording")
        recording.run(ATTN)
        await user.stays(3 * MS)
        await user.press("ctrl+n")
        assert user.total == 3
        await user.press("z", "down", "down", "enter")
        assert user.zoomed == "attn"
        await user.press("p")
        await user.shows(4 * MS)
        assert "● live" in user.read("recording")
        assert user.zoomed == "attn"


async def test_windows_of_a_paused_picture_are_those_of_that_moment(recording: Recording) -> None:
    recording.wait(20 * SECOND)
    recording.run(ATTN)
    async with follow(recording, LAST_10) as user:
        await user.press("p")
        await user.stays(MS)
        recording.run(MLP)
        await user.press("W", "W")
        await user.shows(4 * MS)
        await user.stays(4 * MS)
        await user.press("p")
        await user.shows(5 * MS)


async def test_a_mark_in_a_pause_counts_from_that_moment(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("p")
        recording.run(ATTN)
        await user.stays(3 * MS)
        await user.press("M")
        await user.until(lambda: recording.marks)  # The next update takes it.
        recording.run(MLP, MLP)
        await user.stays(3 * MS)
        await user.press("p", "W")
        await user.shows(2 * MS)
