"""Live memory over time: its peak, what failed, and who held it at a moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.projection.filters import At, Devices
from flame.tui.timeline.entering import entered
from flame.tui.timeline.memory_rows import FAILED, PEAK
from tests.support.writers.snapshotfile import STEP_US, SnapshotFile
from tests.tui.timeline.driver import User, open_timeline

STEP = STEP_US * 1_000


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """GPU0 holds 2 MB at its peak, for an instant among a hundred; then a request fails."""
    file = SnapshotFile(2)
    file.alloc(200_000, ("main", "weights"))
    for at in range(100):
        size = 1_800_000 if at == 40 else 100_000
        file.free(file.alloc(size, ("main", "spike" if at == 40 else "forward")))
    file.alloc(50_000, ("main", "other"), device=1)
    file.fail(3_000_000, 1_000)
    return file.write(tmp_path / "snapshot.pickle")


def moments(user: User) -> tuple[object, ...]:
    return user.shown.selection.where


async def test_a_peak_does_not_vanish_among_many_events(snapshot: Path) -> None:
    """It is far shorter than a cell, and as high as it was; the axis begins at 0."""
    async with open_timeline(snapshot, size=(60, 12)) as user:
        rows = user.lines()
        cell = rows[0].index(PEAK)
        assert "peak 2.00 MB" in rows[0]
        high = next(line for line in rows[1:] if "█" in line or "▁" in line)
        assert high[cell] not in " ░"
        assert high[cell + 1] in " ░"
        assert "╵0 " in "".join(user.lines("timeline-head"))


async def test_each_gpu_has_a_scale_of_its_own(snapshot: Path) -> None:
    async with open_timeline(snapshot, size=(100, 20)) as user:
        rows = user.lines()
        assert [row for row, line in enumerate(rows) if "GPU" in line] == [0, 9]
        assert "4.19 MB" in rows[1] and "2.10 MB" in rows[10]
        assert "0 B" in rows[8]
        assert any("░" in line for line in rows[1:9])


@pytest.mark.parametrize("height", [4, 7, 40])
async def test_it_is_as_high_as_there_is_room(snapshot: Path, height: int) -> None:
    """With no more than a line each the signs stand in the curve."""
    async with open_timeline(snapshot, size=(80, height)) as user:
        rows = [line for line in user.lines() if line.strip()]
        assert len(rows) == min(2 * max((height - 2) // 2, 1), 24)
        text = "".join(rows)
        assert PEAK in text and FAILED in text


async def test_keys_go_to_the_peak_and_to_what_failed(snapshot: Path) -> None:
    async with open_timeline(snapshot) as user:
        assert "T peak" in user.pane.hint()
        await user.does(lambda: user.pane.longest_gap(1))
        assert user.pane.hint().startswith("2.00 MB live of 4.19 MB reserved")
        assert "the peak" in user.pane.hint()
        await user.does(lambda: user.pane.gap(1))
        assert "3.00 MB could not be had" in user.pane.hint()
        assert await user.does(lambda: user.pane.gap(1)) == "no other failed request that way"
        await user.does(user.pane.down)
        assert await user.does(lambda: user.pane.gap(1)) == "no request failed here"


async def test_enter_shows_who_held_it(snapshot: Path) -> None:
    async with open_timeline(snapshot) as user:
        await user.does(lambda: user.pane.longest_gap(1))
        assert user.pane.enter_label() == "this moment"
        await user.does(user.pane.enter)
        [moment] = moments(user)
        assert isinstance(moment, At)
        assert user.shown.view.tree.total[0] == 2_000_000
        assert user.pane.enter_label() == ""
        await user.does(lambda: user.pane.across(1), user.pane.enter)
        assert user.shown.view.tree.total[0] == 300_000


async def test_a_click_shows_who_held_it(snapshot: Path) -> None:
    async with open_timeline(snapshot, size=(60, 12)) as user:
        cell = user.lines()[0].index(PEAK) - user.pane.rows.labels
        await user.click(2, cell)
        assert user.shown.view.tree.total[0] == 2_000_000


async def test_of_another_gpu_its_own_memory_is_shown(snapshot: Path) -> None:
    """Its GPU is filtered with the moment: else the fullest would be shown."""
    async with open_timeline(snapshot) as user:
        await user.does(user.pane.down, lambda: user.pane.across(1))
        device, moment = entered(user.shown, user.time)
        assert device == Devices((1,)) and isinstance(moment, At)
        user.app.take(replace(user.shown.selection, where=(device, moment)))
        await user.settle()
        assert user.shown.view.tree.total[0] == 50_000
        assert entered(user.shown, user.time) == ()


async def test_arrows_stop_at_the_most_of_each_cell(snapshot: Path) -> None:
    async with open_timeline(snapshot, size=(60, 12)) as user:
        seen = set()
        note: object = ""
        await user.does(user.pane.home)
        while not note:
            seen.add(user.pane.hint().split(" live")[0])
            note = await user.does(lambda: user.pane.across(1))
        assert note == "the last on this row"
        assert "2.00 MB" in seen


async def test_a_brush_filters_by_time(snapshot: Path) -> None:
    async with open_timeline(snapshot) as user:
        await user.does(lambda: user.pane.longest_gap(1), user.pane.mark, user.pane.enter)
        [window] = moments(user)
        assert window.end - window.begin == STEP  # type: ignore[attr-defined]
        assert user.shown.view.tree.total[0] == 2_000_000
