"""A kept base has sums alone: the app shows these, and says what it cannot show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.compare.keep import keep_run
from flame.core.compare.kept.base_file import encode_base
from flame.core.compare.sides import Run
from flame.core.loading.many import load
from flame.core.projection.filters import Kernel, Steps
from flame.core.projection.selection import Selection
from tests.tui.conftest import USUAL
from tests.tui.diff.opened import chosen, compared, open_diff
from tests.tui.diff.test_diff_app import BASE, NEW, SHOWN, written


def kept(path: Path, *traces: Path) -> Path:
    runs = [Run(load(trace), trace.name) for trace in traces]
    selection = Selection(naming=SHOWN.naming)
    path.write_bytes(encode_base([keep_run(run, selection) for run in runs]))
    return path


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    before = written(tmp_path / "before.sqlite", BASE)
    base = kept(tmp_path / "main.flame-base.json.gz", before)
    before.unlink()
    return base, written(tmp_path / "after.sqlite", NEW)


async def test_sums_are_shown_and_what_is_missing_is_said(sides: tuple[Path, Path]) -> None:
    async with open_diff(*sides, selection=chosen(SHOWN)) as user:
        await user.rest()
        assert "main.flame-base.json.gz → after.sqlite" in user.read("header")
        assert "BASE 53.0 ms → NEW 71.0 ms   +18.0 ms  +34.0 %" in user.read("change")
        details = user.read("details")
        assert "count       6 → 7×" in details and "by count    +8.83 ms" in details
        lines = {line.split()[0]: line for line in details.splitlines() if line}
        assert lines["BASE"].split()[1:] == ["kept", "as", "sums", "alone"]
        assert "20.0 ms" in lines["NEW"]
        assert "kept bases have no activities" in " ".join(details.split())


@pytest.mark.deep
async def test_the_timeline_says_which_side_has_one(sides: tuple[Path, Path]) -> None:
    async with open_diff(*sides, selection=chosen(SHOWN)) as user:
        await user.press("tab", "tab", "tab")
        await user.rest()
        timeline = user.screen.parts.timeline
        assert timeline.rows.display and "stream" in user.read("timeline-rows")
        await user.press("D")
        assert "a kept base has sums, and no times: D shows the other" in user.read("timeline-head")
        assert not timeline.rows.display
        await user.press("down", "enter", "D")
        await user.rest()
        assert timeline.rows.display and "stream" in user.read("timeline-rows")


@pytest.mark.deep
async def test_bases_of_several_runs_on_both_sides(tmp_path: Path) -> None:
    traces = [
        written(tmp_path / f"{at}.sqlite", {("attention", "gemm"): [10 + at]}) for at in range(8)
    ]
    base = kept(tmp_path / "base.flame-base.json.gz", *traces[:4])
    new = kept(tmp_path / "new.flame-base.json.gz", *traces[4:])
    async with open_diff(base, new, selection=chosen(SHOWN)) as user:
        await user.rest()
        assert "BASE 11.5 ms → NEW 15.5 ms" in user.read("change")
        assert "beyond noise" in user.read("change")
        details = " ".join(user.read("details").split())
        assert "changed beyond noise: 4 runs each" in details
        assert "each kept as sums alone" in details
        labels = [run.label for run in compared(user).comparison.sides.runs]
        assert labels[0] == "BASE 1" and labels[-1] == "NEW 4"
        await user.press("tab", "tab", "tab")
        assert "and no times" in user.read("timeline-head")
        assert "other side" not in user.read("timeline-head")
        await user.press("w")
        text = "\n".join(strip.text for strip in user.app.screen._compositor.render_strips())
        assert "a kept base: sums, no single activities, no times" in text
        assert "BASE 1" in text and "activities  0" not in text


@pytest.mark.deep
async def test_filters_of_what_is_not_kept_are_refused_in_a_line(sides: tuple[Path, Path]) -> None:
    async with open_diff(*sides, selection=chosen(SHOWN)) as user:
        shown = compared(user)
        wanted = replace(user.screen.wanted, where=(Steps.of([0]),))
        user.screen.apply((wanted,))
        await user.rest()
        assert compared(user) is shown and "is a kept base" in user.read("status")


@pytest.mark.deep
async def test_parts_of_a_kept_base_are_refused(sides: tuple[Path, Path]) -> None:
    async with open_diff(*sides, selection=chosen(USUAL), where=(Kernel("gemm"),)) as user:
        assert "--base-select" in str(user.app.failure)
