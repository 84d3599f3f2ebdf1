"""The keys of the app on a recording that goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.keys import _character_to_key

from flame.core.errors import UsageError
from flame.core.live.window import ALL
from flame.core.options import LoadOptions
from flame.options.config import DEFAULTS, Config
from flame.tui.live.app import LiveApp
from tests.support.tiers import deep_except
from tests.tui.live.following import ATTN, BY_NAME, MLP, follow
from tests.tui.live.following import _in_a_hurry as _in_a_hurry
from tests.tui.recording import Recording

# Keys


async def test_live_keys_are_told_only_here(recording: Recording) -> None:
    async with follow(recording) as user:
        assert "p pause  W window  M mark  S save" in user.read("keys")
        await user.press("question_mark")
        told = user.read("page")
        assert "stand still, and go on" in told and "save the screen as SVG" not in told


async def test_live_keys_can_be_changed(recording: Recording) -> None:
    config = replace(DEFAULTS, keys={"pause": "ctrl+o", "metric_previous": "ctrl+l"})
    async with follow(recording, config=config) as user:
        await user.press("p")
        assert "● live" in user.read("recording")
        await user.press("ctrl+o")
        assert "paused" in user.read("recording")


def test_a_key_of_two_commands_is_refused_only_where_both_are(tmp_path: Path) -> None:
    from flame.tui.shell.keymap import keymap_of

    keys = {"pause": "W"}
    assert keymap_of(keys) == {}, "a trace cannot be paused"
    with pytest.raises(UsageError, match=r"\[keys\] has W for both pause and window"):
        config = Config(keys=keys)
        LiveApp(Recording(tmp_path), None, "x", LoadOptions(), BY_NAME, ALL, config)


@pytest.mark.deep
async def test_there_is_no_report_of_what_goes_on_and_that_is_said(recording: Recording) -> None:
    async with follow(recording) as user:
        await user.press("exclamation_mark")
        assert user.screen.pane_name == "report"
        assert "not of a recording that goes on" in " ".join(user.read("report-page").split())
        await user.press("down", "enter", "right", "y", "e", "escape", "s", "1")
        assert user.app.crash is None
        assert not user.screen.reports.busy


@pytest.mark.parametrize(
    "view", deep_except(["icicle"], ["icicle", "sandwich", "top", "timeline", "report"])
)
async def test_every_key_works_while_it_goes_on(recording: Recording, view: str) -> None:
    from flame.tui.shell.commands import LIVE_COMMANDS

    async with follow(recording) as user:
        user.screen.action_show_view(view)
        await user.press("down", "down")
        bound = [key for one in LIVE_COMMANDS for key in one.keys.split(",") if key]
        for key in bound:
            if key in ("q", "o", "C"):
                continue
            recording.run(ATTN, MLP)
            await user.press(_character_to_key(key) if len(key) == 1 else key)
            while user.app.screen is not user.screen:
                await user.press("escape")
        assert user.app.crash is None
