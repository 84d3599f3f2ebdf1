"""The app on a trace that was given as a URL: what is secret in it is copied, but never written."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.options.state import decode as read_state
from flame.tui.main.app import FlameApp
from tests.tui.conftest import USUAL, User, main_screen

pytestmark = pytest.mark.deep  # The app reads a trace each time.

URL = "https://me:s3cret@host/run.sqlite?sig=topsecret"


@asynccontextmanager
async def open_url(path: Path) -> AsyncIterator[User]:
    app = FlameApp(Inputs((path,), given=((path, URL),)), LoadOptions(), USUAL)
    async with app.run_test(size=(120, 40)) as pilot:
        user = User(app, pilot)
        await user.until(lambda: main_screen(app))
        await user.rest()
        yield user


async def test_a_copied_command_line_and_the_kept_state_open_it_again(
    decode: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with open_url(decode) as user:
        await user.press("C")
        assert URL in shlex.split(user.app.clipboard)
    assert read_state("").paths == [URL]


async def test_an_exported_report_has_nothing_secret(
    decode: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_url(decode) as user:
        user.screen.action_show_view("report")
        await user.rest()
        await user.press("e", "right", "enter")
        await user.until(lambda: user.app.screen is user.screen)
    (written,) = tmp_path.glob("*.report.json")
    text = written.read_text("utf-8")
    assert json.loads(text)["path"] == ["https://host/run.sqlite"]
    assert "secret" not in text and "s3cret" not in text
