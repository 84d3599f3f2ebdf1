"""What the host ran while GPUs were idle: by hand, and where its rows lead."""

from __future__ import annotations

from pathlib import Path

from flame.core.loading.many import load
from flame.core.projection.filters import Time
from flame.core.projection.selection import select
from flame.core.report.scope import Scope
from flame.core.report.sections.idle import idle_section
from tests.support.report_rows import table_rows
from tests.support.writers.nsysfile import NsysFile

LOADS = 10
"""More ranges that differ in a number are one."""


def trace(path: Path) -> Path:
    """Kernels of 10 ns every 100, the last but one later by 100; a range before all but that."""
    with NsysFile(path) as file:
        file.kernel("gemm", 0, 10, corr=None)
        for number in range(1, LOADS + 2):
            at = 100 * number + 100 * (number >= LOADS)
            file.api("cudaLaunchKernel_v7000", at - 5, at, corr=number)
            file.kernel("gemm", at, at + 10, corr=number)
            if number != LOADS:
                file.nvtx(f"load {number}", at - 45 - number, at)
    return path


def test_what_differs_in_numbers_alone_is_one_row_which_leads_to_its_longest_time(
    tmp_path: Path,
) -> None:
    scope = Scope(load(trace(tmp_path / "trace.sqlite")))
    section = idle_section(scope)
    numbers = [*range(1, LOADS), LOADS + 1]
    found = {row["frame"]: row["ns"] for row in table_rows(section, "by_host_frame")}
    loads = sum(40 + number for number in numbers)
    assert found == {"[none]": 85 * len(numbers) + 185 - loads, "load *": loads}
    [table] = [one for one in section.tables if one.key == "by_host_frame"]
    last = 100 * (LOADS + 2)
    windows = {place.window for place in table.places if place}
    assert windows == {(last - 45 - LOADS - 1, last - 5), (100 * LOADS - 90, 100 * LOADS + 95)}


def test_where_it_leads_is_within_the_window(tmp_path: Path) -> None:
    window = select(where=(Time(220, 290),))
    scope = Scope(load(trace(tmp_path / "trace.sqlite")), window)
    [table] = [one for one in idle_section(scope).tables if one.key == "by_host_frame"]
    assert [place.window for place in table.places if place] == [(252, 290), (220, 252)]
