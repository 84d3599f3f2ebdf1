"""How nodes and frames are spread over ranks, against what each rank has by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flame.core.analysis.frame_totals import frame_totals
from flame.core.columns import I8
from flame.core.frame import Kind
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.projection.filters import MinShare, Ranks
from flame.core.projection.project import project
from flame.core.projection.selection import Selection, select
from flame.core.rank_summary import rank_values
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.opened import profile_of
from flame.core.rank_summary.rank_values import values_of_ranks
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks import node_spread as module
from flame.core.ranks.node_spread import (
    NodeSpread,
    node_spread,
    same_nodes,
    spread_of_frames,
    spread_of_nodes,
)
from tests.support.ranks.random_ranks import random_summary
from tests.support.tiers import deep_except

RANKS = 7


@pytest.fixture(scope="module", params=deep_except([1], [1, 2]))
def summary(request: pytest.FixtureRequest) -> RankSummary:
    parts = [random_summary(request.param, rank) for rank in range(RANKS)]
    return merge_summaries(parts)


def plain_spread(values: list[int]) -> tuple[int | float, ...]:
    """Mean, min, median, p95, max, how many, worst and farthest of what ranks have."""
    ordered, most = sorted(values), max(values)
    median, p95 = (ordered[math.ceil(part * len(values)) - 1] for part in (0.5, 0.95))
    above, below = most - median, median - ordered[0]
    far = values.index(most) if above >= below else values.index(ordered[0])
    worst = values.index(most) if most else -1
    there = sum(value > 0 for value in values)
    farthest = far if above or below else -1
    return sum(values), ordered[0], median, p95, most, there, worst, farthest


def row(found: NodeSpread, at: int) -> tuple[int | float, ...]:
    spread = found.spread
    columns = (spread.total, spread.least, spread.median, spread.p95, spread.most, spread.there)
    return tuple(int(column[at]) for column in (*columns, spread.worst, found.farthest))


def values_by_frame(summary: RankSummary, tree: StackTree, frame: int) -> list[int]:
    """What each rank has at all places of ``frame``, those below others of it left out."""
    below: set[int] = set()
    values: I8 = np.zeros(len(summary), np.int64)
    for node in range(len(tree)):
        if tree.frame[node] == frame and node not in below:
            below.update(range(node, int(tree.end[node])))
            values += values_of_ranks(summary, tree, np.array([node]))[0]
    return [int(value) for value in values]


@pytest.mark.parametrize("size", deep_except([3], [1, 3, 1000]))
def test_every_node_is_spread_as_its_ranks_are(
    summary: RankSummary, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "block_size", lambda ranks: size)
    tree = project(profile_of(summary), Selection())
    found = spread_of_nodes(summary, tree)
    values = values_of_ranks(summary, tree, np.arange(len(tree)))
    assert [row(found, node) for node in range(len(tree))] == [
        plain_spread(one) for one in values.tolist()
    ]


@pytest.mark.parametrize("size", deep_except([4], [1, 4, 1000]))
@pytest.mark.parametrize("levels", ["nvtx,kernel", "python,nvtx,launch,kernel"])
def test_every_frame_is_spread_as_its_places_are_together(
    summary: RankSummary, size: int, levels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "block_size", lambda ranks: size)
    tree = project(profile_of(summary), select(levels))
    frames = frame_totals(tree).frame
    found = spread_of_frames(summary, tree, frames)
    assert [row(found, at) for at in range(len(frames))] == [
        plain_spread(values_by_frame(summary, tree, frame)) for frame in frames.tolist()
    ]


def test_the_farthest_rank_is_the_one_with_the_least_where_that_is_farther() -> None:
    found = node_spread(np.array([[10, 10, 2, 11], [10, 10, 9, 14], [5, 5, 5, 5], [0, 0, 0, 3]]))
    assert found.farthest.tolist() == [2, 3, -1, 3]
    assert found.excess.tolist() == [1, 4, 0, 3]
    assert found.deviation[:3].tolist() == [-0.8, 0.4, 0.0]
    assert found.deviation[3] == np.inf


@pytest.mark.parametrize("inverted", [False, True])
def test_the_nodes_of_a_rank_are_found_among_those_of_all(
    summary: RankSummary, inverted: bool
) -> None:
    profile = profile_of(summary)
    layout = TreeLayout(inverted=inverted)
    whole = project(profile, select(layout=layout))
    paths = {whole.names(node): node for node in range(len(whole))}
    for rank in range(RANKS):
        where = (Ranks((str(rank),)),)
        tree = project(profile, select(where=where, layout=layout))
        found = same_nodes(tree, whole)
        wanted = [paths[tree.names(node)] for node in range(len(tree))]
        if len(paths) == len(whole):  # else several frames have one name
            assert found.tolist() == wanted
        assert (found >= 0).all() and len({*found.tolist()}) == len(tree)
        assert [tree.frame[at] for at in range(1, len(tree))] == [
            whole.frame[at] for at in found[1:].tolist()
        ]
        back = same_nodes(whole, tree)
        assert back[found].tolist() == [*range(len(tree))]
        assert (back >= 0).sum() == len(tree)


def test_what_stands_for_smaller_frames_is_not_the_same(summary: RankSummary) -> None:
    profile = profile_of(summary)
    share = (MinShare(5.0),)
    whole = project(profile, select(where=share))
    tree = project(profile, select(where=(*share, Ranks(("1",)))))
    found = same_nodes(tree, whole)
    for node in range(len(tree)):
        below_smaller = tree.kind(node) == Kind.REST
        assert not below_smaller or found[node] == -1


@pytest.mark.parametrize("size", [1, 40])
def test_what_ranks_have_does_not_depend_on_how_many_are_looked_at_at_once(
    summary: RankSummary, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = project(profile_of(summary), select())
    nodes = np.arange(len(tree))
    whole = values_of_ranks(summary, tree, nodes)
    assert whole[0].any()
    monkeypatch.setattr(rank_values, "_BLOCK", size)
    assert np.array_equal(values_of_ranks(summary, tree, nodes), whole)
