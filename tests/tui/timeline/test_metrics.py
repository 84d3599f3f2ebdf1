"""GPU metrics over time: a row for each, of means that are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flame.core.timeline.lanes import Track
from flame.tui.timeline.metric_rows import UNKNOWN, means_of_cells
from tests.support.writers.nsysfile import NsysFile
from tests.tui.timeline.driver import User, open_timeline

SM, CLOCK = "SMs Active [Throughput %]", "GPC Clock Frequency [MHz]"
MS = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """100 ms of a kernel, sampled every 1 ms up to 50 ms; then not; at the end nothing ran."""
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.gpu(0, "H100", pid=100)
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=1)
        file.kernel("gemm", 10, 100 * MS, corr=1)
        for at in range(-5, 51):
            file.metric(CLOCK, at * MS, 1_710_000_000)
            file.metric(SM, at * MS, 100 if at <= 25 else 0)
        for at in range(90, 101):
            file.metric(SM, at * MS, 50)
        file.metric(SM, 5, 3, gpu=7)
    return tmp_path / "trace.sqlite"


async def select(user: User, label: str) -> None:
    """Go to the row called so."""
    lanes = user.time.timeline.lanes
    number = next(at for at, lane in enumerate(lanes) if label in lane.label)
    for _ in range(len(lanes)):
        if user.time.lanes.lane == number:
            return
        await user.does(lambda: user.pane.down())
    raise AssertionError(label)


async def test_each_metric_of_each_gpu_has_a_row(path: Path) -> None:
    async with open_timeline(path, size=(100, 20)) as user:
        await user.until(lambda: user.time.timeline.metrics)
        await user.settle()
        rows = [lane for lane in user.time.timeline.lanes if lane.track == Track.METRIC]
        assert [lane.label for lane in rows] == [
            "GPU0 SMs Active",
            "GPU0 GPC Clock Frequency",
            "GPU7 SMs Active",
        ]
        assert user.time.timeline.lanes[-len(rows) :] == tuple(rows)
        line = user.lines()[user.row("GPU0 SMs Active")]
        cells = line[user.pane.rows.labels :]
        assert cells[user.cell(10)] == "█" and cells[user.cell(40)] == "▁"
        assert cells[user.cell(70)] == UNKNOWN and cells[user.cell(95)] == "▄"
        assert "1,710" in user.lines()[user.row("GPU0 GPC")]


async def test_a_selected_row_says_what_its_cells_are(path: Path) -> None:
    async with open_timeline(path, size=(100, 20)) as user:
        await user.until(lambda: user.time.timeline.metrics)
        await user.settle()
        await select(user, "GPU0 SMs")
        hint = user.pane.hint()
        assert f"mean {(2_500 + 500) / 60:.1f} %" in hint and "cells are means" in hint
        await user.does(lambda: user.pane.across(1), lambda: user.pane.enter())
        await select(user, "GPU7")
        assert "not sampled" in user.pane.hint() and "nothing ran on this GPU" in user.pane.hint()


async def test_cells_are_means_by_time_of_what_is_known(path: Path) -> None:
    async with open_timeline(path, size=(100, 20)) as user:
        await user.until(lambda: user.time.timeline.metrics)
        await user.settle()
        timeline, grid = user.time.timeline, user.time.viewport.grid
        metric = next(one for one in timeline.metrics if one.name == SM and one.device == 0)
        found = means_of_cells(metric, grid, timeline.origin)
        for cell, mean in enumerate(found.tolist()):
            times = np.linspace(grid.time(cell), grid.time(cell + 1), 400, endpoint=False)
            times = times + timeline.origin
            values = [
                100 if at < 25 * MS else 0 if at < 50 * MS else 50
                for at in times.tolist()
                if at < 50 * MS or at >= 90 * MS
            ]
            assert np.isnan(mean) if not values else mean == pytest.approx(np.mean(values), abs=1)
