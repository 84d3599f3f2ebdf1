"""What ranks did step by step, against plain loops."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import msgspec
import numpy as np
import pytest

from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary import RankSummary
from flame.tui.ranks import step_table
from flame.tui.ranks.step_table import ABSENT, StepTable, step_tables
from tests.support.ranks.random_ranks import random_summary

Steps = list[dict[int, int]]
"""The time of each step of each rank."""


def with_steps(steps: Steps) -> RankSummary:
    summary = merge_summaries([random_summary(3, rank, 4) for rank in range(len(steps))])
    info = tuple(
        msgspec.structs.replace(one, step_numbers=tuple(found), step_times=tuple(found.values()))
        for one, found in zip(summary.info, steps, strict=True)
    )
    return replace(summary, info=info)


def times_of(summary: RankSummary) -> StepTable:
    return next(one for one in step_tables(summary) if one.title == "step time")


def table_of(steps: Steps) -> StepTable:
    return times_of(with_steps(steps))


def random_steps(seed: int) -> Steps:
    rng = Random(seed)
    return [
        {step: rng.randrange(0, 50) for step in range(3, 20) if rng.random() < 0.8}
        for _ in range(6)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_medians_and_deviations_are_of_those_that_have_the_step(seed: int) -> None:
    steps = random_steps(seed)
    table = table_of(steps)
    assert table.first.tolist() == sorted({step for rank in steps for step in rank})
    for column, step in enumerate(table.first.tolist()):
        there = sorted(rank[step] for rank in steps if step in rank)
        median = there[math.ceil(len(there) / 2) - 1]
        assert table.median[column] == median
        for rank, found in enumerate(steps):
            far = float(table.deviation(rank)[column])
            if step not in found:
                assert math.isnan(far) and table.values[rank, column] == ABSENT
            elif median:
                assert far == (found[step] - median) / median
            else:
                assert far == (math.inf if found[step] else 0.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("width", [1, 4, 5, 30])
def test_a_cell_shows_the_step_that_is_farthest_off(seed: int, width: int) -> None:
    table = table_of(random_steps(seed))
    for rank in range(6):
        cells, deviation = table.cells(rank, width), table.deviation(rank)
        number = min(width, len(deviation))
        assert len(cells.column) == number
        for cell in range(number):
            low, high = (place * len(deviation) // number for place in (cell, cell + 1))
            sizes = [-1.0 if math.isnan(one) else abs(one) for one in deviation[low:high]]
            if max(sizes) < 0:
                assert cells.column[cell] == ABSENT and math.isnan(cells.deviation[cell])
            else:
                assert cells.column[cell] == low + sizes.index(max(sizes))


def test_the_rank_that_is_slowest_over_all_steps_is_the_first() -> None:
    table = table_of([{0: 10, 1: 10}, {0: 10, 1: 15}, {0: 12, 1: 10}, {}, {0: 10, 1: 10}])
    assert table.worst_first.tolist()[:2] == [1, 2]
    assert table.worst_first.tolist()[-1] == 3
    assert table.total.tolist() == [20, 25, 22, ABSENT, 20]
    assert math.isnan(table.total_deviation(3)) and table.total_deviation(1) == 0.25


def test_the_longer_time_of_a_step_counts_that_a_rank_has_twice() -> None:
    summary = with_steps([{0: 5, 1: 6}, {0: 5, 1: 6}])
    twice = msgspec.structs.replace(summary.info[0], step_numbers=(1, 1), step_times=(9, 4))
    table = times_of(replace(summary, info=(twice, summary.info[1])))
    assert table.values.tolist() == [[ABSENT, 9], [5, 6]]


def test_many_steps_are_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_table, "_MOST_CELLS", 8)
    table = table_of([{step: step for step in range(9)}, dict.fromkeys(range(9), 2)])
    assert table.first.tolist() == [0, 3, 6] and table.last.tolist() == [2, 5, 8]
    assert table.values.tolist() == [[2, 5, 8], [2, 2, 2]]


def test_without_steps_there_are_sums_of_the_whole_run() -> None:
    tables = step_tables(with_steps([{}, {}, {}]))
    assert tables and not any(table.by_step for table in tables)
    assert "step time" not in [table.title for table in tables]
    by_title = {table.title: table for table in tables}
    summary = with_steps([{}, {}, {}])
    assert by_title["GPU time"].total.tolist() == summary.rank_total[1].tolist()
    assert np.array_equal(by_title["GPU time"].values[:, 0], summary.rank_total[1])
