"""The top table in the app: its columns, orders and rows, and what selecting one of them does."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from flame.core.projection.selection import Selection
from flame.core.units import format_counted
from flame.tui.views.pane import Pane
from flame.tui.views.sandwich_pane import SandwichPane
from flame.tui.views.top_pane import TopPane
from flame.tui.views.top_rows import NARROW, TableRows
from tests.support.writers.nsysfile import NsysFile
from tests.tui import traces
from tests.tui.conftest import User, open_app

ROWS = 74
"""Frames of the decode trace: 63 kernels, a copy, 8 ranges and 2 launch frames."""


async def top(user: User) -> TopPane:
    """Turn to the table and wait for its percentiles."""
    pane = user.screen.query_one(TopPane)
    while user.screen.pane is not pane:
        await user.press("tab")
    await user.until(lambda: not pane.busy)
    await user.settle()
    return pane


def squeezed(text: str) -> str:
    """``text`` with single spaces."""
    return " ".join(text.split())


def names(user: User) -> list[str]:
    """The names on screen, top down."""
    at = user.read("heads").index("name")
    return [line[at:] for line in user.read("table").splitlines() if line]


# In the app


async def test_the_table_lists_every_frame_by_self_time(decode: Path) -> None:
    async with open_app(decode, (120, 40)) as user:
        await top(user)
        assert squeezed(user.read("heads")) == "self▾ total % count p99 name 74 rows"
        first, second = user.read("table").splitlines()[:2]
        assert squeezed(first) == "280 µs 280 µs 61.4 % 2 140 µs kernel gemm"
        assert squeezed(second) == "120 µs 120 µs 26.3 % 2 60.0 µs kernel flash_fwd_kernel"


async def test_a_wide_table_has_all_columns(decode: Path) -> None:
    async with open_app(decode, (250, 40)) as user:
        await top(user)
        heads = "self▾ % total % count mean p50 p95 p99 max tail name 74 rows"
        assert squeezed(user.read("heads")) == heads
        await user.press("v", "v")
        lines = user.read("table").splitlines()
        row = next(line for line in lines if line.endswith("model.layers.0"))
        numbers = "– – 200 µs 43.9 % ██▊ 2 100 µs 60.0 µs 140 µs 140 µs 140 µs 2.3×"
        assert squeezed(row) == f"{numbers} model.layers.0"


async def test_moving_selects_frames_where_they_are_widest(decode: Path) -> None:
    async with open_app(decode) as user:
        await top(user)
        await user.press("down")
        assert user.selected == "gemm"
        await user.press("j", "j", "k")
        assert user.selected == "flash_fwd_kernel"
        assert user.read("details").splitlines()[1] == "flash_fwd_kernel"
        await user.press("end")
        assert user.selected == names(user)[-1] == "sampler"
        await user.press("home")
        assert user.selected == "gemm"
        await user.press("up")
        assert user.selected == "gemm"


async def test_pages_move_by_what_is_on_screen(decode: Path) -> None:
    async with open_app(decode) as user:
        await top(user)
        await user.press("home", "pagedown")
        height = user.screen.query_one(TableRows).inner.height
        assert user.screen.query_one(TopPane)._place() == height - 1
        await user.press("pagedown")
        assert user.selected in names(user)
        assert "gemm" not in names(user)
        await user.press("pageup", "pageup")
        assert user.selected == "gemm"


async def test_the_row_of_the_selected_frame_is_selected_on_entering(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "right")
        assert user.selected == "model.layers.1"
        pane = await top(user)
        assert pane._table
        row = int(pane._rows[pane._place()])
        assert pane._table.name(row) == "model.layers.1"


async def test_a_frame_outside_the_zoomed_part_zooms_out(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "enter")
        assert user.zoomed == "model.layers.0"
        await top(user)
        await user.press("home")
        assert (user.selected, user.zoomed) == ("gemm", "model.layers.0")
        await user.press("slash", *"argmax", "enter")
        assert (user.selected, user.zoomed) == ("argmax", "all")


async def test_sorting_goes_from_column_to_column_and_back(decode: Path) -> None:
    async with open_app(decode) as user:
        await top(user)
        for title in ("total", "count", "mean", "p50", "p95", "p99", "max", "tail", "name", "self"):
            await user.press("s")
            assert f"sorted by {title}" in user.read("status")
            assert f"{title}▾" in user.read("heads") or f"{title}▴" in user.read("heads")
        await user.press("s", "s")
        assert names(user)[:2] == ["cudaLaunchKernel", "generate"]


async def test_the_selected_row_stays_in_sight_in_less_room(decode: Path) -> None:
    async with open_app(decode, (120, 2 * ROWS)) as user:
        await top(user)
        await user.press("end")
        last = names(user)[-1]
        await user.pilot.resize_terminal(120, 24)
        await user.settle()
        assert names(user)[-1] == last


async def test_a_narrow_table_has_the_column_it_is_sorted_by(decode: Path) -> None:
    async with open_app(decode, (60, 15)) as user:
        await top(user)
        await user.press(*"ssssssss")
        assert squeezed(user.read("heads")).startswith("self total tail▾ name")
        assert "×" in user.read("table").splitlines()[0]


@pytest.mark.parametrize("width", [20, NARROW - 1, NARROW, NARROW + 4])
async def test_kinds_are_said_where_names_have_room(decode: Path, width: int) -> None:
    async with open_app(decode, (width, 12)) as user:
        await top(user)
        heads, first = user.read("heads"), user.read("table").splitlines()[0]
        assert ("kernel" in first) == (width >= NARROW)
        assert heads.index("name") == first.index("gemm")
        strips = user.app.screen._compositor.render_strips()
        assert {cell_len(strip.text) for strip in strips} == {width}


async def test_a_click_on_a_head_sorts_by_it_and_again_backwards(decode: Path) -> None:
    async with open_app(decode, (200, 40)) as user:
        await top(user)
        at = user.read("heads").index("name")
        await user.pilot.click("#heads", offset=(at, 0))
        await user.settle()
        assert "name▴" in user.read("heads")
        ordered = names(user)
        assert ordered == sorted(ordered)
        await user.pilot.click("#heads", offset=(at, 0))
        await user.settle()
        assert "name▾" in user.read("heads")
        ordered = names(user)
        assert ordered == sorted(ordered, reverse=True)


async def test_kinds_are_shown_one_at_a_time(decode: Path) -> None:
    async with open_app(decode) as user:
        await top(user)
        for kind, number in (("launch", 2), ("nvtx", 8), ("kernel", 63), ("memcpy", 1)):
            await user.press("v")
            assert f"rows: {kind}" in user.read("status")
            assert format_counted(number, f"{kind} row", f"{kind} rows") in user.read("heads")
        await user.press("v")
        assert f"{ROWS} rows" in user.read("heads")


async def test_a_search_leaves_only_what_matches(decode: Path) -> None:
    async with open_app(decode, (200, 40)) as user:
        await top(user)
        await user.press("slash", *"layers", "enter")
        assert f"6 of {ROWS} match" in user.read("heads")
        assert len(names(user)) == 6
        assert user.selected == names(user)[0]
        for place in (1, 2, 3, 4, 5, 0):
            await user.press("n")
            assert user.selected == names(user)[place]
        await user.press("N")
        assert user.selected == names(user)[5]
        await user.press("slash", *"nothing like it", "enter", "n")
        assert "no row matches" in user.read("status")
        await user.press("escape")
        assert f"{ROWS} rows" in user.read("heads")


async def test_enter_opens_the_sandwich(decode: Path) -> None:
    async with open_app(decode) as user:
        await top(user)
        await user.press("enter")
        assert "select a row first" in user.read("status")
        await user.press("down", "down", "enter")
        await user.settle()
        assert isinstance(user.screen.pane, SandwichPane)
        assert "flash_fwd_kernel" in user.read("subject")


async def test_a_click_selects_and_a_double_click_opens(decode: Path) -> None:
    async with open_app(decode) as user:
        await top(user)
        await user.pilot.click("#table", offset=(30, 1))
        await user.settle()
        assert user.selected == "flash_fwd_kernel"
        await user.pilot.click("#table", offset=(30, 0), times=2)
        await user.settle()
        assert isinstance(user.screen.pane, SandwichPane)
        assert "gemm" in user.read("subject")


async def test_keys_of_other_views_mean_nothing_here(decode: Path) -> None:
    async with open_app(decode) as user:
        pane = await top(user)
        moves = (pane.out, lambda: pane.across(1), lambda: pane.pan(1), pane.mark)
        assert {move() for move in moves} == {Pane.out(pane)}


async def test_another_projection_has_its_own_table(decode: Path) -> None:
    async with open_app(decode) as user:
        pane = await top(user)
        await user.press("v", "v", "ctrl+n", "ctrl+n")
        await user.until(lambda: not pane.busy)
        assert user.screen.shown.metric.key == "count"
        assert "p99" not in user.read("heads")
        assert "8 nvtx rows" in user.read("heads")
        await user.press("7")
        await user.until(lambda: not pane.busy)
        assert "nvtx" in user.read("heads")


async def test_hostile_names_stay_on_their_rows(tmp_path: Path) -> None:
    async with open_app(traces.hostile(tmp_path / "hostile.sqlite")) as user:
        pane = await top(user)
        table = user.screen.query_one(TableRows)
        for y in range(len(pane._rows)):
            strip = table.render_line(y)
            assert strip.cell_length == table.size.width
            assert all(char.isprintable() for char in strip.text)


async def test_percentiles_follow_the_filters(decode: Path) -> None:
    from flame.core.projection.filter_options import where

    chosen = Selection(where=where(kernel="gemm"))
    async with open_app(decode, selection=chosen) as user:
        await top(user)
        assert names(user)[0] == "gemm"
        row = next(line for line in user.read("table").splitlines() if "generate" in line)
        assert row.split()[-3:] == ["µs", "nvtx", "generate"]
        assert "140 µs" in row


async def test_host_metrics_have_a_table_too(tmp_path: Path) -> None:
    async with open_app(traces.host_only(tmp_path / "host.sqlite")) as user:
        await top(user)
        assert sorted(names(user)) == ["load data", "parse", "thread [100]"]


async def test_a_trace_with_nothing_in_it_has_an_empty_table(tmp_path: Path) -> None:
    async with open_app(traces.nothing(tmp_path / "nothing.sqlite")) as user:
        pane = await top(user)
        await user.press("down", "s", "v", "n", "enter")
        assert not len(pane._rows)


async def test_the_details_and_the_status_are_about_all_places_of_the_row(decode: Path) -> None:
    async with open_app(decode) as user:
        await top(user)
        await user.press("home")
        assert user.read("status").startswith(" gemm  280 µs · 61.4 % of all · 2×")
        details = user.read("details")
        assert "total       280 µs  61.4 % of all" in details
        assert "of zoomed" not in details
        await user.until(lambda: "all places" in user.read("details"))
        await user.until(lambda: "heaviest above, of 2" in user.read("details"))
        await user.press("down")
        await user.until(lambda: "flash_fwd_kernel" in user.read("details"))
        assert "120 µs  26.3 % of all" in user.read("details")


async def test_sorting_begins_at_the_largest(decode: Path) -> None:
    async with open_app(decode, (120, 24)) as user:
        await top(user)
        await user.press("end")
        assert user.read("table").splitlines()[-1].endswith("sampler")
        await user.press("3")
        assert "sorted by count" in user.read("status")
        assert names(user)[0] == user.selected == "cudaLaunchKernel"


async def test_sorting_does_not_zoom_out(decode: Path) -> None:
    async with open_app(decode, (120, 24)) as user:
        await user.press("down", "down", "down", "enter")
        assert user.zoomed == "model.layers.0"
        await top(user)
        assert "rows, unzoomed" in user.read("heads")
        await user.press("3")
        assert user.zoomed == "model.layers.0"
        assert names(user)[0] == "cudaLaunchKernel"
        assert user.selected != "cudaLaunchKernel"


async def test_columns_are_chosen_by_digit_and_one_after_another(decode: Path) -> None:
    async with open_app(decode, (200, 40)) as user:
        await top(user)
        await user.press("5")
        assert "p50▾" in user.read("heads")
        await user.press("greater_than_sign")
        assert "p95▾" in user.read("heads")
        await user.press("less_than_sign", "less_than_sign")
        assert "mean▾" in user.read("heads")
        await user.press("0")
        assert "name▴" in user.read("heads")
        assert "launch" in user.read("header")  # digits switch no level here


async def test_one_gpu_has_no_columns_per_gpu(decode: Path) -> None:
    async with open_app(decode) as user:
        await top(user)
        await user.press("D")
        assert "one GPU and one file" in user.read("status")


@pytest.fixture
def two_gpus(tmp_path: Path) -> Path:
    """Two kernels, on two GPUs and on one."""
    path = tmp_path / "two.sqlite"
    with NsysFile(path) as trace:
        for device in (0, 1):
            trace.gpu(device, "NVIDIA H100 80GB HBM3", pid=100)
        trace.kernel("allreduce", 0, 1_000, None)
        trace.kernel("allreduce", 0, 4_000, None, device=1)
        trace.kernel("gemm", 5_000, 7_000, None)
    return path


async def test_gpus_have_a_column_each_and_how_far_they_are_apart(two_gpus: Path) -> None:
    async with open_app(two_gpus) as user:
        await top(user)
        await user.press("v", "v", "D")
        assert "columns: per GPU" in user.read("status")
        assert squeezed(user.read("heads")).startswith("total▾ % max/min GPU 0 GPU 1 name")
        rows = [squeezed(row) for row in user.read("table").splitlines() if row]
        assert rows == [
            "5.00 µs 71.4 % 4.0× 1.00 µs 4.00 µs allreduce",
            "2.00 µs 28.6 % >99,999× 2.00 µs – gemm",
        ]
        await user.press("2")
        assert "sorted by max/min" in user.read("status")
        assert names(user) == ["gemm", "allreduce"]
        await user.press("4")
        assert "GPU 1▾" in user.read("heads")
        assert names(user) == ["allreduce", "gemm"]
        await user.press("D")
        assert "columns: percentiles" in user.read("status")
        assert "total▾" in user.read("heads")
