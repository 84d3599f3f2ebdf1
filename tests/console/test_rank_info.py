"""What `flame info` says of a summary is what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from flame.console.rank_info import rank_facts, rank_lines
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary import LostRank, RankInfo, RankSummary
from flame.core.units import format_percent
from tests.support.ranks.random_ranks import random_summary

SECOND = 1_000_000_000
DAY = 1_790_000_000 * SECOND


def ranks(*numbers: int, **known: Any) -> RankSummary:
    """A summary of ranks with these numbers, of which this is known."""
    parts = []
    for at, number in enumerate(numbers):
        one = random_summary(1, number, 3)
        info = RankInfo(number, f"{at}.sqlite", end=SECOND, origin=DAY + at * SECOND)
        parts.append(replace(one, info=(msgspec.structs.replace(info, **known),), lost=()))
    return merge_summaries(parts)


def line(summary: RankSummary, label: str) -> Sequence[str]:
    return dict(rank_lines(summary)).get(label, [])


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0,), "1: 0"),
        ((3, 4, 5), "3: 3–5"),
        ((9, 0, 1, 4), "4: 0–1, 4, 9"),
        ((0, 0, 0, 2), "4: 0, 2 (0 3 times)"),
        (tuple(range(0, 20, 2)), "10: 0, 2, 4, 6, 8, 10, 12, 14, 2 more"),
    ],
)
def test_ranks_are_listed_in_short(numbers: tuple[int, ...], said: str) -> None:
    assert line(ranks(*numbers), "ranks") == [said]


def test_times_are_those_of_all_and_of_each() -> None:
    said = "2026-09-21 14:13:20 UTC, each for 1.00 s, 3.00 s in all"
    assert line(ranks(0, 1, 2), "recorded") == [said]
    assert line(ranks(0), "recorded") == ["2026-09-21 14:13:20 UTC, for 1.00 s"]
    unknown = ranks(0, 1, origin=None)
    assert line(unknown, "recorded") == ["each for 1.00 s; the time of day is not known"]
    assert rank_facts(unknown)["begin_ns"] is None
    facts = rank_facts(ranks(0, 1, 2))
    assert (facts["begin_ns"], facts["end_ns"]) == (DAY, DAY + 3 * SECOND)
    assert line(ranks(0, origin=1 << 61), "recorded")[0].endswith("for 1.00 s")


def test_hosts_are_counted_where_any_is_known() -> None:
    assert line(ranks(0, 1), "hosts") == []
    some = merge_summaries([ranks(0, 1, host="b"), ranks(2)])
    assert line(some, "hosts") == ["b (2 ranks), unknown (1 rank)"]


def test_steps_say_by_which_expression_they_were_told() -> None:
    told = {"step_numbers": (4, 5), "step_times": (1, 2), "step_work": (0, 0)}
    some = merge_summaries([ranks(0), ranks(1, **told, iteration="batch")])
    assert line(some, "steps") == ["2, 4 to 5, on 1 rank, --iteration batch"]
    steps = {"count": 2, "first": 4, "last": 5, "ranks": 1, "iteration": ["batch"]}
    assert rank_facts(some)["steps"] == steps
    assert line(ranks(0), "steps") == ["none"] and rank_facts(ranks(0))["steps"] is None


def test_what_is_not_known_is_not_told() -> None:
    lost = LostRank("x.sqlite", "no such file")
    some = replace(ranks(0, 1), lost=(lost,))
    facts = rank_facts(some)
    assert facts["lost"] == [lost._asdict()]
    assert line(some, "not read") == ["x.sqlite: no such file"]
    assert facts["clocks"] is None
    known = dict.fromkeys(("collectives", "wait_ns", "transfer_ns", "by_step"))
    why = "no collective was recorded that brings ranks together"
    assert facts["waits"] == {**known, "why": why}
    assert line(some, "collectives") == ["none"]
    assert line(some, "waits") == line(some, "clocks") == []


def test_what_was_left_out_of_single_ranks_is_told() -> None:
    some = ranks(0, 1)
    cell = some.cell.copy()
    cell[1, ::2] = 0
    some = replace(some, cell=cell)
    whole, kept = int(some.rank_total[1].sum()), int(cell[1].sum())
    assert 0 < kept < whole
    assert rank_facts(some)["left_out"]["gpu"] == whole - kept  # type: ignore[index]
    assert line(some, "kept")[0].endswith(f" {format_percent(kept, whole)} of the GPU time")
