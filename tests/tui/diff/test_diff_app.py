"""What the app says of a comparison, by keys and clicks, and what it takes back."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from flame.cli.parser import parse_command_line
from flame.core.compare.basis import parse_per
from flame.core.projection.selection import Selection
from flame.options.state import decode
from flame.tui.diff.command_line import diff_line
from flame.tui.diff.screen import DiffScreen
from flame.tui.diff.selection import diff_selection
from flame.tui.session.query import Query
from tests.support.writers.nsysfile import NsysFile
from tests.tui.conftest import USUAL, User
from tests.tui.diff.opened import chosen, compared, open_diff

MS = 1_000_000
SHOWN = Selection(("nvtx", "kernel"), naming=USUAL.naming)

Kernels = dict[tuple[str, str], list[int]]
"""The durations, in ms, of each kernel in each range."""

BASE: Kernels = {
    ("attention", "softmax"): [4, 4],
    ("attention", "gemm"): [10, 10],
    ("mlp", "gemm"): [20],
    ("mlp", "relu"): [5],
}
NEW: Kernels = {
    ("attention", "softmax"): [4, 4],
    ("attention", "gemm"): [12, 12, 12],
    ("mlp", "gemm"): [20],
    ("mlp", "gelu"): [7],
}


def written(path: Path, kernels: Kernels) -> Path:
    file, at, number = NsysFile(path), 0, 0
    for (name, kernel), durations in kernels.items():
        begin = at
        for duration in durations:
            number += 1
            file.api("cudaLaunchKernel", at + 10, at + 20, number)
            file.kernel(kernel, at + 100, at + 100 + duration * MS, number)
            at += (duration + 1) * MS
        file.nvtx(name, begin, at)
    file.close()
    return path


@pytest.fixture
def traces(tmp_path: Path) -> tuple[Path, Path]:
    return written(tmp_path / "before.sqlite", BASE), written(tmp_path / "after.sqlite", NEW)


async def test_the_first_screen_says_what_has_changed(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, selection=chosen(SHOWN)) as user:
        await user.rest()
        assert "before.sqlite → after.sqlite" in user.read("header")
        line = user.read("change")
        assert "BASE 53.0 ms → NEW 71.0 ms   +18.0 ms  +34.0 %   in total ▾" in line
        assert "widths of both ▾  colour: total, over 5 %, no evidence ▾" in line
        icicle = user.read("icicle")
        assert "▏▲ attention  +57.1 %  +16.0 ms" in icicle
        assert "▏− relu" in icicle and "▏+ gelu" in icicle and "▏softmax" in icicle
        details = user.read("details")
        for row in ("by count    +8.83 ms", "by duration +9.17 ms", "count       6 → 7×"):
            assert row in details
        assert "+16.0 ms  attention" in details


async def test_widths_turn_and_come_back(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, selection=chosen(SHOWN)) as user:
        totals = []
        for words in ("both", "NEW", "BASE"):
            assert f"widths of {words}" in user.read("change")
            totals.append(int(compared(user).view.tree.total[0]))
            await user.press("D")
        assert totals == [76 * MS, 71 * MS, 53 * MS]
        assert "widths of both" in user.read("change")
        await user.press("z")
        assert "widths of BASE" in user.read("change")
        assert "gelu" not in user.read("icicle")
        await user.press("Z")
        assert "gelu" in user.read("icicle")


@pytest.mark.deep
async def test_colours_turn_and_come_back(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, selection=chosen(SHOWN)) as user:
        await user.press("O", "V")
        assert "colour: self, all ▾" in user.read("change")
        assert "▲ attention" not in user.read("icicle")
        await user.press("z", "z")
        assert "colour: total, over 5 %, no evidence ▾" in user.read("change")
        assert "▲ attention" in user.read("icicle")


@pytest.mark.deep
async def test_the_basis_turns_past_those_that_are_not_possible(
    traces: tuple[Path, Path],
) -> None:
    async with open_diff(*traces, selection=chosen(SHOWN)) as user:
        said = []
        for _ in range(4):
            await user.press("p")
            said.append(user.read("change").split("▾")[0].rsplit("  ", 1)[1].strip())
        assert said == ["per second", "per activity", "in percent of all", "in total"]
        await user.press("z")
        assert "BASE 100.0 % → NEW 100.0 %" in user.read("change")


async def test_the_table_has_what_changed_most_first(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, (200, 40), chosen(SHOWN)) as user:
        await user.press("tab", "tab")
        rows = [row for row in user.read("table").splitlines() if row]
        names = [row.split()[-1] for row in rows]
        assert names == ["gemm", "attention", "gelu", "relu", "mlp", "softmax"]
        gemm = rows[0].split()
        assert gemm[:8] == ["40.0", "ms", "56.0", "ms", "+16.0", "ms", "+40.0", "%"]
        assert "+13.3 ms" in rows[0] and "+2.67 ms" in rows[0]
        assert "gone" in next(row for row in rows if "relu" in row)
        await user.press("7")
        assert "sorted by self Δ" in user.read("status")
        await user.press("enter")
        assert user.screen.pane.name_ == "sandwich"


@pytest.mark.deep
async def test_a_sandwich_has_the_sums_of_both_sides(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, selection=chosen(SHOWN)) as user:
        user.screen._search_for(Query("gemm"))
        await user.press("n", "x")
        await user.rest()
        assert "gemm  40.0 ms → 56.0 ms · +40.0 % · +16.0 ms · 3 → 4×" in user.read("subject")
        assert "attention  +80.0 %  +16.0 ms" in user.read("callers")
        details = user.read("details")
        assert "at all places" in details
        rows = {line.split()[0]: line.split()[1:] for line in details.splitlines() if line.split()}
        assert "10.0 ms" in details and "20.0 ms" in details and rows["NEW"]


@pytest.mark.deep
async def test_names_survive_the_next_comparison(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, selection=chosen(SHOWN)) as user:
        user.screen._search_for(Query("gelu"))
        await user.press("n", "x", "L", "escape", "9")
        assert "gelu" in user.read("subject")
        await user.press("9", "D", "p")
        assert "gelu" in user.read("subject")


@pytest.mark.deep
async def test_filters_of_folded_names_mean_all_of_them(tmp_path: Path) -> None:
    paths = []
    for name, duration in (("before", 3), ("after", 4)):
        steps = {(f"step {number}", "gemm"): [duration] for number in range(12)}
        paths.append(written(tmp_path / f"{name}.sqlite", {**steps, ("rest", "gelu"): [50]}))
    async with open_diff(paths[0], paths[1], selection=chosen(SHOWN, "total")) as user:
        user.screen._search_for(Query("step"))
        await user.press("n")
        assert user.selected == "step *"
        await user.press("A")
        await user.rest()
        assert "BASE 36.0 ms → NEW 48.0 ms" in user.read("change")
        await user.press("z", "number_sign")
        await user.rest()
        assert "step 11" in compared(user).view.tree.text


@pytest.mark.deep
async def test_the_timeline_is_of_one_side(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, (120, 50), chosen(SHOWN)) as user:
        await user.press("tab", "tab", "tab")
        await user.rest()
        assert "timeline of NEW ▾" in user.read("change")
        user.screen._search_for(Query("gelu"))
        await user.rest()
        await user.press("n")
        assert user.selected == "gelu"
        await user.press("D")
        await user.rest()
        assert "timeline of BASE ▾" in user.read("change") and user.selected == "gelu"
        timeline = user.screen.parts.timeline
        assert timeline._layouts.fits(timeline.shown)  # laid out at once, as it has not grown
        user.screen._search_for(Query("relu"))
        await user.rest()
        await user.press("n")
        assert user.selected == "relu"
        assert compared(user).view.tree.name(compared(user).view.cursor.node) == "relu"
        await user.press("z")
        await user.rest()
        assert "timeline of NEW ▾" in user.read("change")


@pytest.mark.deep
async def test_its_command_line_shows_the_same(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, selection=chosen(SHOWN)) as user:
        user.screen._search_for(Query("gem+"))
        await user.press("n", "D", "O", "V", "p", "p", "x")
        line = line_of(user)
        before = compared(user).chosen, user.selected
    args = parse_command_line(shlex.split(line)[1:])
    drawn = (args.widths, args.colour_by, args.all_changes, args.timeline)
    assert args.paths == [*map(str, traces)] and not args.fold_layers
    selection = diff_selection(before[0].common, parse_per(args.per), *drawn)
    assert selection == before[0]
    async with open_diff(*traces, selection=selection, state=decode(args.state)) as user:
        assert (compared(user).chosen, user.selected) == before
        assert user.screen.pane.name_ == "sandwich" and line_of(user) == line


def line_of(user: User) -> str:
    screen = user.screen
    assert isinstance(screen, DiffScreen)
    options = screen.session.options
    return diff_line(screen._words, options, compared(user), screen.state(), screen.config)


@pytest.mark.deep
async def test_a_trace_and_itself_are_the_same(traces: tuple[Path, Path]) -> None:
    async with open_diff(traces[0], traces[0], selection=chosen(SHOWN)) as user:
        await user.press("V")
        assert "no change" in user.read("change")
        assert not any(sign in user.read("icicle") for sign in "▲▼+−")


@pytest.mark.deep
async def test_what_cannot_be_read_is_told(traces: tuple[Path, Path], tmp_path: Path) -> None:
    async with open_diff(traces[0], tmp_path / "none.sqlite") as user:
        assert "no such file" in str(user.app.failure)


@pytest.mark.deep
async def test_notes_are_those_of_both_sides(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, selection=chosen(SHOWN)) as user:
        await user.press("w")
        text = "\n".join(strip.text for strip in user.app.screen._compositor.render_strips())
        assert "BASE" in text and "NEW" in text


@pytest.mark.deep
async def test_what_needs_one_trace_is_not_offered(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, selection=chosen(SHOWN)) as user:
        shown = user.read("icicle")
        await user.press("e", "a", "b")
        assert isinstance(user.app.screen, DiffScreen) and user.read("icicle") == shown
        await user.press("tab", "tab", "tab", "tab", "tab")
        assert user.screen.pane.name_ == "icicle"
