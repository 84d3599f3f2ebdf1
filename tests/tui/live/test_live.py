"""The app on a recording that goes on, as a user sees it: what follows, and what stays."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from flame.attach.watch import DumpWatch
from flame.core.live.feed import RecordingFeed
from flame.core.live.status import Rates, SourceState
from flame.core.live.sums import samples as live_samples
from flame.core.live.window import ALL, LAST_10, SECOND
from flame.core.options import LoadOptions
from flame.core.projection.labels import Naming
from flame.options.config import DEFAULTS
from flame.tui.live.app import LiveApp
from flame.tui.live.screen import LiveScreen
from flame.tui.toolkit.dialog.page import Page
from flame.tui.views.icicle import Icicle
from tests.tui.live.following import ATTN, BY_NAME, MLP, SOFTMAX, Viewer, follow
from tests.tui.live.following import _in_a_hurry as _in_a_hurry
from tests.tui.recording import MS, Recording

# Beginning and following


async def test_it_waits_until_something_has_been_recorded(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    async with follow(recording) as user:
        await user.until(lambda: "No CUDA call and no NVTX range yet" in user.read("loading"))
        recording.run(ATTN)
        await user.until(lambda: isinstance(user.app.screen, LiveScreen))
        await user.shows(MS)
    assert recording.closed


async def test_it_says_that_nothing_was_recorded(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.end()
    async with follow(recording) as user:
        await user.until(lambda: "It has ended, and no CUDA call" in user.read("loading"))
        await user.press("q")
        assert user.app._exit


async def test_it_says_that_a_process_has_ended_before_it_has_recorded_anything() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    gone = DumpWatch([process.pid])
    app = LiveApp(
        RecordingFeed(LoadOptions()), gone, "train.py", LoadOptions(), BY_NAME, ALL, DEFAULTS
    )
    async with app.run_test() as pilot:
        user = Viewer(app, pilot)
        await user.until(lambda: "It has ended, and no CUDA call" in user.read("loading"))
        assert "goes on" not in user.read("loading")
        app.worker.stop()


async def test_of_a_process_that_is_sampled_nothing_is_said_of_gpu_and_launches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording(tmp_path)
    status, unknown = recording.status, Rates(SECOND, np.zeros(0), np.zeros(0, np.int64))
    monkeypatch.setattr(recording, "status", lambda: replace(status(), rates=unknown))
    async with follow(recording) as user:
        await user.until(lambda: "No Python stack yet" in user.read("loading"))
        assert "CUDA" not in user.read("loading")
        recording.run(ATTN)
        await user.until(lambda: isinstance(user.app.screen, LiveScreen))
        await user.shows(MS)
        assert "live" in user.read("recording")
        assert "GPU" not in user.read("recording") and "launches" not in user.read("recording")


async def test_while_it_catches_up_nobody_says_that_nothing_ran(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.wait(20 * SECOND)
    status = recording.status
    late = partial(replace, behind=84_200_000, lag=12 * SECOND)
    monkeypatch.setattr(recording, "status", lambda: late(status()))
    async with follow(recording, LAST_10) as user:
        assert "Reading what was recorded before: 84.2 MB to go." in user.read("empty")
        monkeypatch.setattr(recording, "status", status)
        await user.until(lambda: "(last 10 s): nothing ran." in user.read("empty"))


async def test_what_runs_appears_and_nothing_moves(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("down", "down", "enter")
        assert (user.selected, user.zoomed) == ("attn", "attn")
        recording.run(("begin", "load"), ATTN, each=10 * MS)
        await user.shows(23 * MS)
        assert (user.selected, user.zoomed) == ("attn", "attn")
        assert "attn" in user.read("icicle").splitlines()[0]
        assert user.read("details").splitlines()[1] == "attn"
        await user.press("z")
        assert user.zoomed == "all"
        await user.press("Z")
        assert user.zoomed == "attn"


async def test_once_there_are_samples_the_footer_says_how_to_see_them(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_samples, "_PACE", 0)
    monkeypatch.setattr(live_samples, "_REST", 0)
    async with follow(recording) as user:
        await user.press("a")
        assert "no PC samples: --ncu, or --pc of record and attach" in user.read("status")
        assert "SASS" not in user.read("keys")
        recording.sample("gemm", 7)
        await user.until(lambda: "a SASS" in user.read("keys"))
        await user.press("a")
        assert "gemm+0x10" in user.read("sass-rows")


async def test_siblings_stand_by_name_and_the_header_says_where_not(recording: Recording) -> None:
    async with follow(recording) as user:
        recording.run(("a", "k"), ("z", "k"), ("z", "k"))
        await user.shows(6 * MS)
        names = [user.screen.view.name(node) for node in user.screen.view.tree.children(0)]
        assert names == ["a", "step", "z"]
        assert "by name" not in user.read("header")
        await user.press("s", "s")
        assert "by weight" in user.read("header")


async def test_an_update_keeps_what_the_user_has_chosen(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("m", "3", *"/gemm", "enter", "f")
        await user.press("escape")
        await user.press("i")
        metric, selected = user.screen.shown.metric.key, user.selected
        recording.run(ATTN)
        await user.shows(4)
        assert user.screen.shown.metric.key == metric == "count"
        assert user.screen.shown.selection.layout.inverted
        assert user.selected == selected == "gemm"
        found = user.screen.view.matches.result
        assert found is not None and found.matches.total == 3


async def test_with_the_ninth_sibling_they_are_one_and_stay_selected(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.run(*((f"step {number}", "gemm") for number in range(8)))
    folding = replace(BY_NAME, naming=Naming(numbers=True))
    async with follow(recording, selection=folding) as user:
        assert "step 7" in user.read("icicle")
        assert not user.screen.parts.folds.display
        await user.press("down", *["right"] * 7)
        assert user.selected == "step 7"
        recording.run(("step 8", "gemm"))
        await user.shows(9 * MS)
        assert user.selected == "step *"
        assert "step *  100.0 %" in user.read("icicle")
        assert user.read("folds").strip() == "× numbers folded #"
        await user.press("number_sign")
        await user.rest()
        assert "step 3" in user.read("icicle")


async def test_arrangements_stay_while_it_goes_on(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.shows(3 * MS)
        await user.press("L", "2")
        await user.until(lambda: user.levels == "nested,launch,kernel")
        recording.run(SOFTMAX)
        await user.shows(4 * MS)
        tree = user.screen.view.tree
        assert user.levels == "nested,launch,kernel"
        assert ("step", "attn") in {tree.names(node)[:2] for node in range(len(tree))}
        await user.press("L", "6")
        assert "this trace has no python and no native frames" in user.read("hint")
        await user.press("escape", "B")
        assert "no links from backward to forward operators" in user.read("status")


async def test_a_filter_holds_for_what_comes(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("down", "down", "A")
        await user.shows(2 * MS)
        recording.run(ATTN, MLP)
        await user.shows(3 * MS)
        await user.press("z")
        await user.shows(5 * MS)


async def test_what_is_typed_into_the_search_box_stays(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("slash", *"gem")
        recording.run(ATTN)
        await user.shows(4 * MS)
        box = user.screen.query_one("#search")
        assert box.has_focus and box.value == "gem"  # type: ignore[attr-defined]
        found = user.screen.shown.view.matches.result
        assert found is not None and found.matches.total == 3 * MS
        await user.press("m")
        assert box.value == "gemm"  # type: ignore[attr-defined]


async def test_what_the_status_line_says_stays(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("y")
        said = user.read("status")
        assert "copied" in said
        recording.run(ATTN)
        await user.shows(4 * MS)
        assert user.read("status") == said


async def test_nothing_changes_under_a_dialog(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("question_mark")
        assert isinstance(user.app.screen, Page)
        recording.run(ATTN)
        await user.stays(3 * MS)
        await user.press("escape")
        await user.shows(4 * MS)


async def test_the_facts_of_a_frame_stay_until_there_are_new_ones(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("down", "down")
        await user.until(lambda: "p50" in user.read("details"))
        for number in range(4, 8):
            recording.run(ATTN)
            await user.shows(number * MS)
            assert "p50" in user.read("details")
        await user.until(lambda: "count       6" in user.read("details"))


async def test_what_was_scrolled_out_of_sight_stays_there(tmp_path: Path) -> None:
    recording, deep = Recording(tmp_path), tuple(f"r{depth}" for depth in range(40))
    recording.run((*deep, "k"))
    async with follow(recording) as user:
        user.open_chains()
        await user.settle()
        await user.press("pagedown")
        icicle = user.screen.query_one(Icicle)
        top = icicle.scroll_offset.y
        assert top > 0
        recording.run((*deep, "k"))
        await user.shows(2 * MS)
        assert icicle.scroll_offset.y == top


async def test_a_chain_that_is_open_stays_open(tmp_path: Path) -> None:
    recording, deep = Recording(tmp_path), tuple(f"r{depth}" for depth in range(5))
    recording.run((*deep, "k"))
    async with follow(recording) as user:
        assert "r0 › r1 › r2 › r3 › r4" in user.read("icicle")
        await user.press("down", "E")
        for number, path in enumerate(((*deep, "k"), ("a", "k"), (*deep[:2], "b", "k")), 2):
            recording.run(path)
            await user.shows(number * MS)
            lines = user.read("icicle").splitlines()
            assert [any(f"▏{one}  " in line for line in lines) for one in deep] == [True] * 5
        await user.press("E")
        assert "r2 › r3 › r4" in user.read("icicle")
        recording.run((*deep, "k"))
        await user.shows(5 * MS)
        assert "r2 › r3 › r4" in user.read("icicle")


# The end


async def test_the_end_is_told_and_what_is_there_stays(recording: Recording) -> None:
    async with follow(recording) as user:
        recording.run(ATTN)
        recording.end(SourceState.KILLED)
        await user.until(lambda: "killed" in user.read("recording"))
        await user.shows(4 * MS)
        assert "ended without saying so" in user.read("status")
        await user.press("p")
        assert "has ended: nothing moves" in user.read("status")
        await user.press("M")
        assert "has ended: nothing comes" in user.read("status")
        assert "killed  all" in user.read("recording")
        await user.press("down", "down", "x")
        assert user.screen.pane_name == "sandwich"


async def test_an_error_of_the_feed_ends_the_app(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(budget: float) -> bool:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        async with follow(recording) as user:
            monkeypatch.setattr(recording, "update", broken)
            await user.until(lambda: user.app.crash)
            raise user.app.crash or AssertionError
