"""Lanes of what held threads up: their rows, colours and words, and that they come last."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from flame.core.model.calls import StateKind
from flame.core.projection.filters import Time
from flame.core.projection.selection import Selection
from flame.core.timeline.lanes import STATES
from flame.tui.session.query import Query
from flame.tui.timeline import layouts
from flame.tui.timeline.prepare import Reasons, find_reasons
from tests.support.writers.nsysfile import START_END, NsysFile
from tests.support.writers.overheads import overhead
from tests.tui.timeline.driver import open_timeline

MS = 1_000_000


@pytest.fixture
def held_up(tmp_path: Path) -> Path:
    """100 ms, 20 of each state of a thread, and a loader that has nothing but the GIL."""
    with NsysFile(tmp_path / "held.sqlite") as trace:
        trace.process(100, "python")
        trace.thread(100, 100, "main")
        trace.thread(100, 107, "loader")
        trace.domain(1, "GIL Trace")
        trace.api("cudaLaunchKernel", 0, MS, 1)
        trace.kernel("gemm", 2 * MS, 100 * MS, 1)
        trace.nvtx("Python GC", 0, 20 * MS, type=START_END)
        trace.nvtx("Waiting for GIL", 20 * MS, 40 * MS, domain=1)
        trace.nvtx("Holding GIL", 40 * MS, 60 * MS, domain=1)
        trace.nvtx("Holding GIL", 0, 40 * MS, domain=1, tid=107)
        overhead(trace, "Lazy Function Loading", 60 * MS, 80 * MS)
        overhead(trace, "CUPTI Buffer flush", 80 * MS, 95 * MS)
    return tmp_path / "held.sqlite"


SHOWN = [
    ("  GC", 10, StateKind.COLLECTION, "Python GC"),
    ("  GIL", 30, StateKind.GIL_WAITING, "Waiting for GIL"),
    ("  GIL", 50, StateKind.GIL_HELD, "Holding GIL"),
    ("  loading", 70, StateKind.LOADING, "Lazy Function Loading"),
    ("  profiler", 90, StateKind.PROFILER, "CUPTI Buffer flush"),
]


async def test_each_state_has_a_row_below_its_thread(held_up: Path) -> None:
    async with open_timeline(held_up, (80, 20)) as user:
        labels = [line[: user.pane.rows.labels].rstrip() for line in user.lines()]
        assert [label for label in labels if label] == [
            " -main [100]",
            "   GC",
            "   GIL",
            "   loading",
            "   profiler",
            " -GIL loader […",
            "▸GPU0 stream 7",
        ]


@pytest.mark.parametrize(("label", "at", "kind", "name"), SHOWN)
async def test_each_stands_in_its_colour(
    held_up: Path, label: str, at: int, kind: StateKind, name: str
) -> None:
    async with open_timeline(held_up) as user:
        row, palette = user.row(label), user.pane.rows.look.palette
        assert user.style(row, user.cell(at)) == palette.state(kind, name)
        assert name[:10] in user.lines()[row]


@pytest.mark.parametrize(
    ("label", "at", "said"),
    [
        ("  GC", 10, "Python GC · 20.0 ms from 0.000 000 s · garbage collection: main [100]"),
        ("  GIL", 30, "Waiting for GIL · 20.0 ms from 0.020 000 s · waits for the GIL: main [100]"),
        ("  GIL", 50, "Holding GIL · 20.0 ms from 0.040 000 s · holds the GIL: main [100]"),
        ("GIL loader", 9, "Holding GIL · 40.0 ms from 0.000 000 s · holds the GIL: loader [107]"),
        ("  loading", 70, "Lazy Function Loading · 20.0 ms from 0.060 000 s · loading: main [100]"),
        (
            "  profiler",
            90,
            "CUPTI Buffer flush · 15.0 ms from 0.080 000 s · the profiler holds up: ",
        ),
    ],
)
async def test_a_click_tells_kind_and_duration(
    held_up: Path, label: str, at: int, said: str
) -> None:
    async with open_timeline(held_up) as user:
        before = user.in_tree
        await user.click(user.row(label), user.cell(at))
        assert user.pane.hint().startswith(said)
        assert user.in_tree == before and not user.app.note


async def test_keys_reach_them(held_up: Path) -> None:
    async with open_timeline(held_up) as user:
        await user.does(*[user.pane.up] * 5)
        assert user.lines()[user.time.lanes.row].startswith("▸  GC")
        await user.does(user.pane.down, user.pane.home)
        assert user.selected == "Waiting for GIL"
        await user.does(lambda: user.pane.across(1))
        assert user.selected == "Holding GIL"
        await user.does(user.pane.enter)
        low, high = user.time.viewport.window
        assert low < 40 * MS < 60 * MS < high and high - low == 30 * MS


async def test_a_row_without_any_of_them_in_sight_goes(held_up: Path) -> None:
    async with open_timeline(held_up, (80, 20)) as user:
        time = user.time
        await user.does(lambda: time.viewport.show_from(61 * MS, 10 * MS))
        assert [time.timeline.lanes[at].track.name for at in time.lanes.rows] == [
            "CALLS",
            "LOADING",
            "WORK",
        ]


async def test_they_fold_with_their_thread(held_up: Path) -> None:
    async with open_timeline(held_up, (80, 20)) as user:
        await user.does(*[user.pane.up] * 3)
        assert await user.does(user.pane.thread_rows) == "folded: only the outermost ranges"
        assert not any("  GC" in line or "profiler" in line for line in user.lines())
        assert any("GIL loader" in line for line in user.lines())
        await user.does(user.pane.thread_rows, user.pane.thread_rows)
        assert any("  GC" in line for line in user.lines())


async def test_a_search_finds_them_by_name(held_up: Path) -> None:
    async with open_timeline(held_up) as user:
        await user.does(lambda: user.shown.view.search(Query("lazy|wait")))
        match = user.pane.rows.look.palette.match
        for label, at, _, name in SHOWN:
            found = name.startswith(("Lazy", "Wait"))
            assert (user.style(user.row(label), user.cell(at)) == match) == found
        assert "of 2 over time" in str(await user.does(lambda: user.pane.match(1)))
        assert user.selected == "Waiting for GIL"


@pytest.mark.parametrize("colours", ["level", "category"])
async def test_where_they_are_dense_cells_are_as_full_as_they_are(
    tmp_path: Path, colours: str
) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.domain(1, "GIL Trace")
        for start in range(0, 1_000_000, 1_000):
            trace.nvtx("Waiting for GIL", start, start + 500, domain=1)
            trace.nvtx("Holding GIL", start + 500, start + 600, domain=1)
        trace.api("cudaLaunchKernel", 0, 10, 1)
        trace.kernel("gemm", 100, 1_000_000, 1)
    selection = Selection(colours=colours)
    async with open_timeline(tmp_path / "t.sqlite", selection=selection) as user:
        row, palette = user.row("GIL"), user.pane.rows.look.palette
        assert user.lines()[row][user.pane.rows.labels + 20] == "▅"  # 0.6 of each cell
        assert user.style(row, 20).color == palette.state_ink(StateKind.GIL_WAITING).color


async def test_filters_leave_them_bright(held_up: Path) -> None:
    async with open_timeline(held_up) as user:
        style = user.style(user.row("profiler"), user.cell(90))
        await user.does(lambda: user.app.take(Selection(where=(Time(0, 100 * MS),))))
        assert user.style(user.row("profiler"), user.cell(90)) == style


async def test_hostile_names_stay_in_their_rows(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.api("cudaLaunchKernel", 0, 10, 1)
        trace.kernel("gemm", 100, 1_000, 1)
        overhead(trace, "\x1b[31mred\n[/]\u202eevil", 100, 900)
        overhead(trace, "", 200, 800)
        overhead(trace, "before", -(1 << 62), 50)
        overhead(trace, "never ends", 950, (1 << 62) - 1)
    async with open_timeline(tmp_path / "t.sqlite", (80, 14)) as user:
        for _ in range(4):
            await user.does(user.pane.up, user.pane.home)
            for line in (*user.lines(), user.pane.hint()):
                assert "\x1b" not in line and "\n" not in line and "\u202e" not in line
        for y in range(user.pane.rows.size.height):
            assert user.pane.rows.render_line(y).cell_length == 80


# In the background


async def test_rows_are_drawn_before_anything_is_found(
    held_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Event()

    def late(profile: object) -> Reasons:
        found.wait()
        return find_reasons(profile)  # type: ignore[arg-type]

    monkeypatch.setattr(layouts, "find_reasons", late)
    async with open_timeline(held_up, settled=False) as user:
        await user.until(lambda: user.pane._time is not None)
        await user.pilot.pause(0)
        assert user.pane.busy and "gemm" in user.lines()[user.row("GPU0 stream 7")]
        assert not any(lane.track in STATES for lane in user.time.timeline.lanes)
        assert "working" not in user.lines("timeline-head")[0]
        before = user.pane.across(1), user.selected
        user.pane.show(user.shown)
        assert before == ("", "gemm")
        found.set()
        await user.settle()
        assert any(lane.track in STATES for lane in user.time.timeline.lanes)
        assert user.selected == "gemm"


async def test_what_cannot_be_read_is_said(held_up: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        layouts, "find_reasons", lambda profile: Reasons(profile, unread="held.sqlite has changed")
    )
    async with open_timeline(held_up) as user:
        assert user.app.note == "held.sqlite has changed"
        assert "gemm" in user.lines()[user.row("GPU0 stream 7")]
