"""The window of the timeline: filters by time, zooming, panning, the brush, and the axis."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from flame.core.analysis.utilization import utilizations
from flame.core.projection.filters import Steps, Streams, Time
from flame.core.projection.selection import Selection
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.raster import Grid
from flame.core.units import format_percent
from flame.tui.timeline.header import axis, clock, period
from flame.tui.timeline.rows import TimelineRows
from flame.tui.timeline.viewport import SHORTEST
from tests.conftest import TRACES
from tests.tui.timeline.driver import open_timeline


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
