"""The report in the app on traces without findings or without a GPU, and on snapshots of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.projection.filters import At
from flame.core.report.report import SECTIONS
from tests.support.writers.snapshotfile import SnapshotFile
from tests.tui import traces
from tests.tui.conftest import open_app
from tests.tui.report.runs import listed, on_report, page, rows, turn

# Odd traces


@pytest.mark.deep
@pytest.mark.parametrize(
    "make", [traces.hostile, traces.host_only, traces.unlaunched, traces.decode, traces.deep]
)
async def test_odd_traces_are_reported_on(make: object, tmp_path: Path) -> None:
    path = make(tmp_path / "odd.sqlite")  # type: ignore[operator]
    async with open_app(path, (80, 24)) as user:
        user.screen.action_show_view("report")
        await user.rest()
        for name in SECTIONS:
            await turn(user, name, 0)
            await user.press("end", "enter")
            await user.rest()
            if user.screen.pane_name != "report":
                await user.press("escape")
        assert user.app.crash is None
        shown = user.read("report-page") + user.read("report-list")
        assert shown.isprintable() or all(one.isprintable() for one in shown.splitlines())


async def test_a_failed_request_leads_to_who_held_the_memory_then(tmp_path: Path) -> None:
    file = SnapshotFile()
    much = file.alloc(900_000, ("main", "warm_up"))
    file.free(much)
    file.alloc(300_000, ("main", "cache"))
    file.fail(9_000_000, 1_000)
    file.alloc(200_000, ("main", "after"))
    path = file.write(tmp_path / "failed.pickle")
    async with on_report(path, section="findings", row=0) as user:
        assert "A request for memory failed" in page(user)
        await user.press("enter")
        await user.settle()
        shown = user.screen.shown
        assert (user.screen.pane_name, shown.metric.key) == ("icicle", "peak")
        assert shown.selection.where == (At("oom"),)
        assert int(shown.view.tree.total[0]) == 300_000
        await user.press("escape")
        assert user.screen.pane_name == "report"
        await turn(user, "memory")
        await user.press("z")
        await user.settle()
        assert int(user.screen.shown.view.tree.total[0]) == 900_000


@pytest.mark.deep
async def test_a_snapshot_without_findings_leads_to_whose_the_memory_was(tmp_path: Path) -> None:
    file = SnapshotFile()
    file.alloc(2_000_000)
    async with on_report(file.write(tmp_path / "fine.pickle"), section="findings") as user:
        assert "Nothing is wrong that the rules know" in page(user)
        assert "whose the memory was: memory" in page(user) and "kernels" not in page(user)


@pytest.mark.deep
async def test_stacks_alone_have_no_findings_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "run.folded").write_text("main;work 5\nmain;rest 3\n")
    async with open_app(tmp_path / "run.folded") as user:
        assert "finding" not in user.read("header")
        await user.press("exclamation_mark")
        await user.rest()
        assert "none: a file of stacks" in "\n".join(listed(user))
        assert "a file of stacks knows no activities" in page(user)
        await turn(user, "summary")
        assert rows(user)


@pytest.mark.deep
async def test_a_small_trace_has_no_chip(decode: Path) -> None:
    async with open_app(decode) as user:
        assert "finding" not in user.read("header")
