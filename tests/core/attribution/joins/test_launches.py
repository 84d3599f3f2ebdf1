"""Launches are joined by process and correlation id, never by the id alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flame.core.attribution.joins.launches import LaunchJoin, join_launches
from flame.core.model.raw import RawActivities, RawCalls, TableBuilder
from tests.support.profiles.recorded import i8

THREAD_PROCESS = np.array([0, 0, 1], np.int32)
"""Threads 0 and 1 are of process 0, thread 2 of process 1."""


@dataclass(frozen=True)
class Call:
    corr: int
    thread: int = 0
    start: int = 0
    end: int = 10
    stack: int = 0
    chain_only: bool = False


def joined(activities: list[tuple[int, int]], calls: list[Call]) -> LaunchJoin:
    """The launches of activities given as (process, correlation id)."""
    work, made = TableBuilder(RawActivities), TableBuilder(RawCalls)
    process, corr = (i8(*(row[column] for row in activities)) for column in (0, 1))
    zeros = np.zeros(len(activities), np.int64)
    work.add(
        process=process,
        correlation=corr,
        **dict.fromkeys(("kind", "start", "end", "device", "stream", "frame", "graph_node"), zeros),
    )
    for call in calls:
        made.add(
            start=i8(call.start),
            end=i8(call.end),
            thread=i8(call.thread),
            correlation=i8(call.corr),
            frame=i8(0),
            python=i8(0),
            native=i8(call.stack),
            chain_only=i8(call.chain_only),
        )
    return join_launches(work.build(), made.build(), THREAD_PROCESS)


def test_the_launch_has_the_same_correlation_id() -> None:
    assert joined([(0, 7), (0, 5)], [Call(5), Call(7)]).call.tolist() == [1, 0]


def test_equal_ids_of_two_processes_are_two_launches() -> None:
    calls = [Call(5, thread=1), Call(5, thread=2)]
    assert joined([(1, 5), (0, 5)], calls).call.tolist() == [1, 0]


def test_an_id_of_another_process_is_no_launch() -> None:
    assert joined([(1, 5)], [Call(5, thread=0), Call(6, thread=2)]).call.tolist() == [-1]


def test_one_launch_may_have_many_activities() -> None:
    assert joined([(0, 5)] * 3, [Call(5)]).call.tolist() == [0, 0, 0]


def test_no_id_is_no_launch_even_where_calls_have_none_either() -> None:
    assert joined([(0, 0), (0, -1)], [Call(0), Call(-1)]).call.tolist() == [-1, -1]


def test_an_id_that_no_call_has_is_no_launch() -> None:
    assert joined([(0, 4), (0, 6), (0, 99)], [Call(5), Call(7)]).call.tolist() == [-1, -1, -1]


def test_without_calls_there_are_no_launches() -> None:
    found = joined([(0, 5)], [])
    assert found.call.tolist() == found.chain.tolist() == [-1]


def test_of_several_calls_with_one_id_the_earliest_launches() -> None:
    assert joined([(0, 5)], [Call(5, start=3, end=4), Call(5, start=1, end=2)]).call.tolist() == [1]


def test_of_equally_early_calls_the_longest_launches() -> None:
    assert joined([(0, 5)], [Call(5, end=4), Call(5, end=9), Call(5, end=6)]).call.tolist() == [1]


def test_a_row_that_only_repeats_a_call_lends_its_stacks_and_no_more() -> None:
    repeated = Call(5, start=0, end=20, stack=3, chain_only=True)
    found = joined([(0, 5)], [repeated, Call(5, start=1, end=9)])
    assert (found.call.tolist(), found.chain.tolist()) == ([1], [0])


def test_a_row_that_only_repeats_a_call_launches_where_the_call_itself_is_missing() -> None:
    found = joined([(0, 5)], [Call(5, stack=3, chain_only=True)])
    assert (found.call.tolist(), found.chain.tolist()) == ([0], [0])


def test_another_call_does_not_lend_its_stack() -> None:
    found = joined([(0, 5)], [Call(5, start=1), Call(5, start=2, stack=3)])
    assert (found.call.tolist(), found.chain.tolist()) == ([0], [0])


def test_activities_that_name_no_process_belong_to_the_only_one() -> None:
    assert joined([(-1, 5)], [Call(5, thread=2)]).call.tolist() == [0]


def test_activities_that_name_no_process_have_no_launch_where_there_are_two() -> None:
    calls = [Call(5, thread=0), Call(6, thread=2)]
    assert joined([(-1, 5)], calls).call.tolist() == [-1]


def test_calls_of_unknown_threads_launch_nothing() -> None:
    assert joined([(0, 5), (-1, 5)], [Call(5, thread=-1)]).call.tolist() == [-1, -1]
