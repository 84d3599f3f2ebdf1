"""The app keeps a large trace once it is shown, and opens it from the cache the next time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flame.core.loading import many
from flame.core.options import LoadOptions, Progress
from flame.core.reopening import profile_cache
from flame.options.config import Config
from tests.core.reopening.conftest import any_size, written
from tests.support.waiting import PATIENCE
from tests.tui.conftest import User, open_app


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where traces of any size are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(profile_cache, "ProfileCache", any_size)
    return tmp_path / "cache" / "flame" / "profiles"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return written(tmp_path / "trace.sqlite")


async def keep(trace: Path, home: Path) -> str:
    """Show the trace until it is kept; what the icicle shows."""
    async with open_app(trace) as user:
        await user.rest()
        await user.until(lambda: home.exists() and list(home.glob("*.profile")))
        return user.read("icicle")


def refuse(path: Path, options: LoadOptions, progress: Progress) -> None:
    raise AssertionError(f"{path} has been loaded")


async def test_a_trace_is_kept_and_opened_from_the_cache(
    trace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await keep(trace, home)
    [kept] = home.iterdir()
    before = kept.stat().st_ino
    monkeypatch.setattr(many, "load_file", refuse)
    async with open_app(trace) as user:
        await user.rest()
        assert user.read("icicle") == first
        assert "steps" in user.read("details")
        await user.press("tab", "tab")
    assert kept.stat().st_ino == before, "it has been written again"


async def test_a_setting_keeps_nothing(trace: Path, home: Path) -> None:
    async with open_app(trace, config=Config(cache=False)) as user:
        await user.rest()
        await user.settle()
        user.app._keeper.join(PATIENCE)  # type: ignore[attr-defined]
    assert not home.exists()


async def change(user: User, trace: Path) -> None:
    """Change the trace behind the back of the app."""
    await user.rest()
    os.utime(trace)


CHANGED = "has changed since it was opened"


async def test_metrics_say_why_one_of_them_is_not_known(trace: Path, home: Path) -> None:
    await keep(trace, home)
    async with open_app(trace, (250, 40)) as user:
        await change(user, trace)
        await user.press("m")
        await user.until(lambda: CHANGED in user.read("hint"))
        assert "4.00 µs" not in user.read("dialog") and " 41 " in user.read("dialog")
        await user.press("8")
        await user.until(lambda: CHANGED in user.read("status"))
        assert user.screen.shown.metric.key == "gpu"


async def test_the_timeline_says_why_there_is_none(trace: Path, home: Path) -> None:
    await keep(trace, home)
    async with open_app(trace, (250, 40)) as user:
        await change(user, trace)
        await user.press("tab", "tab", "tab")
        await user.until(lambda: CHANGED in user.read("timeline-head"))
        await user.press("T")
        assert CHANGED in user.read("status")
        await user.press("tab")
        await user.until(lambda: CHANGED in user.read("report-page"))
        await user.press("tab")
        assert "gemm" in user.read("icicle")


async def test_a_trace_from_the_cache_has_all_views(trace: Path, home: Path) -> None:
    await keep(trace, home)
    async with open_app(trace) as user:
        await user.rest()
        await user.press("tab", "tab", "tab")
        await user.until(lambda: "GPU0 busy" in user.read("timeline-head"))
        assert "step 0" in user.read("timeline-rows")
        await user.press("m", "8")
        await user.until(lambda: user.screen.shown.metric.key == "host")
