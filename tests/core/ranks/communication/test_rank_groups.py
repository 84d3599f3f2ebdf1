"""Groups of ranks that the user names."""

from __future__ import annotations

import numpy as np
import pytest

from flame.core.errors import UsageError
from flame.core.rank_summary.collective_table import IdentitySource
from flame.core.ranks.communication.arrivals import Arrivals
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.communication.rank_groups import RankGroups, name_groups
from flame.core.ranks.communication.waits import waits_of
from tests.support.ranks.rank_arrivals import Met, arrivals_by_hand, whole_table

MESH = RankGroups.parse("pp=2,dp=2,tp=4")


def test_ranks_count_up_along_the_last_axis_as_in_a_device_mesh() -> None:
    mesh = np.arange(16).reshape(2, 2, 4)
    for axis, name in enumerate(MESH.names):
        groups = np.moveaxis(mesh, axis, -1).reshape(-1, mesh.shape[axis]).tolist()
        by_name: dict[str, list[int]] = {}
        for rank in range(16):
            by_name.setdefault(MESH.name_of(rank, (axis,)), []).append(rank)
        assert sorted(by_name.values()) == sorted(groups), name
    assert MESH.name_of(13, (0, 2)) == "pp-tp of dp 1"
    assert MESH.name_of(13, (0, 1, 2)) == "pp-dp-tp"


@pytest.mark.parametrize(
    "text", ["", "tp", "tp=0", "tp=8,", "tp=2,tp=4", "tp=-1", "8=tp", "tp=99999999", "tp=²"]
)
def test_what_is_no_mesh_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--groups"):
        RankGroups.parse(text)


def of_streams(rank: int, *streams: tuple[int, list[int]]) -> Arrivals:
    """A rank with streams that have groups of so many ranks, and collectives of these durations."""
    return arrivals_by_hand(
        rank,
        [
            Met(ordinal, duration, f"stream {at}", size=size, source=IdentitySource.STREAM)
            for at, (size, durations) in enumerate(streams)
            for ordinal, duration in enumerate(durations)
        ],
    )


def test_streams_are_matched_within_the_groups_that_their_size_tells() -> None:
    groups = RankGroups.parse("pp=2,tp=8")
    plain = [of_streams(rank, (8, [10 + rank, 20]), (16, [50 - rank])) for rank in range(16)]
    ranks = [name_groups(one, groups) for one in plain]
    table = whole_table(ranks)
    matching = match_table(table, 16)
    assert sorted(matching.names) == [
        "pp-tp, stream 0",
        "tp of pp 0, stream 0",
        "tp of pp 1, stream 0",
    ]
    assert matching.matched.all()
    found = [waits_of(one, table, 16).wait for one in ranks]
    assert found == [rank % 8 + 15 - rank for rank in range(16)]


def test_a_size_that_several_groups_have_is_not_decided() -> None:
    """Groups of two ranks are those of pp or of dp, of four those of both or of tp."""
    assert [list(MESH.of_size(size)) for size in (2, 4)] == [[(0,), (1,)], [(2,), (0, 1)]]
    one = name_groups(of_streams(0, (2, [1]), (4, [1]), (0, [1]), (3, [1])), MESH)
    assert one.source.tolist() == [IdentitySource.UNDECIDED] * 4
    matching = match_table(whole_table([one]), 1)
    assert set(matching.why) == {"which group of ranks it is of is not recorded"}


def test_two_streams_of_one_axis_are_two_communicators() -> None:
    groups = RankGroups.parse("dp=1,tp=2")
    ranks = [
        name_groups(of_streams(rank, (0, [5 - rank]), (2, [7, 3 + rank])), groups)
        for rank in (0, 1)
    ]
    table = whole_table(ranks)
    assert sorted(name for _, name in table.communicators) == [
        "tp of dp 0, stream 0",
        "tp of dp 0, stream 1",
    ]
    assert [waits_of(one, table, 2).wait for one in ranks] == [1, 1]


def test_what_is_recorded_stays_and_a_rank_beyond_the_mesh_is_not_guessed() -> None:
    recorded = arrivals_by_hand(0, [Met(0, 3)])
    assert name_groups(recorded, MESH).source.tolist() == [IdentitySource.NUMBERED]
    assert name_groups(of_streams(16, (16, [1])), MESH).source.tolist() == [
        IdentitySource.UNDECIDED
    ]
