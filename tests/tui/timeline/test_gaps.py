"""Idle gaps in the timeline: keys that go to them, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.projection.filters import Time
from flame.core.projection.selection import Selection
from flame.core.timeline.busy_time import TimeWindow
from tests.support.writers.nsysfile import NsysFile
from tests.tui import traces
from tests.tui.timeline.driver import User, open_timeline

MS = 1_000_000


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    """Three gaps of 5, 20 and 10 ms; in the second the host waits for 2 ms and then tokenizes."""
    with NsysFile(tmp_path / "gaps.sqlite") as trace:
        trace.gpu(0, "NVIDIA H100", pid=100)
        trace.process(100, "python")
        trace.thread(100, 100, "main")
        for corr, (name, start, end) in enumerate(
            [("a", 10, 20), ("b", 25, 35), ("c", 55, 65), ("d", 75, 100)], 1
        ):
            trace.api("cudaLaunchKernel", start * MS - MS, start * MS - MS // 2, corr)
            trace.kernel(f"kernel_{name}", start * MS, end * MS, corr)
        trace.api("cudaStreamSynchronize", 30 * MS, 37 * MS, 90)
        trace.nvtx("tokenize", 38 * MS, 53 * MS)
        trace.memcpy(1, 0, 1 * MS, corr=None, device=1)
        trace.memcpy(1, 3 * MS, 4 * MS, corr=None, device=1)
    return tmp_path / "gaps.sqlite"


def marked(user: User) -> tuple[float, float] | None:
    """The selected gap, in ms since the beginning of the trace."""
    window = user.time.viewport.marked
    return (window.low / MS, window.high / MS) if window else None


async def test_the_longest_gap_then_the_next_longest_and_back(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        await user.does(lambda: user.pane.longest_gap(1))
        assert marked(user) == (35, 55)
        assert user.time.viewport.window == TimeWindow(20 * MS, 70 * MS)
        await user.does(lambda: user.pane.longest_gap(1))
        assert marked(user) == (65, 75)
        await user.does(lambda: user.pane.longest_gap(1))
        assert marked(user) == (20, 25)
        assert await user.does(lambda: user.pane.longest_gap(1)) == "the shortest gap"
        await user.does(lambda: user.pane.longest_gap(-1))
        assert marked(user) == (65, 75)
        await user.does(lambda: user.pane.longest_gap(-1))
        assert await user.does(lambda: user.pane.longest_gap(-1)) == "the longest gap"


async def test_gaps_in_order_of_time(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        await user.does(user.pane.home, lambda: user.pane.gap(1))
        assert marked(user) == (20, 25)
        await user.does(lambda: user.pane.gap(1))
        assert marked(user) == (35, 55)
        assert user.time.viewport.window == user.time.timeline.whole  # in sight already
        await user.does(lambda: user.pane.gap(-1))
        assert marked(user) == (20, 25)
        assert "no earlier gap" in str(await user.does(lambda: user.pane.gap(-1)))
        assert marked(user) == (20, 25)


async def test_the_next_gap_is_that_after_what_was_selected_since(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        await user.does(lambda: user.pane.gap(1), user.pane.home, lambda: user.pane.gap(1))
        assert marked(user) == (20, 25)


async def test_a_gap_that_is_out_of_sight_is_brought_into_it(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        await user.does(user.pane.home, user.pane.enter)
        assert user.time.viewport.window == TimeWindow(7_500_000, 22_500_000)
        await user.does(lambda: user.pane.gap(1))
        assert marked(user) == (20, 25)
        assert user.time.viewport.window == TimeWindow(15 * MS, 30 * MS)  # as long as before
        await user.does(lambda: user.pane.gap(1))  # it would fill more than that
        assert marked(user) == (35, 55)
        assert user.time.viewport.window == TimeWindow(20 * MS, 70 * MS)


async def test_the_box_and_the_status_line_say_why(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        assert not user.pane.query_one("#timeline-gap").display
        await user.does(lambda: user.pane.longest_gap(1))
        lines = [line.rstrip() for line in user.lines("timeline-gap")]
        assert lines == [
            " GPU0 idle 20.0 ms · 57.1 % of its idle time · longest of 3 · at 0.035 000 s",
            " causes    85.0 % // host code 17.0 ms · 10.0 % \\\\ sync 2.00 ms · "
            "2.5 % ,, after launch 500 µs · 2.5 % others",
            " API calls 87.5 % outside any · 10.0 % cudaStreamSynchronize · 2.5 % cudaLaunchKernel",
            " NVTX      75.0 % tokenize · 25.0 % outside any",
            " host      main [100] launched the next 19.0 ms into the gap",
            " between   kernel_b → kernel_c",
        ]
        assert user.pane.hint() == (
            "GPU0 idle 20.0 ms · 85.0 % host code 17.0 ms · 87.5 % outside API calls · "
            "75.0 % tokenize"
        )
        assert await user.does(user.pane.escape) == ""
        assert marked(user) is None and not user.pane.query_one("#timeline-gap").display


async def test_in_a_low_pane_half_of_the_rows_stay(gaps: Path) -> None:
    async with open_timeline(gaps, (80, 10)) as user:
        await user.does(lambda: user.pane.longest_gap(1))
        assert len(user.lines("timeline-gap")) == 4
        assert len(user.lines()) == 4


async def test_the_rows_of_the_host_stay_above_the_gpu_of_the_gap(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.api("cudaLaunchKernel", 0, 10, 1)
        trace.api("cudaLaunchKernel", 500, 510, 2)
        for stream in range(20):
            trace.kernel("gemm", 10 + stream, 100, 1, stream=stream)
        trace.kernel("last", 600, 700, 2, stream=0)
    async with open_timeline(tmp_path / "t.sqlite", (80, 12)) as user:
        await user.does(*[lambda: user.pane.page(1)] * 3, *[user.pane.up] * 8)
        assert user.lines()[1].startswith("▸GPU0 stream 11")
        await user.does(lambda: user.pane.longest_gap(1))
        assert user.lines()[-1].startswith("▸GPU0 stream 11")


async def test_of_many_calls_the_longest_are_named_and_the_others_summed(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.kernel("first", 0, 1_000, corr=None)
        for place, length in enumerate((50, 200, 100, 150, 30)):
            start = 1_000 + 200 * place
            trace.api(f"cudaCall{place}", start, start + length, place + 10)
        trace.api("cudaLaunchKernel", 1_990, 2_000, 1)
        trace.kernel("next", 2_000, 3_000, 1)
    async with open_timeline(tmp_path / "t.sqlite") as user:
        await user.does(lambda: user.pane.longest_gap(1))
        assert (
            user.lines("timeline-gap")[2]
            .split("  ")[0]
            .strip()
            .endswith(
                "46.0 % outside any · 20.0 % cudaCall1 · 15.0 % cudaCall3 · 10.0 % cudaCall2 · "
                "9.0 % others"
            )
        )


async def test_the_gap_is_tinted_on_all_rows(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        await user.does(lambda: user.pane.longest_gap(1))
        tint = user.pane.rows.look.palette.tint.bgcolor
        left, right = user.cell(35), user.cell(55)
        row = user.row("GPU0 stream 7")
        assert {user.style(row, cell).bgcolor for cell in range(left + 1, right - 1)} == {tint}
        assert user.style(row, right + 1).bgcolor != tint


async def test_the_gpu_of_the_selected_row_counts(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        await user.click(user.row("GPU1"), -3)
        await user.does(lambda: user.pane.longest_gap(1))
        assert marked(user) == (1, 3)
        assert "launched what ran next was not recorded" in " ".join(user.lines("timeline-gap"))


async def test_another_selection_leaves_the_gap_where_it_is(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        await user.does(lambda: user.pane.longest_gap(1), lambda: user.pane.across(1))
        assert marked(user) == (35, 55) and user.selected.startswith("kernel")
        assert user.selected in user.pane.hint()
        await user.does(lambda: user.pane.longest_gap(1))
        assert marked(user) == (65, 75) and not user.selected


async def test_a_filter_by_time_leaves_its_own_gaps(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        await user.does(lambda: user.pane.longest_gap(1))
        origin = user.time.timeline.origin
        chosen = Selection(where=(Time(origin + 60 * MS, origin + 80 * MS),))
        await user.does(lambda: user.app.take(chosen))
        assert marked(user) is None
        await user.does(lambda: user.pane.longest_gap(1))
        assert marked(user) == (65, 75)
        assert await user.does(lambda: user.pane.longest_gap(1)) == "the shortest gap"


async def test_a_gap_that_filters_leave_stays_selected(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        await user.does(lambda: user.pane.longest_gap(1), lambda: user.pane.longest_gap(1))
        origin = user.time.timeline.origin
        chosen = Selection(where=(Time(origin + 60 * MS, origin + 80 * MS),))
        await user.does(lambda: user.app.take(chosen))
        assert marked(user) == (65, 75)
        assert "longest of 1" in user.lines("timeline-gap")[0]
        await user.does(lambda: user.app.take(Selection()))
        assert "no. 2 by length of 3" in user.lines("timeline-gap")[0]
        cut = Selection(where=(Time(origin + 50 * MS, origin + 70 * MS),))
        await user.does(lambda: user.app.take(cut))
        assert marked(user) is None


async def test_enter_zooms_to_the_gap_and_undo_comes_back(gaps: Path) -> None:
    async with open_timeline(gaps) as user:
        await user.does(user.pane.home, lambda: user.pane.gap(1), user.pane.enter)
        low, high = user.time.viewport.window
        assert low < 20 * MS < 25 * MS < high and high - low == 7_500_000
        await user.does(user.pane.undo)
        assert user.time.viewport.window == user.time.timeline.whole


@pytest.mark.parametrize("make", [traces.nothing, traces.host_only, traces.unlaunched])
async def test_without_gaps_that_is_said(tmp_path: Path, make: object) -> None:
    path = make(tmp_path / "t.sqlite")  # type: ignore[operator]
    async with open_timeline(path, (60, 12)) as user:
        assert await user.does(lambda: user.pane.longest_gap(1)) == "no idle gaps here"
        assert await user.does(lambda: user.pane.gap(-1)) == "no idle gaps here"


async def test_hostile_names_do_not_leave_the_box(tmp_path: Path) -> None:
    async with open_timeline(traces.hostile(tmp_path / "t.sqlite"), (80, 20)) as user:
        for _ in range(6):
            await user.does(lambda: user.pane.longest_gap(1))
            for line in (*user.lines("timeline-gap"), user.pane.hint()):
                assert "\x1b" not in line and "\n" not in line and "\u202e" not in line
