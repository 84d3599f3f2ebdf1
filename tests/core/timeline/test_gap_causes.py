"""Why a GPU was idle, by gap and by cell: as plain loops find it, adding up to the budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.analysis.utilization import DeviceGaps, utilizations
from flame.core.loading.many import load
from flame.core.model.calls import IdleCause
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter, Time
from flame.core.projection.selection import select
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.timeline.busy_time import BusyTime, TimeWindow
from flame.core.timeline.gap_causes import WIDE, GapCauses, causes_of_gaps, gap_cells
from flame.core.timeline.idle_parts import idle_parts
from flame.core.timeline.raster import Grid
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import deep_except, examples

random_traces = examples(0.5, [HealthCheck.too_slow])
KINETO_TRACES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))


def sums_over_gaps(profile: Profile, where: tuple[Filter, ...]) -> dict[int, Counter[str]]:
    """The causes of all gaps of each GPU, gap by gap."""
    causes = {each.device: each for each in causes_of_gaps(profile)}
    found = {}
    for each in utilizations(profile, where):
        own = found[each.device] = Counter[str]()
        gaps = DeviceGaps(profile, each)
        for low, high in zip(gaps.begin.tolist(), gaps.end.tolist(), strict=True):
            told = causes[each.device].within(TimeWindow(low, high))
            assert sum(one.length for one in told) == high - low
            assert [one.length for one in told] == sorted(one.length for one in told)[::-1]
            for cause, length in told:
                own[cause.title] += length
    return found


def budget_of(profile: Profile, where: tuple[Filter, ...]) -> dict[int, dict[str, int]]:
    """The idle parts of the report's budget."""
    return {
        one.gpu.device: {each.title: int(one.idle[each]) for each in IdleCause if one.idle[each]}
        for one in budgets(Scope(profile, select(where=where)))
    }


def windows_of(profile: Profile) -> Iterator[tuple[Filter, ...]]:
    third = max((profile.end - profile.begin) // 3, 1)
    yield ()
    yield (Time(profile.begin + third, profile.end - third),)


@random_traces
@given(scripts())
def test_gaps_add_up_to_the_budget(trace_file: Path, script: Script) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    for where in windows_of(profile):
        assert sums_over_gaps(profile, where) == budget_of(profile, where)


@needs_traces
@pytest.mark.parametrize(
    "name", deep_except(["ten_streams.sqlite"], [*NSYS_TRACES, *KINETO_TRACES])
)
def test_gaps_of_real_traces_add_up_to_the_budget(name: str) -> None:
    profile = load(TRACES / ("nsys" if name.endswith(".sqlite") else "kineto") / name)
    for where in windows_of(profile):
        found = sums_over_gaps(profile, where)
        assert found == budget_of(profile, where)
        assert {device: sum(own.values()) for device, own in found.items()} == {
            each.device: each.idle for each in utilizations(profile, where)
        }


# Cells


def expected_cells(profile: Profile, device: int, grid: Grid, origin: int) -> list[set[IdleCause]]:
    """The causes that most of each cell of a wide gap may pass with; empty where there is none."""
    [parts] = [each for each in idle_parts(profile) if each.device == device]
    [own] = [each for each in utilizations(profile) if each.device == device]
    gaps = DeviceGaps(profile, own)
    found: list[set[IdleCause]] = [set() for _ in range(grid.width)]
    for begin, end in zip(
        (gaps.begin - origin).tolist(), (gaps.end - origin).tolist(), strict=True
    ):
        left, right = (round(grid.cell(time)) for time in (begin, end))
        if right - left < WIDE:
            continue
        for cell in range(max(left, 0), min(right, grid.width)):
            low = max(int(grid.edges[cell] // 1), begin)
            high = min(max(int(grid.edges[cell + 1] // 1), low + 1), end)
            lengths = Counter[IdleCause]()
            for at in range(len(parts.low)):
                inside = min(parts.high[at] - origin, high) - max(parts.low[at] - origin, low)
                lengths[IdleCause(parts.cause[at])] += max(int(inside), 0)
            most = max(lengths.values())
            found[cell] = {cause for cause, length in lengths.items() if length == most}
    return found


@random_traces
@given(scripts(), st.integers(1, 60), st.integers(0, 20), st.integers(1, 200))
def test_cells_have_the_cause_that_takes_most_of_them(
    trace_file: Path, script: Script, width: int, low: int, length: int
) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    origin, grid = profile.rows_begin, Grid(TimeWindow(low, low + length), width)
    causes = {each.device: each for each in causes_of_gaps(profile)}
    for each in utilizations(profile):
        gaps = DeviceGaps(profile, each)
        cells = gap_cells(gaps.begin, gaps.end, causes[each.device], grid, origin)
        expected = expected_cells(profile, each.device, grid, origin)
        for cell, possible in enumerate(expected):
            cause, gap = int(cells.cause[cell]), int(cells.gap[cell])
            assert (cause in possible) if possible else (cause, gap) == (-1, -1)
            if possible:
                middle = grid.middles[cell] + origin
                assert gaps.begin[gap] <= middle <= gaps.end[gap]


def test_a_gap_under_three_cells_shows_nothing() -> None:
    times = BusyTime.between(np.array([0]), np.array([100]))
    causes = GapCauses(0, {IdleCause.SYNC: times})
    for end, cells in ((29, 3), (24, 0), (26, 3)):
        found = gap_cells(np.array([0]), np.array([end]), causes, Grid(TimeWindow(0, 100), 10), 0)
        assert np.count_nonzero(found.cause == IdleCause.SYNC) == cells
        assert np.count_nonzero(found.cause >= 0) == cells


def test_what_of_a_cell_lies_in_another_gap_does_not_count() -> None:
    sync = BusyTime.between(np.array([0]), np.array([34]))
    host = BusyTime.between(np.array([34, 37]), np.array([36, 100]))
    causes = GapCauses(0, {IdleCause.SYNC: sync, IdleCause.HOST_CODE: host})
    begin, end = np.array([0, 37]), np.array([36, 100])
    found = gap_cells(begin, end, causes, Grid(TimeWindow(0, 100), 10), 0)
    assert found.cause.tolist() == [IdleCause.SYNC] * 4 + [IdleCause.HOST_CODE] * 6
    assert found.gap.tolist() == [0] * 4 + [1] * 6
    host = BusyTime.between(np.array([0, 34]), np.array([33, 36]))
    sync = BusyTime.between(np.array([36]), np.array([100]))
    causes = GapCauses(0, {IdleCause.HOST_CODE: host, IdleCause.SYNC: sync})
    begin, end = np.array([0, 34]), np.array([33, 100])
    found = gap_cells(begin, end, causes, Grid(TimeWindow(0, 100), 10), 0)
    assert found.cause.tolist() == [IdleCause.HOST_CODE] * 3 + [IdleCause.SYNC] * 7


def test_cells_shorter_than_a_nanosecond_have_a_cause() -> None:
    causes = GapCauses(0, {IdleCause.ALLOC: BusyTime.between(np.array([0]), np.array([100]))})
    grid = Grid(TimeWindow(50, 54), 16)
    found = gap_cells(np.array([0]), np.array([100]), causes, grid, 0)
    assert found.cause.tolist() == [IdleCause.ALLOC] * 16


def test_of_idle_time_without_a_known_launch_nothing_is_known() -> None:
    times = BusyTime.between(np.array([0]), np.array([100]))
    assert GapCauses(0, {IdleCause.UNKNOWN: times}).unknown and GapCauses(0, {}).unknown
    assert not GapCauses(0, {IdleCause.UNKNOWN: times, IdleCause.ALLOC: times}).unknown
