"""The report in the app: what it says first, where its rows lead, and what leads back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.filters import Kernel, Time
from flame.core.report.report import SECTIONS
from flame.core.timeline.busy_time import TimeWindow
from flame.options.state import AppState, decode
from flame.tui.main.app import FlameApp
from flame.tui.report.lines import ChosenLines
from flame.tui.timeline.pane import TimelinePane
from tests.tui.conftest import USUAL, User, main_screen, open_app
from tests.tui.report.runs import PERIOD, content, listed, on_report, page, rows, turn

FINDING = "The GPU waits for code of the host"


# What it says


async def test_findings_stand_in_the_header_and_one_key_shows_what_to_do(run: Path) -> None:
    async with open_app(run) as user:
        assert " 1 finding " in user.read("header")
        await user.press("exclamation_mark")
        await user.rest()
        assert user.screen.pane_name == "report"
        assert listed(user)[0] == " Findings"
        assert "!! " in listed(user)[1]
        text = " ".join(page(user).split())
        assert text.startswith("high ")
        assert "try first" in text and "saves" in text and "of the window" in text
        assert "idle: host code" in user.read("report-bars")


@pytest.mark.deep
async def test_a_finding_shows_its_numbers_scrolls_and_leads_to_more_of_them(run: Path) -> None:
    async with on_report(run, (80, 24)) as user:
        lines = user.screen.query_one("#report-page", ChosenLines)
        assert not lines.scroll_offset.y
        while lines.scroll_offset.y < lines.max_scroll_y:
            await user.press("right")
        assert content(user).finding is not None
        assert "evidence  " in page(user) and "in forward " in page(user)
        await user.press("left")
        assert lines.scroll_offset.y < lines.max_scroll_y
        while content(user).finding is not None:
            await user.press("right")
        assert content(user).state == ("idle", -1)


@pytest.mark.deep
async def test_every_section_is_listed_and_what_is_absent_says_how_to_record_it(run: Path) -> None:
    async with on_report(run, section="communication") as user:
        text = "\n".join(listed(user))
        assert all(name in text for name in SECTIONS if name != "findings")
        await turn(user, "layers")
        found = content(user).section
        assert found is not None and found.section.why
        line = next(line for line in listed(user) if " layers " in line)
        assert line.startswith("– ") or found.section.why in page(user).replace("\n ", " ")


@pytest.mark.deep
async def test_the_tabs_go_round(run: Path) -> None:
    async with open_app(run) as user:
        assert "Report" in user.read("tabs")
        await user.press("shift+tab")
        assert user.screen.pane_name == "report"
        await user.press("tab")
        assert user.screen.pane_name == "icicle"


# Where rows lead


async def test_a_row_with_a_frame_leads_to_it_and_escape_leads_back(run: Path) -> None:
    async with on_report(run, section="kernels", row=1) as user:
        assert rows(user)[1][0] == "norm"
        await user.press("enter")
        assert (user.screen.pane_name, user.selected) == ("icicle", "norm")
        assert " esc report " in user.read("keys")
        await user.press("escape")
        assert user.screen.pane_name == "report"
        assert content(user).state == ("kernels", 1)
        await user.press("escape")
        assert content(user).state == ("kernels", -1)


@pytest.mark.deep
async def test_a_frame_out_of_the_zoom_is_zoomed_out_to_and_that_is_undone(run: Path) -> None:
    async with open_app(run) as user:
        view = user.screen.shown.view
        forward = next(n for n in range(len(view.tree)) if view.tree.name(n) == "forward")
        user.screen.action_zoom_to(forward)
        await user.press("exclamation_mark")
        await turn(user, "kernels", 1)
        await user.press("enter")
        assert (user.selected, user.zoomed) == ("norm", view.tree.name(0))
        await user.press("z")
        assert user.zoomed == "forward"


@pytest.mark.deep
async def test_a_row_of_levels_that_are_not_shown_brings_them_and_undo_takes_them(
    run: Path,
) -> None:
    async with on_report(run, section="devices", row=0) as user:
        assert "device" not in user.levels
        await user.press("enter")
        await user.rest()
        assert user.levels == "device,kernel"
        assert user.selected.startswith("GPU 0") or "H100" in user.selected
        await user.press("z")
        assert "device" not in user.levels


def longest_gap(user: User) -> int:
    """The row of the longest gap, below the tables of causes and lengths."""
    shown = content(user).page
    return [shown.tables[one.table].table.key for one in shown.rows].index("longest")


async def test_a_row_with_a_window_brushes_it_on_the_timeline(run: Path) -> None:
    async with on_report(run, section="idle") as user:
        await turn(user, "idle", longest_gap(user))
        place = content(user).place
        assert place is not None and place.window is not None
        await user.press("enter")
        await user.rest()
        assert user.screen.pane_name == "timeline"
        time = user.screen.query_one(TimelinePane)._time
        assert time is not None and time.viewport.brush is not None
        brushed = time.viewport.brush.window.moved(time.timeline.origin)
        assert tuple(brushed) == place.window
        assert time.viewport.window != time.viewport.whole
        assert "idle" in user.read("timeline-gap")
        await user.press("z")
        assert time.viewport.brush is None
        assert time.viewport.window == time.viewport.whole
        await user.press("escape")
        assert user.screen.pane_name == "report"


@pytest.mark.deep
async def test_a_brush_from_the_report_filters_like_any_other(run: Path) -> None:
    async with on_report(run, section="idle") as user:
        await turn(user, "idle", longest_gap(user))
        place = content(user).place
        assert place is not None and place.window is not None
        low, high = place.window
        user.screen.parts.timeline.wanted = TimeWindow(low - PERIOD, high + PERIOD)
        user.screen.action_show_view("timeline")
        await user.rest()
        await user.press("enter")
        assert user.screen.wanted.where == (Time(low - PERIOD, high + PERIOD),)


# It follows the selection


@pytest.mark.deep
async def test_it_is_of_what_the_filters_leave(run: Path) -> None:
    async with on_report(run, section="kernels") as user:
        assert [row[0] for row in rows(user)] == ["gemm", "norm"]
        user.screen._project(USUAL.__class__(where=(Kernel("norm"),), naming=USUAL.naming))
        await user.rest()
        assert [row[0] for row in rows(user)] == ["norm"]
        await user.press("z")
        await user.rest()
        assert [row[0] for row in rows(user)] == ["gemm", "norm"]


# Searching, sorting, the mouse


@pytest.mark.deep
async def test_search_leaves_the_rows_that_match(run: Path) -> None:
    async with on_report(run, section="kernels") as user:
        await user.press("slash", *"nor", "enter")
        assert [row[0] for row in rows(user)] == ["norm"]
        assert "row 1 of 1 matching rows" in user.read("status")
        assert "1 row does not match" in page(user)
        await user.press("escape", "escape")
        assert [row[0] for row in rows(user)] == ["gemm", "norm"]


@pytest.mark.deep
async def test_a_wild_expression_holds_up_nothing(run: Path) -> None:
    async with on_report(run, section="kernels") as user:
        await user.press("slash", *"(.*.*)*x$", "enter")
        assert len(rows(user)) in (0, 2)


@pytest.mark.deep
async def test_keys_and_clicks_sort(run: Path) -> None:
    async with on_report(run, section="kernels", row=0) as user:
        names = content(user).page.tables[0].head
        await user.press(str(names.index("p50") + 1))
        assert [row[0] for row in rows(user)] == ["norm", "gemm"]
        assert "sorted by p50" in user.read("status")
        await user.press("0")
        assert [row[0] for row in rows(user)] == ["gemm", "norm"]
        await user.press("greater_than_sign")
        assert names[1] in user.read("status")
        found = next(n for n, line in enumerate(page(user).splitlines()) if "p50" in line)
        column = page(user).splitlines()[found].index("p50")
        lines = user.screen.query_one("#report-page", ChosenLines)
        await user.pilot.click(lines, offset=(column + 2, found))
        await user.settle()
        assert [row[0] for row in rows(user)] == ["norm", "gemm"]


@pytest.mark.deep
async def test_the_mouse_chooses_and_opens(run: Path) -> None:
    async with on_report(run) as user:
        at = next(n for n, line in enumerate(listed(user)) if " kernels " in line)
        await user.pilot.click("#report-list", offset=(5, at))
        await user.rest()
        assert content(user).state == ("kernels", -1)
        line = content(user).page.line_of(1)
        await user.pilot.click("#report-page", offset=(8, line))
        await user.settle()
        assert content(user).state == ("kernels", 1)
        await user.pilot.click("#report-page", offset=(8, line), times=2)
        await user.rest()
        assert (user.screen.pane_name, user.selected) == ("icicle", "norm")


@pytest.mark.deep
async def test_long_lists_and_tables_scroll_with_what_is_selected(run: Path) -> None:
    async with on_report(run, (80, 24)) as user:
        await user.press("end")
        last = list(SECTIONS)[-1]
        assert content(user).state[0] == last
        assert f" {last} " in user.read("report-list")
        await turn(user, "idle", 0)
        await user.press("end")
        shown = content(user).page
        assert content(user).state == ("idle", len(shown.rows) - 1)
        lowest = shown.rows[-1]
        assert shown.tables[lowest.table].cells[lowest.row][1][:6] in page(user)
        head = shown.tables[lowest.table].head[0]
        assert head in page(user).splitlines()[0]


# Handing over


@pytest.mark.deep
async def test_the_command_line_prints_the_section_and_the_state_opens_it(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with on_report(run, section="kernels", row=1) as user:
        await user.press("C")
        line = user.app.clipboard
        assert line.startswith(f"flame report {run} ")
        assert line.endswith("--section kernels")
        state = user.screen.state()
    assert (state.view, state.section, state.row) == ("report", "kernels", 1)
    kept = decode("")
    assert (kept.view, kept.section, kept.row) == ("report", "kernels", 1)
    app = FlameApp(Inputs((run,)), LoadOptions(), USUAL, kept)
    async with app.run_test(size=(120, 40)) as pilot:
        user = User(app, pilot)
        await user.until(lambda: main_screen(app))
        await user.rest()
        assert content(user).state == ("kernels", 1)


@pytest.mark.deep
async def test_a_state_of_a_section_that_there_is_not_opens_the_findings(run: Path) -> None:
    app = FlameApp(
        Inputs((run,)), LoadOptions(), USUAL, AppState(view="report", section="none", row=99)
    )
    async with app.run_test(size=(120, 40)) as pilot:
        user = User(app, pilot)
        await user.until(lambda: main_screen(app))
        await user.rest()
        assert content(user).state == ("findings", 0)


@pytest.mark.deep
async def test_the_row_is_copied(run: Path) -> None:
    async with on_report(run, section="kernels", row=1) as user:
        await user.press("y")
        assert user.app.clipboard.startswith("norm  900 µs")
        await user.press("Y")
        assert "kernel" in user.app.clipboard or "name: norm" in user.app.clipboard
        await turn(user, "findings", 0)
        await user.press("y")
        assert "Move" in user.app.clipboard or len(user.app.clipboard) > 40


@pytest.mark.deep
async def test_what_is_shown_is_exported_and_nothing_is_replaced_unasked(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    async with on_report(run, section="kernels") as user:
        await user.press("e", "enter")
        await user.until(lambda: user.app.screen is user.screen)
        text = (tmp_path / "run.report.md").read_text("utf-8")
        assert "`norm`" in text and "`gemm`" in text
        before = (tmp_path / "run.report.md").stat().st_mtime_ns
        await user.press("e", "enter")
        assert user.app.screen is not user.screen
        assert (tmp_path / "run.report.md").stat().st_mtime_ns == before
        await user.press("escape", "e", "right", "enter")
        await user.until(lambda: user.app.screen is user.screen)
        lines = (tmp_path / "run.csv").read_text("utf-8").splitlines()
        assert lines[0].startswith("name,") and len(lines) == 3
        await user.press("e", "left", "down", "right", "enter")
        await user.until(lambda: user.app.screen is user.screen)
        facts = json.loads((tmp_path / "run.report.json").read_text("utf-8"))
        assert set(facts) >= {"flame_report", "findings", "kernels", "budget"}


@pytest.mark.deep
async def test_findings_are_told_of_the_frames_that_they_name(run: Path) -> None:
    async with on_report(run) as user:
        known = user.screen.reports.known(user.screen.shown.selection)
        assert "tails" in known and "findings" in known


async def test_the_details_of_all_say_why_gpus_were_idle(run: Path) -> None:
    async with open_app(run, (160, 50)) as user:
        await user.until(lambda: "causes" in user.read("details"))
        text = " ".join(user.read("details").split())
        assert "idle 52.9 ms" in text
        assert "causes host code 51.7 ms, after launch 590 µs, in launch 590 µs (! has" in text
        await user.press("x")  # there the root is a frame like others
        await user.rest()
        assert "causes" not in user.read("details")
