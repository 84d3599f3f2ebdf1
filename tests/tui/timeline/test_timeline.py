"""The timeline in an app of its own: what is drawn, and what its keys and the mouse select."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.projection.filters import Devices, Streams
from flame.core.projection.selection import Selection
from flame.tui.session.query import Query
from flame.tui.timeline.header import axis
from flame.tui.views.pane import NOT_HERE
from tests.support.writers.nsysfile import NsysFile
from tests.tui import traces
from tests.tui.timeline.driver import open_timeline

# What is drawn


async def test_ranges_stand_above_gpus_with_names_and_shares(decode: Path) -> None:
    async with open_timeline(decode) as user:
        first, *_ = lines = user.lines()
        assert "worker [100]" in first and "▏generate" in first
        gpu = lines[user.row("GPU0 stream 7")]
        assert "▏gemm" in gpu
        assert user.row("GPU0 stream 7") > user.row("worker [100]")
        summary, axis_line = user.lines("timeline-head")
        assert "GPU0 busy 48.9 %" in summary and "930 µs" in summary
        assert "╵200 µs" in axis_line


async def test_the_busiest_gpu_row_is_selected_and_in_sight_at_first(tmp_path: Path) -> None:
    async with open_timeline(traces.deep(tmp_path / "deep.sqlite"), (100, 12)) as user:
        assert any(line.startswith("▸GPU0 stream 7") for line in user.lines())


async def test_cells_are_filled_by_how_busy_they_are(streams: Path) -> None:
    async with open_timeline(streams) as user:
        row = user.lines()[user.row("stream 7")][user.pane.rows.labels :]
        assert row[:3] == "█▁▁" and row[3:10].isspace()


async def test_what_filters_leave_out_is_quiet(streams: Path) -> None:
    async with open_timeline(streams) as user:
        row = user.row("stream 9")
        bright = user.style(row, user.cell(53))
        await user.does(lambda: user.app.take(Selection(where=(Streams((7,)),))))
        assert user.style(row, user.cell(53)) != bright
        assert "▏other" in user.lines()[row]


async def test_a_search_makes_what_it_finds_bright(streams: Path) -> None:
    async with open_timeline(streams) as user:
        row, match = user.row("stream 9"), user.pane.rows.look.palette.match
        await user.does(lambda: user.shown.view.search(Query("other")))
        assert user.style(row, user.cell(53)) == match
        await user.does(lambda: user.shown.view.search(Query("long")))
        assert user.style(row, user.cell(53)) != match


async def test_hostile_names_do_not_leave_their_cells(tmp_path: Path) -> None:
    async with open_timeline(traces.hostile(tmp_path / "hostile.sqlite"), (80, 12)) as user:
        for line in user.lines():
            assert "\x1b" not in line and "\n" not in line
        for y in range(user.pane.rows.size.height):
            assert user.pane.rows.render_line(y).cell_length == 80


@pytest.mark.parametrize("make", [traces.nothing, traces.host_only, traces.unlaunched])
async def test_small_traces_can_be_walked_through(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    async with open_timeline(make(tmp_path / "t.sqlite"), (60, 12)) as user:
        pane = user.pane
        moves: list[Callable[[], object]] = [pane.up, pane.down, pane.home, pane.enter, pane.mark]
        moves += [lambda: pane.across(1), lambda: pane.across(-1), lambda: pane.match(1)]
        moves += [pane.escape, lambda: pane.closer(1), pane.out, lambda: pane.pan(1), pane.escape]
        await user.does(*moves)
        assert user.time.viewport.window == user.time.timeline.whole
        assert pane.sort(1) == NOT_HERE


async def test_a_resize_keeps_the_axis_above_its_rows(streams: Path) -> None:
    async with open_timeline(streams, (120, 20)) as user:
        await user.pilot.resize_terminal(70, 15)
        await user.settle()
        rows = user.pane.rows
        assert rows.labels + rows.cells == rows.inner.width
        assert user.time.viewport.width == rows.cells
        first = user.lines("timeline-head")[1].index("╵")
        ticks = axis(user.time.viewport.grid, user.time.timeline.origin).ticks
        assert first == rows.labels + ticks[0][0]


# Moves


async def test_right_and_left_select_along_the_row_and_in_the_tree(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(lambda: user.pane.across(1))
        assert user.selected == user.in_tree == "long_0"
        await user.does(lambda: user.pane.across(1))
        assert user.selected == user.in_tree == "short"
        await user.does(lambda: user.pane.across(1))
        assert user.selected == "long_1"
        await user.does(lambda: user.pane.across(-1), lambda: user.pane.across(-1))
        assert user.selected == "long_0"
        assert await user.does(lambda: user.pane.across(-1)) == "the first on this row"


async def test_dense_cells_are_walked_by_their_longest(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(lambda: user.pane.across(1), lambda: user.pane.across(1))
        window = user.time.timeline.window(user.time.cursor.item)
        assert window.length == 10_008  # the last of nine is the longest


async def test_zoomed_in_every_one_is_a_stop(streams: Path) -> None:
    async with open_timeline(streams) as user:
        right = [lambda: user.pane.across(1)]
        await user.does(*right, *right, *[lambda: user.pane.closer(1)] * 8)
        before = user.time.cursor.item
        await user.does(lambda: user.pane.across(-1))
        assert user.time.cursor.item == before - 1
        await user.does(*right, *right)
        assert user.selected == "long_1"
        low, high = user.time.timeline.window(user.time.cursor.item)
        assert user.time.viewport.window.low < high and user.time.viewport.window.high > low


async def test_up_and_down_change_the_row_at_the_same_time(decode: Path) -> None:
    async with open_timeline(decode) as user:
        await user.does(user.pane.home)
        assert user.selected == user.in_tree == "flash_fwd_kernel"
        kernel, row = user.time.cursor.item, user.time.lanes.row
        await user.does(user.pane.up)
        assert user.time.lanes.row == row - 1
        await user.does(user.pane.down)
        assert user.time.cursor.item == kernel and user.in_tree == "flash_fwd_kernel"
        assert await user.does(*[user.pane.up] * 6) == "the first row"
        assert await user.does(*[user.pane.down] * 6) == "the last row"


async def test_a_range_selects_its_own_place_in_the_tree(decode: Path) -> None:
    async with open_timeline(decode) as user:
        await user.does(lambda: user.pane.page(-1), user.pane.home)
        assert user.selected == user.in_tree == "generate"
        await user.does(user.pane.enter, user.pane.down, lambda: user.pane.end())
        assert user.selected == user.in_tree == "sampler"
        await user.does(user.pane.home, user.pane.down)
        view = user.shown.view
        assert view.tree.names(view.cursor.node)[-2] == "model.layers.0"
        assert user.selected == user.in_tree


async def test_home_and_end_select_the_first_and_last(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(lambda: user.pane.end())
        assert user.time.cursor.item == user.time.timeline.lanes[0].last - 1
        await user.does(user.pane.home)
        assert user.time.cursor.item == 0


async def test_what_was_selected_elsewhere_is_selected_here(streams: Path) -> None:
    async with open_timeline(streams) as user:
        tree = user.shown.view.tree
        node = next(node for node in range(len(tree)) if tree.name(node) == "long_7")
        await user.does(lambda: user.shown.view.cursor.select(node))
        assert user.selected == "long_7"


async def test_the_selection_survives_other_levels_and_filters(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(lambda: user.pane.across(1))
        item, window = user.time.cursor.item, user.time.viewport.window
        await user.does(lambda: user.app.take(Selection(levels=("stream", "kernel"))))
        assert (user.time.cursor.item, user.time.viewport.window) == (item, window)
        await user.does(lambda: user.app.take(Selection(levels=("stream",))))
        assert user.time.cursor.item == item and user.in_tree == "stream 7"


async def test_only_gpus_that_filters_leave_are_said_to_be_busy(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        for device in (0, 1):
            trace.gpu(device, "NVIDIA H100")
            trace.kernel("gemm", 0, 1_000_000, corr=None, device=device)
    async with open_timeline(tmp_path / "t.sqlite") as user:
        assert "GPU0 busy" in user.lines("timeline-head")[0]
        await user.does(lambda: user.app.take(Selection(where=(Devices((1,)),))))
        head = user.lines("timeline-head")[0]
        assert "GPU1 busy 100.0 %" in head and "GPU0" not in head


# Searching


async def test_n_goes_from_match_to_match(streams: Path) -> None:
    async with open_timeline(streams) as user:
        assert await user.does(lambda: user.pane.match(1)) == "no match in this view"
        await user.does(lambda: user.shown.view.search(Query("long")), lambda: user.pane.closer(1))
        notes = [await user.does(lambda: user.pane.match(1)) for _ in range(3)]
        assert notes[0] == "match 1 of 10 over time" and user.selected == "long_2"
        await user.does(lambda: user.pane.match(-1))
        assert user.selected == user.in_tree == "long_1"
        await user.does(*[lambda: user.pane.match(-1)] * 2)
        assert user.selected == "long_9"


# The mouse


async def test_a_click_selects_and_a_double_click_zooms(streams: Path) -> None:
    async with open_timeline(streams) as user:
        row = user.row("stream 9")
        cell = user.cell(53)
        await user.click(row, cell)
        assert user.selected == user.in_tree == "other"
        assert user.style(row, cell) == user.pane.rows.look.palette.cursor
        await user.click(row, cell, times=2)
        assert user.time.viewport.window.length < user.time.timeline.whole.length
        await user.click(user.row("stream 7"), -3)
        assert not user.selected and user.time.lanes.row == user.row("stream 7")
