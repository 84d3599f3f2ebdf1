"""Merging loses nothing, and knows no order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from flame.core.errors import InputError
from flame.core.rank_summary.content_hash import hash_numbers, unite_hashes
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary import LostRank, RankSummary, empty_summary
from flame.core.rank_summary.summary_file import pack_summary
from tests.support.ranks.random_ranks import plain, plain_merge, random_summary


def in_any_tree(parts: list[RankSummary], seed: int) -> RankSummary:
    """Merge ``parts`` in some order, some at a time."""
    rng, pool = random.Random(seed), list(parts)
    while len(pool) > 1:
        rng.shuffle(pool)
        some = rng.randint(1, min(9, len(pool)))
        pool = [*pool[some:], merge_summaries(pool[:some])]
    return pool[0]


def test_a_merge_holds_what_its_parts_hold() -> None:
    parts = [random_summary(1, rank) for rank in range(9)]
    assert plain(merge_summaries(parts)) == plain_merge(map(plain, parts))


@pytest.mark.parametrize("seed", range(3))
def test_any_order_and_tree_gives_the_same_bytes(seed: int) -> None:
    parts = [random_summary(seed, rank, groups=rank % 5 * 3) for rank in range(30)]
    lost = empty_summary((LostRank("x", "no such file"),))
    whole = pack_summary(merge_summaries([*parts, lost]))
    for tree in range(4):
        some = [empty_summary(), *parts, lost, empty_summary()]
        assert pack_summary(in_any_tree(some, tree)) == whole


def test_equal_vocabularies_are_merged_as_others() -> None:
    one = random_summary(4, 0)
    two = random_summary(4, 0)
    info = two.info[0]
    seven = np.full_like(two.longest_rank, 7)
    named = {"info": (type(info)(7, "else"),), "longest_rank": seven}
    other = RankSummary(**{**two.__dict__, **named})
    merged = merge_summaries([one, other])
    assert merged.frames is one.frames
    assert (merged.total == 2 * one.total).all()
    assert not merged.longest_rank.any(), "of equally long ones the lowest rank's"
    assert pack_summary(merged) == pack_summary(merge_summaries([other, one]))


def test_what_several_parts_lack_is_told_once() -> None:
    lost = LostRank("x", "no such file"), LostRank("y", "cut off")
    parts = [empty_summary(lost), empty_summary(lost[:1]), empty_summary(lost[1:])]
    assert merge_summaries(parts).lost == lost
    assert merge_summaries([*parts, random_summary(1, 1)]).lost == lost


def test_a_rank_that_is_there_twice_is_refused() -> None:
    one = random_summary(5, 3)
    with pytest.raises(InputError, match="rank 3 is there twice"):
        merge_summaries([one, random_summary(5, 2), one])


def test_two_things_with_one_hash_are_refused() -> None:
    column = hash_numbers(np.arange(5))
    other = column.copy()
    other[2, 1] ^= np.uint64(1)
    with pytest.raises(InputError, match="one hash"):
        unite_hashes([column, other])


def test_places_of_united_hashes() -> None:
    rng = np.random.default_rng(2)
    numbers = [rng.integers(0, 40, size) for size in (0, 30, 1, 50)]
    columns = [hash_numbers(one) for one in numbers]
    united, places = unite_hashes(columns)
    assert len(united) == len(np.unique(np.concatenate(numbers)))
    for column, place in zip(columns, places, strict=True):
        assert (united[place] == column).all()
