"""The timeline, driven by its keys' moves and by the mouse, in an app of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual import events

from flame.core.analysis.utilization import utilizations
from flame.core.projection.filters import Devices, Steps, Streams, Time
from flame.core.projection.selection import Selection
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.raster import Grid
from flame.core.units import format_percent
from flame.tui.session.query import Query
from flame.tui.timeline.header import axis, clock, period
from flame.tui.timeline.rows import TimelineRows
from flame.tui.timeline.viewport import SHORTEST
from flame.tui.views.pane import NOT_HERE
from tests.conftest import TRACES
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


async def test_a_filter_of_names_does_not_move_the_window(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(*[lambda: user.pane.across(1)] * 2, user.pane.enter)
        window = user.time.viewport.window
        assert user.selected == "short" and window != user.time.timeline.whole
        await user.does(lambda: user.app.take(Selection(where=(Streams((7,)),))))
        assert (user.time.viewport.window, user.selected) == (window, "short")


async def test_a_filter_by_time_is_the_window_and_esc_shows_the_whole(streams: Path) -> None:
    async with open_timeline(streams) as user:
        origin, whole = user.time.timeline.origin, user.time.timeline.whole
        await user.does(*[lambda: user.pane.closer(1)] * 3)
        before = user.time.viewport.window
        early = Time(origin + 1_000_000, origin + 5_000_000)
        await user.does(lambda: user.app.take(Selection(where=(early,))))
        assert user.time.viewport.window == TimeWindow(1_000_000, 5_000_000)
        # Nine of 10 µs and a little, at 2 ms.
        assert "4.00 ms of 92.2 ms · GPU0 busy 2.3 %" in user.lines("timeline-head")[0]
        assert await user.does(user.pane.escape) == ""
        assert user.time.viewport.window == whole
        assert "GPU0 busy 2.3 %" in user.lines("timeline-head")[0]  # of what the filter chooses
        assert await user.does(user.pane.escape) is None
        await user.does(user.pane.undo)
        assert user.time.viewport.window == TimeWindow(1_000_000, 5_000_000)
        await user.does(lambda: user.app.take(Selection()))
        assert user.time.viewport.window == before


async def test_zoomed_in_a_filter_by_time_esc_goes_back_to_it_first(streams: Path) -> None:
    async with open_timeline(streams) as user:
        origin = user.time.timeline.origin
        chosen = Time(origin, origin + 50_000_000)
        await user.does(lambda: user.app.take(Selection(where=(chosen,))))
        await user.does(lambda: user.pane.closer(1))
        assert user.time.viewport.window.length == 25_000_000
        await user.does(user.pane.escape)
        assert user.time.viewport.window == TimeWindow(0, 50_000_000)


async def test_a_filter_by_step_is_the_window() -> None:
    path = TRACES / "kineto" / "v100_old_categories.json.gz"
    if not path.exists():
        pytest.skip(f"no real trace {path}")
    async with open_timeline(path) as user:
        steps, origin = user.shown.profile.steps, user.time.timeline.origin
        assert steps is not None
        await user.does(lambda: user.app.take(Selection(where=(Steps(((6, 7),)),))))
        rows = (steps.number >= 6) & (steps.number <= 7)
        window = TimeWindow(int(steps.start[rows].min()), int(steps.end[rows].max()))
        assert user.time.viewport.window == window.moved(-origin)
        [found] = utilizations(user.shown.profile, (Steps(((6, 7),)),))
        assert f"busy {format_percent(found.busy, found.length)}" in user.lines("timeline-head")[0]


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


# The window


async def test_enter_zooms_to_the_selection_and_undo_comes_back(streams: Path) -> None:
    async with open_timeline(streams) as user:
        assert "nothing selected" in str(await user.does(user.pane.enter))
        whole = user.time.viewport.window
        await user.does(lambda: user.pane.across(1), user.pane.enter)
        low, high = user.time.timeline.window(user.time.cursor.item)
        zoomed = user.time.viewport.window
        assert zoomed.low <= low < high < zoomed.high and zoomed.length < 2 * (high - low)
        assert await user.does(user.pane.undo) and user.time.viewport.window == whole
        assert await user.does(lambda: user.pane.undo(forward=True))
        assert user.time.viewport.window == zoomed
        assert not await user.does(lambda: user.pane.undo(forward=True))


async def test_closer_and_farther_keep_the_selection_in_place(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(*[lambda: user.pane.across(1)] * 7)
        window = user.time.timeline.window(user.time.cursor.item)
        middle = (window.low + window.high) / 2
        before = user.time.viewport.grid.cell(middle)
        await user.does(*[lambda: user.pane.closer(1)] * 3)
        assert user.time.viewport.window.length == pytest.approx(
            user.time.timeline.whole.length / 8, abs=1
        )
        assert user.time.viewport.grid.cell(middle) == pytest.approx(before, abs=1)
        await user.does(*[lambda: user.pane.closer(1)] * 30)
        assert user.time.viewport.window.length == SHORTEST
        assert await user.does(lambda: user.pane.closer(1)) == "no closer than this"
        await user.does(user.pane.out)
        assert user.time.viewport.window.length == 2 * SHORTEST
        await user.does(*[lambda: user.pane.closer(-1)] * 40)
        assert user.time.viewport.window == user.time.timeline.whole
        assert await user.does(user.pane.out) == "this is all of it"


async def test_pan_moves_by_a_quarter_and_stops_at_the_ends(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(lambda: user.pane.closer(1))
        before = user.time.viewport.window
        await user.does(lambda: user.pane.pan(-1))
        assert user.time.viewport.window == TimeWindow(
            before.low - before.length // 4, before.high - before.length // 4
        )
        assert await user.does(*[lambda: user.pane.pan(-1)] * 9) == "the beginning of the trace"
        assert await user.does(*[lambda: user.pane.pan(1)] * 9) == "the end of the trace"


async def test_escape_shows_all_and_then_has_nothing_to_leave(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(lambda: user.pane.closer(1))
        assert await user.does(user.pane.escape) == ""
        assert user.time.viewport.window == user.time.timeline.whole
        assert await user.does(user.pane.escape) is None


async def test_empty_inner_rows_take_no_room(decode: Path) -> None:
    async with open_timeline(decode) as user:
        rows = len(user.time.lanes.rows)
        await user.does(user.pane.home, user.pane.enter)
        assert len(user.time.lanes.rows) < rows
        assert any("worker [100]" in line for line in user.lines())


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


# The brush


async def test_a_brush_by_keys_becomes_a_filter(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(lambda: user.pane.across(1), user.pane.mark)
        assert "enter filters" in user.pane.hint()
        await user.does(*[lambda: user.pane.across(1)] * 8, user.pane.mark)
        assert "brush" in user.lines("timeline-head")[0]
        brush = user.time.viewport.brush
        assert brush is not None and brush.window.low == 0
        await user.does(lambda: user.pane.across(1))
        assert user.time.viewport.brush == brush  # it has ended: arrows select again
        await user.does(user.pane.enter)
        origin = user.time.timeline.origin
        assert user.shown.selection.where == (Time(origin, origin + brush.window.high),)
        assert user.time.viewport.brush is None
        assert user.shown.view.tree.count[0] < 101


async def test_a_brush_without_a_selection_begins_in_the_middle(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(user.pane.mark)
        low, high = user.time.viewport.window
        brush = user.time.viewport.brush
        assert brush is not None and low < brush.window.low < (low + high) / 2 < brush.window.high


async def test_escape_leaves_the_brush_first(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(lambda: user.pane.closer(1), user.pane.mark)
        zoomed = user.time.viewport.window
        assert await user.does(user.pane.escape) == ""
        assert user.time.viewport.brush is None and user.time.viewport.window == zoomed


async def test_a_brush_reaches_beyond_the_window_and_stays_in_the_trace(streams: Path) -> None:
    async with open_timeline(streams) as user:
        await user.does(lambda: user.pane.across(1), user.pane.enter, user.pane.mark)
        await user.does(*[lambda: user.pane.across(1)] * 70)
        brush = user.time.viewport.brush
        assert brush is not None and brush.end > 1_000_000
        assert user.time.viewport.window.low <= brush.end <= user.time.viewport.window.high
        await user.does(*[lambda: user.pane.across(-1)] * 200)
        assert user.time.viewport.brush is not None and user.time.viewport.brush.end == 0


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


async def test_a_drag_brushes(streams: Path) -> None:
    async with open_timeline(streams) as user:
        left = user.pane.rows.labels
        await user.pilot.mouse_down(TimelineRows, offset=(left + 30, 0))
        await user.pilot.hover(TimelineRows, offset=(left + 20, 0))
        await user.pilot.mouse_up(TimelineRows, offset=(left + 20, 0))
        await user.settle()
        brush = user.time.viewport.brush
        assert brush is not None and not brush.moving
        assert user.time.viewport.grid.cells(brush.window) == (20, 31)
        assert "enter filters" in user.pane.hint() and not user.selected


async def test_ctrl_wheel_zooms_around_the_pointer_and_shift_wheel_pans(streams: Path) -> None:
    async with open_timeline(streams) as user:
        cell = 40
        under = user.time.viewport.grid.time(cell + 0.5)
        await user.wheel(events.MouseScrollUp, cell, "ctrl")
        assert user.time.viewport.window.length < user.time.timeline.whole.length
        assert user.time.viewport.grid.cell(under) == pytest.approx(cell + 0.5, abs=0.1)
        before = user.time.viewport.window
        await user.wheel(events.MouseScrollDown, cell, "shift")
        assert (
            user.time.viewport.window.low > before.low
            and user.time.viewport.window.length == before.length
        )
        await user.wheel(events.MouseScrollDown, cell, "ctrl")
        assert user.time.viewport.window.length > before.length


# The axis


@pytest.mark.parametrize(
    ("origin", "window", "base", "labels"),
    [
        (0, TimeWindow(0, 1_000), "", ["0 ns", "200 ns", "400 ns", "600 ns", "800 ns"]),
        (0, TimeWindow(0, 120_000_000_000), "", ["0 s", "20 s", "40 s", "60 s", "80 s", "100 s"]),
        (
            155_357_525_002,
            TimeWindow(0, 969_447_605),
            "155 s",
            ["+400 ms", "+600 ms", "+800 ms", "+1000 ms", "+1200 ms"],
        ),
        (
            155_357_525_002,
            TimeWindow(100_000_000, 100_200_000),
            "155.457 s",
            ["+550 µs", "+600 µs", "+650 µs", "+700 µs"],
        ),
        (
            -2_000_000,
            TimeWindow(0, 300_000_000),
            "",
            ["0 ms", "50 ms", "100 ms", "150 ms", "200 ms", "250 ms"],
        ),
    ],
)
def test_ticks_are_round_on_the_clock_of_the_trace(
    origin: int, window: TimeWindow, base: str, labels: list[str]
) -> None:
    found = axis(Grid(window, 100), origin)
    assert (found.base, [label for _, label in found.ticks]) == (base, labels)


def test_times_have_as_many_digits_as_tell_them_apart() -> None:
    assert clock(1_234_567_890, 1) == "1.234 567 890 s"
    assert clock(1_234_567_890, 1_000_000_000) == "1 s"
    assert clock(-20_000_000, 1_000_000) == "-0.020 s"
    assert period(TimeWindow(0, 20_000_000), 155_357_525_002) == "155.357 525 – 155.377 525 s"
