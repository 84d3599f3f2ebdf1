"""From a replayed graph node back to the node that stream capture made, clone by clone."""

from __future__ import annotations

import numpy as np
import pytest

from flame.core.attribution.graph_capture import find_captures
from flame.core.model.raw import RawActivities, RawGraphNodes, TableBuilder
from tests.support.profiles.recorded import i8

CAPTURED = -1
Node = tuple[int, int, int, int, int]
"""(process, node id, original, start, thread)."""
Found = tuple[int, int]
"""(thread, time); (-1, 0) where nothing is known."""

UNKNOWN = (-1, 0)


def captures(replayed: list[tuple[int, int]], nodes: list[Node]) -> list[Found]:
    """Where the nodes of activities, given as (process, node id), were captured."""
    work, made = TableBuilder(RawActivities), TableBuilder(RawGraphNodes)
    process, node = (i8(*(row[column] for row in replayed)) for column in (0, 1))
    zeros = np.zeros(len(replayed), np.int64)
    rest = ("kind", "start", "end", "device", "stream", "frame", "correlation")
    work.add(process=process, graph_node=node, **dict.fromkeys(rest, zeros))
    names = ("process", "node", "original", "start", "thread")
    for row in nodes:
        made.add(**dict(zip(names, map(i8, row), strict=True)))
    found = find_captures(work.build(), made.build())
    return list(zip(found.thread.tolist(), found.time.tolist(), strict=True))


def test_a_clone_leads_to_its_captured_original() -> None:
    assert captures([(0, 9)], [(0, 5, CAPTURED, 30, 2), (0, 9, 5, 80, 1)]) == [(2, 30)]


def test_a_captured_node_may_be_replayed_itself() -> None:
    assert captures([(0, 5)], [(0, 5, CAPTURED, 30, 2)]) == [(2, 30)]


def test_the_capture_may_lie_before_time_zero() -> None:
    assert captures([(0, 5)], [(0, 5, CAPTURED, -20_000, 0)]) == [(0, -20_000)]


@pytest.mark.parametrize("clones", [2, 3, 4, 5, 64, 1_000])
def test_clones_of_clones_lead_there_too(clones: int) -> None:
    chain = [(0, node, node + 1, 80, 1) for node in range(clones)]
    assert captures([(0, 0)], [*chain, (0, clones, CAPTURED, 30, 2)]) == [(2, 30)]


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_a_cycle_leads_nowhere(length: int) -> None:
    ring = [(0, node, (node + 1) % length, 80, 1) for node in range(length)]
    into_the_ring = (0, 50, 0, 80, 1)
    assert captures([(0, 0), (0, 50)], [*ring, into_the_ring]) == [UNKNOWN, UNKNOWN]


def test_an_original_that_was_not_recorded_is_not_guessed() -> None:
    assert captures([(0, 9)], [(0, 9, 5, 80, 1), (0, 4, CAPTURED, 30, 2)]) == [UNKNOWN]


def test_a_node_that_was_not_recorded_is_not_guessed() -> None:
    assert captures([(0, 8)], [(0, 7, CAPTURED, 30, 2), (0, 9, CAPTURED, 40, 2)]) == [UNKNOWN]


def test_node_ids_repeat_from_process_to_process() -> None:
    nodes = [(0, 5, CAPTURED, 30, 0), (1, 5, CAPTURED, 60, 2), (1, 9, 5, 80, 2)]
    assert captures([(1, 9), (0, 5), (0, 9)], nodes) == [(2, 60), (0, 30), UNKNOWN]


@pytest.mark.parametrize(
    "other",
    [(0, 5, CAPTURED, 31, 2), (0, 5, CAPTURED, 30, 1), (0, 5, 4, 30, 2)],
    ids=["time", "thread", "original"],
)
def test_a_node_described_in_two_ways_is_ambiguous(other: Node) -> None:
    nodes = [(0, 5, CAPTURED, 30, 2), other]
    assert captures([(0, 5)], nodes) == [UNKNOWN]
    assert captures([(0, 5), (0, 9)], [*nodes, (0, 9, 5, 80, 1)]) == [UNKNOWN, UNKNOWN]


def test_ambiguity_is_of_one_node_only() -> None:
    nodes = [(0, 5, CAPTURED, 30, 2), (0, 5, CAPTURED, 31, 2), (0, 6, CAPTURED, 40, 1)]
    assert captures([(0, 6)], nodes) == [(1, 40)]


def test_a_row_that_is_repeated_exactly_is_fine() -> None:
    assert captures([(0, 5)], [(0, 5, CAPTURED, 30, 2)] * 2) == [(2, 30)]


def test_activities_outside_graphs_have_no_capture() -> None:
    assert captures([(0, -1), (0, 5)], [(0, 5, CAPTURED, 30, 2)]) == [UNKNOWN, (2, 30)]


def test_without_node_records_nothing_is_known() -> None:
    assert captures([(0, 5)], []) == [UNKNOWN]
