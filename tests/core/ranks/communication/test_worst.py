"""Which collectives cost most waiting, against plain loops on random jobs."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given

from flame.core.rank_summary.collective_table import IdentitySource
from flame.core.ranks.communication import worst
from flame.core.ranks.communication.arrivals import Arrivals
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.communication.worst import worst_collectives
from tests.core.ranks.communication.test_waits import cells, jobs, matched_by_loops
from tests.support.ranks.rank_arrivals import Met, arrivals_by_hand, simulate, whole_table
from tests.support.tiers import examples


def by_loops(ranks: list[Arrivals]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """(kinds, calls) with all that is told of them but the kind's order among equals."""
    names = {hash_: name for one in ranks for hash_, name in (*one.communicators, *one.kinds)}
    calls: list[tuple[object, ...]] = []
    kinds = defaultdict[tuple[str, str], list[tuple[int, ...]]](list)
    found = cells(ranks)
    for key in matched_by_loops(ranks, len(ranks)):
        of = dict(sorted(found[key].items()))
        took = {rank: int(one.duration[at]) for rank, (one, at) in of.items()}
        least, most = min(took.values()), max(took.values())
        last = min(rank for rank in of if took[rank] == least)
        first = min(rank for rank in of if took[rank] == most)
        waited = sum(took.values()) - least * len(of)
        one, at = of[last]
        name, communicator = names[int(one.kind[at])], names[key[0]]
        kinds[name, communicator].append((len(of), waited, least * len(of), last))
        own, work = (
            (int(getattr(one, part)[at]) * len(of) - sums) // len(of)
            for part, sums in (
                ("own", sum(int(each.own[place]) for each, place in of.values())),
                ("work", sum(int(each.work[place]) for each, place in of.values())),
            )
        )
        if waited:
            source = max(int(each.source[place]) for each, place in of.values())
            number = key[1] + (source != IdentitySource.NUMBERED)
            late = max(work, 0), max(own - work, 0)
            times = len(of), waited, least, last, *late, first, most - least
            calls.append((name, communicator, number, *times))
    return [_kind(*key, rows) for key, rows in kinds.items()], calls


def _kind(name: str, communicator: str, rows: list[tuple[int, ...]]) -> tuple[object, ...]:
    caused = defaultdict[int, list[int]](lambda: [0, 0])
    for _, waited, _, last in rows:
        if waited:
            caused[last][0] += 1
            caused[last][1] += waited
    top = min(caused, key=lambda rank: (-caused[rank][1], rank)) if caused else None
    sums = [sum(row[at] for row in rows) for at in (1, 2)]
    late = caused[top] if top is not None else [0, 0]
    return (name, communicator, rows[0][0], len(rows), *sums, top, *late)


@given(jobs())
@examples(1)
def test_all_that_is_told_is_that_of_plain_loops(ranks: list[Arrivals]) -> None:
    table = whole_table(ranks)
    found = worst_collectives(table, match_table(table, len(ranks)))
    kinds, calls = by_loops(ranks)
    assert sorted(map(repr, map(tuple, found.kinds))) == sorted(map(repr, kinds))
    assert sorted(map(tuple, found.calls)) == sorted(calls)
    for told in (found.kinds, found.calls):
        waited = [one.waited for one in told]
        assert waited == sorted(waited, reverse=True)
    assert found.waited == sum(one.waited for one in found.kinds)
    assert found.waited == sum(one.waited for one in found.calls)


def test_the_straggler_is_who_most_was_waited_for() -> None:
    job = simulate(8, straggler=5)
    table = whole_table(job.ranks)
    found = worst_collectives(table, match_table(table, 8))
    [kind] = found.kinds
    assert (kind.name, kind.communicator, kind.calls) == ("all-reduce", "stream 0", job.collectives)
    assert (kind.last, kind.last_calls) == (5, int(job.last[5]))
    assert abs(found.waited - int(job.wait.sum())) <= 2 * 8 * job.collectives


def test_a_recorded_number_is_told_as_it_is_and_a_place_from_1_on() -> None:
    ranks = [
        arrivals_by_hand(
            rank,
            [Met(7, 9 + rank, "a"), Met(0, 5 + rank, "b", source=IdentitySource.COUNTED)],
        )
        for rank in range(2)
    ]
    table = whole_table(ranks)
    found = worst_collectives(table, match_table(table, 2))
    assert [(one.communicator, one.number) for one in found.calls] in (
        [("a", 7), ("b", 1)],
        [("b", 1), ("a", 7)],
    )


def test_names_of_one_communicator_are_told_apart() -> None:
    ranks = [
        arrivals_by_hand(
            rank, [Met(0, 5 + rank), Met(1, 9 - rank, kind="all-gather"), Met(2, 7 + 3 * rank)]
        )
        for rank in range(2)
    ]
    table = whole_table(ranks)
    found = worst_collectives(table, match_table(table, 2))
    assert [(one.name, one.calls, one.waited, one.last) for one in found.kinds] == [
        ("all-reduce", 2, 4, 0),
        ("all-gather", 1, 1, 1),
    ]


def test_only_so_many_are_told_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    job = simulate(4)
    table = whole_table(job.ranks)
    every = worst_collectives(table, match_table(table, 4))
    monkeypatch.setattr(worst, "MOST_TOLD", 3)
    some = worst_collectives(table, match_table(table, 4))
    assert some.calls == every.calls[:3] and some.waited == every.waited
    assert np.diff([one.waited for one in some.calls]).max() <= 0
