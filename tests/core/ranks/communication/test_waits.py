"""Who waited for whom, against plain loops and the truth of simulated jobs."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.rank_summary.collective_table import COLUMNS, CollectiveTable, IdentitySource
from flame.core.rank_summary.merge_collectives import merge_collectives
from flame.core.rank_summary.rank_communication import RankCommunication, merge_communication
from flame.core.ranks.communication.arrivals import Arrivals, communication_of, table_of
from flame.core.ranks.communication.clocks import clocks_of
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.communication.rank_steps import RankSteps
from flame.core.ranks.communication.waits import causes_of, waits_by_sums, waits_of
from tests.support.ranks.rank_arrivals import (
    Met,
    arrivals_by_hand,
    simulate,
    whole_communication,
    whole_table,
)
from tests.support.tiers import examples

GROUPS, STEPS = np.array([[1, 5], [2, 5], [3, 5]], np.uint64), np.arange(2)


@st.composite
def jobs(draw: st.DrawFn) -> list[Arrivals]:
    """Ranks with collectives of several communicators: ties, missing ones, different names."""
    found = []
    keys = st.tuples(st.sampled_from("abcd"), st.integers(0, 3))
    common = draw(st.lists(keys, unique=True, min_size=3, max_size=12))
    members = {name: draw(st.sampled_from([2, 3])) for name in "abcd"}
    for at, rank in enumerate(draw(st.permutations(range(9)))[: draw(st.sampled_from([1, 2, 3]))]):
        lacks = draw(st.lists(st.sampled_from(common), max_size=1)) if common else []
        own = [key for key in common if key not in lacks and at < members[key[0]]]
        collectives = [Met(ordinal, draw(st.integers(0, 4)), name) for name, ordinal in own]
        collectives = [
            one._replace(
                kind=draw(st.sampled_from(["all-reduce"] * 20 + ["all-gather"])),
                start=draw(st.integers(0, 9)),
                own=draw(st.integers(0, 9)),
                work=draw(st.integers(0, 9)),
                source=IdentitySource("abcd".index(one.communicator)),
                size={"a": 2, "b": 0, "c": 3, "d": 0}[one.communicator],
                group=draw(st.integers(-1, 2)),
                step=draw(st.integers(-1, 1)),
            )
            for one in collectives
        ]
        origin = draw(st.sampled_from([None, 10, 20]))
        steps = RankSteps(STEPS, STEPS, STEPS)
        found.append(arrivals_by_hand(rank, collectives, origin, group_hash=GROUPS, steps=steps))
    return found


def cells(ranks: list[Arrivals]) -> dict[tuple[int, int], dict[int, tuple[Arrivals, int]]]:
    """By (communicator, ordinal) the place of the collective on each rank."""
    found: dict[tuple[int, int], dict[int, tuple[Arrivals, int]]] = defaultdict(dict)
    for one in ranks:
        for at, key in enumerate(zip(one.communicator.tolist(), one.ordinal.tolist(), strict=True)):
            found[key][one.rank] = one, at
    return found


def matched_by_loops(ranks: list[Arrivals], expected: int) -> set[tuple[int, int]]:
    found, good, bad = cells(ranks), set(), set()
    for key, of in found.items():
        one, at = next(iter(of.values()))
        size, source = int(one.size[at]), int(one.source[at])
        same = [len(others) for (name, _), others in found.items() if name == key[0]]
        want = expected if source >= IdentitySource.STREAM else size or max(same)
        kinds = {int(each.kind[place]) for each, place in of.values()}
        if 1 < len(of) == want and len(kinds) == 1 and size in (0, want):
            good.add((key, source))
        else:
            bad.add(key[0])
    return {key for key, source in good if source == IdentitySource.NUMBERED or key[0] not in bad}


@given(jobs())
@examples(1)
def test_waits_are_those_of_plain_loops(ranks: list[Arrivals]) -> None:
    table, expected = whole_table(ranks), len(ranks)
    matching = match_table(table, expected)
    matched = matched_by_loops(ranks, expected)
    rows = zip(table.communicator.tolist(), table.ordinal.tolist(), strict=True)
    assert {key for key, good in zip(rows, matching.matched.tolist(), strict=True) if good} == (
        matched
    )
    waited: dict[tuple[int, str, int], int] = defaultdict(int)
    caused: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for key in matched:
        of = {rank: (one, at) for rank, (one, at) in sorted(cells(ranks)[key].items())}
        took = {rank: int(one.duration[at]) for rank, (one, at) in of.items()}
        least = min(took.values())
        for rank, (one, at) in of.items():
            wait = took[rank] - least
            waited[rank, "", 0] += wait
            waited[rank, "group", int(one.group[at])] += wait
            waited[rank, "step", int(one.step[at])] += wait
        if max(took.values()) > least:
            last = min(rank for rank in of if took[rank] == least)
            one, at = of[last]
            owns = [int(each.own[place]) for each, place in of.values()]
            works = [int(each.work[place]) for each, place in of.values()]
            own = (int(one.own[at]) * len(of) - sum(owns)) // len(of)
            work = (int(one.work[at]) * len(of) - sum(works)) // len(of)
            sums = [1, sum(took.values()) - least * len(of), max(work, 0), max(own - work, 0)]
            caused[last] = [a + b for a, b in zip(caused[last], sums, strict=True)]
    numbers = sorted(one.rank for one in ranks)
    causes = np.stack(causes_of(table, matching, np.array(numbers)))
    assert causes.T.tolist() == [caused[rank] for rank in numbers]
    by_sums = waits_by_sums(whole_communication(ranks), table, matching, np.array(numbers))
    for one in ranks:
        waits = waits_of(one, table, expected)
        assert (waits.rank, waits.wait) == (one.rank, waited[one.rank, "", 0])
        assert waits.group_wait.tolist() == [waited[one.rank, "group", at] for at in range(3)]
        assert waits.step_wait.tolist() == [waited[one.rank, "step", at] for at in range(2)]
        assert int(waits.communicator_wait.sum()) == waits.wait
        assert int(waits.communicator_calls.sum()) == waits.matched
        assert by_sums[numbers.index(one.rank)] in (-1, waits.wait)


def is_same(one: CollectiveTable, other: CollectiveTable) -> bool:
    columns = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)
    return columns and (one.communicators, one.kinds) == (other.communicators, other.kinds)


@given(jobs(), st.randoms(use_true_random=False))
@examples(1)
def test_tables_merge_in_any_order_and_grouping(ranks: list[Arrivals], random: Random) -> None:
    tables, sums = [table_of(one) for one in ranks], [communication_of(one) for one in ranks]
    whole, all_sums = merge_collectives(tables), merge_communication(sums)
    while len(tables) > 1:
        order = random.sample(range(len(tables)), len(tables))
        tables, sums = [tables[at] for at in order], [sums[at] for at in order]
        cut = random.randint(2, len(tables))
        tables = [merge_collectives(tables[:cut]), *tables[cut:]]
        sums = [merge_communication(sums[:cut]), *sums[cut:]]
    assert is_same(tables[0], whole)
    assert all(
        np.array_equal(getattr(sums[0], name), getattr(all_sums, name))
        for name in RankCommunication._fields
    )


@pytest.mark.parametrize("ranks", [2, pytest.param(64, marks=pytest.mark.deep)])
def test_waits_are_exact_without_any_clock(ranks: int) -> None:
    job = simulate(ranks, straggler=1)
    table = whole_table(job.ranks)
    matching = match_table(table, ranks)
    found = [waits_of(one, table, matching) for one in job.ranks]
    assert matching.complete.tolist() == [job.collectives]
    assert np.abs(np.array([one.wait for one in found]) - job.wait).max() <= 2 * job.collectives
    assert causes_of(table, matching, np.arange(ranks)).last.tolist() == job.last.tolist()
    clocks = clocks_of(found)
    moved = clocks.offset + job.clock
    assert np.ptp(moved) <= 2
    assert clocks.error.max() <= 2
    assert clocks.apart == np.ptp(job.clock)
    by_sums = waits_by_sums(whole_communication(job.ranks), table, matching, np.arange(ranks))
    assert by_sums.tolist() == [one.wait for one in found]


def test_waiting_is_divided_by_steps_and_by_groups_of_activities() -> None:
    job = simulate(3, steps=2, straggler=2)
    steps = RankSteps(np.arange(2), np.zeros(2, np.int64), np.zeros(2, np.int64))
    ranks = [one._replace(steps=steps) for one in job.ranks]
    table = whole_table(ranks)
    for one in ranks:
        waits = waits_of(one, table, 3)
        assert waits.group_wait.tolist() == [waits.wait] == [int(waits.step_wait.sum())]


def test_a_merged_table_alone_tells_no_wait_where_only_some_collectives_match() -> None:
    ranks = [
        arrivals_by_hand(0, [Met(4, 9, "a"), Met(5, 7, "a"), Met(0, 5, "b")]),
        arrivals_by_hand(1, [Met(5, 3, "a"), Met(0, 6, "b")]),
        arrivals_by_hand(2, [Met(0, 8, "b")]),
    ]
    table = whole_table(ranks)
    matching = match_table(table, 3)
    found = waits_by_sums(whole_communication(ranks), table, matching, np.arange(3))
    assert found.tolist() == [-1, -1, 3]
    assert [waits_of(one, table, 3).wait for one in ranks] == [4, 1, 3]


def test_ranks_that_lack_some_of_matched_collectives_have_no_wait_by_sums() -> None:
    first, second = Met(0, 9, size=2), Met(1, 7, size=2)
    ranks = [
        arrivals_by_hand(0, [first, second]),
        arrivals_by_hand(1, [first._replace(duration=4)]),
        arrivals_by_hand(2, [second._replace(duration=8)]),
    ]
    table = whole_table(ranks)
    matching = match_table(table, 3)
    assert matching.matched.all()
    found = waits_by_sums(whole_communication(ranks), table, matching, np.arange(3))
    assert found.tolist() == [5, -1, -1]
    assert [waits_of(one, table, 3).wait for one in ranks] == [5, 0, 1]


def test_collectives_that_the_table_lacks_are_not_matched() -> None:
    met = [Met(at, 5 + at) for at in range(4)]
    table = whole_table([arrivals_by_hand(rank, met[1:3]) for rank in (0, 1)])
    more = [*met, Met(1, 9, "other"), Met(9, 9, "first")]
    waits = waits_of(arrivals_by_hand(1, more), table, 2)
    assert (waits.found, waits.matched, waits.duration) == (6, 2, 13)
    assert waits_of(arrivals_by_hand(1, more), whole_table([]), 2).matched == 0


def test_clocks_of_ranks_that_no_collective_joins_are_not_compared() -> None:
    def rank(number: int, group: str, clock: int) -> Arrivals:
        met = [Met(at, 10 + at, group, start=100 * at - clock) for at in range(3)]
        return arrivals_by_hand(number, met, origin=1_000)

    ranks = [rank(0, "a", 0), rank(1, "a", 7), rank(2, "b", 0), rank(3, "b", 4)]
    table = whole_table(ranks)
    clocks = clocks_of([waits_of(one, table, 4) for one in ranks])
    assert clocks.part.tolist() == [0, 0, 1, 1]
    assert clocks.offset.tolist() == [0, 7, 0, 4]
    assert not clocks.tell(1_000)
    between = [rank(1, "a", 7), rank(2, "b", 0)]
    joined = [
        arrivals_by_hand(one.rank, [Met(0, 5, "a-b", start=40 - clock)], origin=1_000)
        for one, clock in zip(between, (7, 0), strict=True)
    ]
    table = whole_table([*ranks, *joined])
    waits = [waits_of(one, table, 4) for one in [*ranks, *joined]]
    clocks = clocks_of(waits)
    assert clocks.offset.tolist() == [0, 7, 0, 4]
    assert clocks.tell(0)


def test_ranks_without_a_time_of_day_have_no_clocks() -> None:
    ranks = [one._replace(origin=None) for one in simulate(2).ranks]
    table = whole_table(ranks)
    clocks = clocks_of([waits_of(one, table, 2) for one in ranks])
    assert len(clocks.rank) == 0
    assert clocks.apart == 0
    assert not clocks.tell(1 << 40)
