"""The sections of a comparison are a view, and lead into the picture and back."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from flame.cli.parser import parse_command_line
from flame.core.compare.sections.diff_report import SECTIONS, diff_sections
from flame.options.state import decode
from flame.tui.diff.report_pane import ComparisonReports
from flame.tui.diff.selection import DiffSelection
from tests.tui.conftest import User
from tests.tui.diff.opened import chosen, compared, open_diff
from tests.tui.diff.test_diff_app import BASE, NEW, SHOWN, line_of, written

NAMES = [name for name in SECTIONS if name != "ranks"]
"""The sections on traces."""


@pytest.fixture
def traces(tmp_path: Path) -> tuple[Path, Path]:
    return written(tmp_path / "before.sqlite", BASE), written(tmp_path / "after.sqlite", NEW)


async def to_section(user: User, name: str) -> None:
    await user.press("exclamation_mark", "home", *NAMES.index(name) * ["down"])
    await user.rest()
    assert user.screen.parts.report.section[0] == name


async def test_all_sections_are_listed_and_worked_out(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, (180, 50), chosen(SHOWN)) as user:
        await user.press("tab", "tab", "tab", "tab")
        await user.rest()
        assert user.screen.pane.name_ == "report"
        lines = user.read("report-list").splitlines()
        names = [line.split()[0] for line in lines[1 : 1 + len(NAMES)]]
        assert lines[0] == " Sections" and names == NAMES
        assert "NEW may take more GPU time: 53.0 → 71.0 ms" in user.read("report-page")
        known = user.screen.reports.known(user.screen.shown.selection)
        sections = diff_sections(compared(user).comparison)
        assert [known[one.name].section for one in sections] == sections  # type: ignore[union-attr]


@pytest.mark.deep
async def test_rows_lead_to_their_frames_and_back(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, (180, 50), chosen(SHOWN)) as user:
        await to_section(user, "frames")
        await user.press("right", "enter")
        await user.rest()
        view = user.screen.shown.view
        assert user.screen.pane.name_ == "icicle"
        assert view.tree.names(view.cursor.node) == ("attention", "gemm")
        await user.press("escape")
        assert user.screen.pane is user.screen.parts.report
        assert user.screen.parts.report.section[1] == 0
        await to_section(user, "kernels")
        assert user.read("report-page").splitlines()[3].split()[:2] == ["›", "gemm"]
        await user.press("right", "down", "enter")
        await user.rest()
        assert user.selected == "gelu"
        await to_section(user, "budget")
        await user.press("right", "enter")
        assert "leads nowhere" in user.read("status")


@pytest.mark.deep
async def test_another_basis_is_another_report(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, (180, 50), chosen(SHOWN)) as user:
        await to_section(user, "kernels")
        first = user.read("report-page")
        await user.press("p")
        await user.rest()
        assert user.read("report-page") != first
        await user.press("z")
        await user.rest()
        assert user.read("report-page") == first


def test_how_it_is_drawn_makes_no_other_report() -> None:
    subject, shown = ComparisonReports().subject, chosen(SHOWN)
    drawn = DiffSelection(
        SHOWN.levels, naming=SHOWN.naming, width="base", measured="self", all_changes=True,
        timeline="base",
    )  # fmt: skip
    assert subject(drawn) == subject(shown) != subject(chosen(SHOWN, "second"))


@pytest.mark.deep
async def test_its_command_line_shows_the_same_section(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, (180, 50), chosen(SHOWN)) as user:
        await to_section(user, "kernels")
        await user.press("right", "down", "down")
        line, page = line_of(user), user.read("report-page")
    state = decode(parse_command_line(shlex.split(line)[1:]).state)
    async with open_diff(*traces, (180, 50), chosen(SHOWN), state=state) as user:
        await user.rest()
        assert user.read("report-page") == page and line_of(user) == line
        assert user.screen.parts.report.section == ("kernels", 2)
