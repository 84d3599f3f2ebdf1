"""The pane tells of the frame on which the cursor rests, and of no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.tui.details import collector, details_pane
from flame.tui.details.compact import LINES
from flame.tui.details.details_pane import DetailsPane
from flame.tui.details.pane import details, header
from flame.tui.toolkit.lines import Line, palette_of
from tests.support.tiers import deep_except
from tests.tui.conftest import User, open_app

NEVER = 1000.0
SIZES = [(120, 40), (200, 50), (80, 24), (80, 40)]


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A cursor that never rests, until it is undone."""
    monkeypatch.setattr(details_pane, "REST", NEVER)
    return monkeypatch


def pane(user: User) -> DetailsPane:
    return user.screen.parts.details


async def press(user: User, *keys: str) -> None:
    """Press ``keys`` without waiting for the details."""
    for key in keys:
        await user.pilot.press(key)


def shown(user: User) -> list[str]:
    return user.read("details").splitlines()


def texts(lines: list[Line]) -> list[str]:
    return ["".join(piece.text for piece in line).rstrip() for line in lines]


def whole(user: User) -> list[str]:
    """What there is to say of the selected frame, as it is written."""
    view, one = user.screen.view, pane(user)
    facts, width = one.collector.facts, one.inner.width
    return texts(details(view, palette_of(one), width, facts).lines)


@pytest.mark.parametrize("size", deep_except(SIZES[:1], SIZES[:2]))
async def test_the_first_lines_are_of_the_selected_frame_at_once(
    decode: Path, size: tuple[int, int], moving: pytest.MonkeyPatch
) -> None:
    async with open_app(decode, size) as user:
        moving.setattr(details_pane, "REST", 0.001)
        await user.press("down", "down")
        await user.rest()
        below = shown(user)
        moving.setattr(details_pane, "REST", NEVER)
        await press(user, "down")
        first = texts(header(user.screen.view, palette_of(pane(user)), pane(user).inner.width))
        assert user.selected in " ".join(first)
        lines = shown(user)
        assert all(line.startswith(one) for line, one in zip(lines, first, strict=False))
        assert lines[len(first) + 1 :] == below[len(first) + 1 :]


async def test_the_views_show_the_selected_frame_first(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down")
        before = pane(user)._composed
        user.screen.pane.down()
        user.screen._follow()
        assert pane(user)._composed is before
        await user.until(lambda: pane(user)._composed is not before)
        assert user.selected in " ".join(shown(user))


async def test_where_the_picture_is_sent_at_once_the_details_are_in_it(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down")
        before = pane(user)._composed
        user.app.hold()
        user.screen.pane.down()
        user.screen._follow()
        assert pane(user)._composed is not before


@pytest.mark.parametrize("size", deep_except(SIZES[:1], SIZES))
async def test_nothing_is_left_of_frames_that_a_held_key_passes(
    decode: Path, size: tuple[int, int], moving: pytest.MonkeyPatch
) -> None:
    async with open_app(decode, size) as user:
        moving.setattr(details_pane, "REST", 0.001)
        await user.press("down")
        await user.rest()
        moving.setattr(details_pane, "REST", NEVER)
        await press(user, "down", "down")
        assert user.read("details").strip() == "…"
        composed = pane(user)._composed
        await press(user, "down", "up", "down")
        assert pane(user)._composed is composed


async def test_what_a_held_key_passes_is_not_worked_out(
    decode: Path, moving: pytest.MonkeyPatch
) -> None:
    async with open_app(decode) as user:
        moving.setattr(details_pane, "REST", 0.001)
        await user.rest()
        moving.setattr(details_pane, "REST", NEVER)
        moving.setattr(collector, "_collect", None)
        await press(user, *"jjjk")
        assert pane(user).waits
        assert not pane(user).collector.busy


@pytest.mark.parametrize("size", deep_except(SIZES[1:2], SIZES))
async def test_once_the_cursor_rests_all_is_of_the_selected_frame(
    decode: Path, size: tuple[int, int]
) -> None:
    async with open_app(decode, size) as user:
        for keys in ("j", "jj", "lj", "kkjj", "d", "dj", "jz", "jjk", "k", "1", "j1k"):
            await press(user, *keys)
            await user.rest()
            if not pane(user).inner.width:
                continue
            lines, expected = shown(user), whole(user)
            if pane(user).inner.height <= LINES:  # what says it in short
                assert user.selected in lines[0] or not user.screen.view.cursor.node
                continue
            lines[0] = lines[0].removesuffix("[ ] more").rstrip()
            missing = len(lines) - len(expected)
            assert lines == [*expected, *missing * [""]][: len(lines)]


async def test_of_a_frame_seen_before_all_is_there_at_once(
    decode: Path, moving: pytest.MonkeyPatch
) -> None:
    async with open_app(decode) as user:
        moving.setattr(details_pane, "REST", 0.001)
        await user.rest()
        await user.press("down")
        await user.rest()
        before = shown(user)
        await user.press("down")
        await user.rest()
        moving.setattr(details_pane, "REST", NEVER)
        await press(user, "up")
        assert shown(user) == before


async def test_all_is_drawn_as_soon_as_the_facts_are_there(
    decode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details_pane, "TIMEOUT", NEVER)
    async with open_app(decode) as user:
        await press(user, "down")
        await user.rest()
        expected = whole(user)
        assert len(expected) > 5
        assert shown(user)[1 : len(expected)] == expected[1:]
