"""Idle gaps hatched by cause: where, with what, in which colours, and what a click tells."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from flame.core.model.calls import IdleCause
from flame.core.timeline.busy_time import TimeWindow
from flame.core.units import BLOCKS
from flame.tui.session.glossary import meaning_of
from flame.tui.session.query import Query
from flame.tui.timeline import layouts
from flame.tui.timeline.prepare import Reasons, find_reasons
from flame.tui.toolkit.ansi_palette import NoColours, SixteenColours
from flame.tui.toolkit.ascii import in_ascii
from flame.tui.toolkit.colours import HATCHES
from flame.tui.toolkit.palette import Palette
from tests.support.writers.nsysfile import NsysFile
from tests.support.writers.overheads import overhead
from tests.tui import traces
from tests.tui.timeline.driver import User, open_timeline

MS = 1_000_000
CALLS = [
    (10, 20, "cudaStreamSynchronize", IdleCause.SYNC),
    (20, 30, "cudaMalloc", IdleCause.ALLOC),
    (30, 40, "cudaMemcpy", IdleCause.COPY_CALL),
    (40, 50, "cudaLaunchKernel", IdleCause.LAUNCH_CALL),
    (50, 60, "cudaEventRecord", IdleCause.OTHER_CALL),
]
SHOWN = [
    *((low, high, cause) for low, high, _, cause in CALLS),
    (60, 70, IdleCause.HOST_CODE),
    (70, 80, IdleCause.IN_LAUNCH),
    (80, 90, IdleCause.AFTER_LAUNCH),
    (90, 95, IdleCause.PROFILER),
    (105, 115, IdleCause.UNKNOWN),
]


@pytest.fixture
def waits(tmp_path: Path) -> Path:
    """A gap from 10 to 95 ms with each cause, one of 10 ms of none; 120 ms, on two streams."""
    with NsysFile(tmp_path / "waits.sqlite") as trace:
        trace.gpu(0, "NVIDIA H100", pid=100)
        trace.process(100, "python")
        trace.thread(100, 100, "main")
        trace.kernel("before", 0, 10 * MS, corr=None)
        for number, (low, high, name, _) in enumerate(CALLS):
            trace.api(name, low * MS, high * MS, 50 + number)
        trace.api("cudaLaunchKernel", 70 * MS, 80 * MS, 1)
        overhead(trace, "CUPTI Buffer flush", 90 * MS, 95 * MS)
        trace.kernel("after", 95 * MS, 105 * MS, 1, stream=9)
        trace.kernel("last", 115 * MS, 120 * MS, corr=None)
    return tmp_path / "waits.sqlite"


def hatch(user: User, label: str, low: float, high: float) -> str:
    """What stands in the cells of a row that lie wholly between two times, in ms."""
    grid, line = user.time.viewport.grid, user.lines()[user.row(label)]
    cells = [round(grid.cell(time * MS)) + user.pane.rows.labels for time in (low, high)]
    return line[slice(*cells)]


@pytest.mark.parametrize(("low", "high", "cause"), SHOWN)
async def test_each_cause_has_its_hatch_and_colour(
    waits: Path, low: int, high: int, cause: IdleCause
) -> None:
    async with open_timeline(waits, (140, 12)) as user:
        palette = user.pane.rows.look.palette
        row, at = user.row("stream 9"), user.cell((low + high) / 2)
        assert set(hatch(user, "stream 9", low, high)) == {HATCHES[cause]}
        assert user.style(row, at).color == palette.cause_ink(cause).color


async def test_names_stand_where_they_fit_in_the_first_row_of_a_gpu(waits: Path) -> None:
    async with open_timeline(waits, (240, 12)) as user:
        assert hatch(user, "stream 7", 10, 20).startswith("\\\\ sync \\")
        assert hatch(user, "stream 7", 60, 70).startswith("// host code //")
        assert hatch(user, "stream 7", 80, 90).startswith(",, after launch ,")
        assert hatch(user, "stream 7", 90, 95).startswith("xxxxx")
        assert "host" not in hatch(user, "stream 9", 60, 70)


async def test_a_stream_that_waits_while_another_works_is_not_hatched(waits: Path) -> None:
    async with open_timeline(waits, (140, 12)) as user:
        assert hatch(user, "stream 7", 95, 105).isspace()
        assert hatch(user, "stream 9", 0, 10).isspace()
        assert hatch(user, "stream 9", 115, 120).isspace()


async def test_gaps_are_hatched_once_they_are_wide_enough(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.kernel("first", 0, 50 * MS, corr=None)
        trace.api("cudaLaunchKernel", 49 * MS, 50 * MS, 1)
        trace.kernel("second", 51 * MS, 100 * MS, 1)
    async with open_timeline(tmp_path / "t.sqlite") as user:
        row = user.lines()[user.row("stream 7")]
        assert HATCHES[IdleCause.AFTER_LAUNCH] not in row[user.pane.rows.labels :]
        await user.does(lambda: user.time.viewport.show_from(45 * MS, 10 * MS))
        assert set(hatch(user, "stream 7", 50, 51)) == {HATCHES[IdleCause.AFTER_LAUNCH]}


@pytest.mark.parametrize("make", [traces.nothing, traces.host_only, traces.unlaunched])
async def test_nothing_is_hatched_where_nothing_is_known(tmp_path: Path, make: object) -> None:
    path = make(tmp_path / "t.sqlite")  # type: ignore[operator]
    async with open_timeline(path, (60, 12)) as user:
        assert not set("".join(line[20:] for line in user.lines())) & set(HATCHES.values())


async def test_a_click_selects_the_gap_and_tells_its_causes(waits: Path) -> None:
    async with open_timeline(waits, (300, 16)) as user:
        await user.click(user.row("stream 9"), user.cell(65))
        assert user.time.viewport.marked == TimeWindow(10 * MS, 95 * MS)
        assert not user.selected
        told = user.lines("timeline-gap")[1].split(" · ")
        assert [text.split("% ")[-1].strip() for text in told] == [
            ",, after launch 10.0 ms",
            ">> in launch 10.0 ms",
            "\\\\ sync 10.0 ms",
            "&& alloc 10.0 ms",
            "oo copy call 10.0 ms",
            "^^ launch call 10.0 ms",
            "-- other call 10.0 ms",
            "// host code 10.0 ms",
            "xx profiler 5.00 ms",
        ]
        assert told[0].startswith(" causes    11.8 %") and told[-1].startswith("5.9 %")
        await user.click(user.row("stream 7"), user.cell(110), times=2)
        low, high = user.time.viewport.window
        assert low < 105 * MS < 115 * MS < high and high - low == 15 * MS
        assert "100.0 % ?? unknown 10.0 ms" in user.lines("timeline-gap")[1]


async def test_causes_that_have_no_room_are_summed(waits: Path) -> None:
    async with open_timeline(waits, (80, 16)) as user:
        await user.does(lambda: user.pane.longest_gap(1))
        told = user.lines("timeline-gap")[1].rstrip()
        assert told == " causes    11.8 % ,, after launch 10.0 ms · 88.2 % others"


async def test_a_click_beside_a_gap_selects_what_is_there(waits: Path) -> None:
    async with open_timeline(waits, (140, 12)) as user:
        await user.click(user.row("stream 9"), user.cell(100))
        assert user.selected == "after" and user.time.viewport.marked is None
        await user.click(user.row("stream 7"), user.cell(5))
        assert user.selected == "before"


async def test_a_cell_that_work_reaches_into_shows_the_work(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.kernel("first", 0, 20 * MS, corr=None)
        trace.api("cudaLaunchKernel", 21 * MS, 22 * MS, 1)
        trace.kernel("next", 50_600_000, 50_900_000, 1)
        trace.kernel("last", 80 * MS, 100 * MS, 1)
    async with open_timeline(tmp_path / "t.sqlite") as user:
        row = user.row("GPU0 stream 7")
        await user.does(lambda: user.time.viewport.show_from(0, user.time.viewport.width * MS))
        grid = user.time.viewport.grid
        assert grid.scale == pytest.approx(1 / MS)
        assert user.lines()[row][user.pane.rows.labels + 49 :][:2] == ",▃"
        await user.click(row, 50)
        assert user.selected == "next" and user.time.viewport.marked is None


async def test_rows_of_what_lies_within_others_are_not_hatched(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.kernel("outer", 0, 20 * MS, corr=None)
        trace.kernel("inner", 5 * MS, 10 * MS, corr=None)
        trace.api("cudaLaunchKernel", 21 * MS, 22 * MS, 1)
        trace.kernel("next", 80 * MS, 100 * MS, 1)
    async with open_timeline(tmp_path / "t.sqlite") as user:
        row, labels = user.row("GPU0 stream 7"), user.pane.rows.labels
        outer, inner = (line[labels:] for line in user.lines()[row : row + 2])
        assert ",,,," in outer and "inn" in inner and "," not in inner


async def test_the_selected_gap_is_tinted_behind_its_hatching(waits: Path) -> None:
    async with open_timeline(waits, (140, 14)) as user:
        await user.does(lambda: user.pane.longest_gap(1), user.pane.escape)
        row, cell = user.row("stream 9"), user.cell(65)
        assert user.style(row, cell).bgcolor != user.pane.rows.look.palette.tint.bgcolor
        await user.does(lambda: user.pane.longest_gap(1))
        row, cell = user.row("stream 9"), user.cell(65)
        style, palette = user.style(row, cell), user.pane.rows.look.palette
        assert style.bgcolor == palette.tint.bgcolor
        assert style.color == palette.cause_ink(IdleCause.HOST_CODE).color


async def test_a_search_leaves_the_hatching_quiet(waits: Path) -> None:
    async with open_timeline(waits, (140, 12)) as user:
        row, cell = user.row("stream 9"), user.cell(65)
        await user.does(lambda: user.shown.view.search(Query("after")))
        assert user.style(row, cell).color == user.pane.rows.look.palette.quiet.color


async def test_rows_and_keys_come_before_the_causes(
    waits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Event()

    def late(profile: object) -> Reasons:
        found.wait()
        return find_reasons(profile)  # type: ignore[arg-type]

    monkeypatch.setattr(layouts, "find_reasons", late)
    async with open_timeline(waits, (140, 16), settled=False) as user:
        await user.until(lambda: user.pane._time is not None)
        await user.pilot.pause(0)
        user.pane.longest_gap(1)
        user.pane.show(user.shown)
        await user.pilot.pause(0)
        assert hatch(user, "stream 9", 60, 70).isspace()
        assert not any("causes" in line for line in user.lines("timeline-gap"))
        found.set()
        await user.settle()
        assert set(hatch(user, "stream 9", 60, 70)) == {"/"}
        assert user.lines("timeline-gap")[1].startswith(" causes")
        assert user.time.viewport.marked == TimeWindow(10 * MS, 95 * MS)


# Without colours, in 16 of them, in the help


def test_hatches_differ_in_ascii_and_are_explained() -> None:
    assert len(set(HATCHES.values())) == len(HATCHES) == len(IdleCause)
    assert not {in_ascii(block) for block in BLOCKS} & set(HATCHES.values())
    for cause, sign in HATCHES.items():
        assert sign.isascii() and sign.isprintable() and len(sign) == 1
        assert meaning_of(cause.title).endswith(f"({2 * sign})")


@pytest.mark.parametrize("palette", [SixteenColours(), NoColours()])
def test_sixteen_colours_are_named_and_none_are_none(palette: Palette) -> None:
    for cause in IdleCause:
        ink = palette.cause_ink(cause)
        assert ink.bgcolor is None
        assert ink.color is None or ink.color.is_system_defined
    assert isinstance(palette, NoColours) == all(not palette.cause_ink(one) for one in IdleCause)
