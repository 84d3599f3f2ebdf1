"""Merge summaries: what comes of it is the same in any order and grouping, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, sum_by
from flame.core.errors import InputError
from flame.core.frame import Frame
from flame.core.model.activities import NONE
from flame.core.rank_summary.content_hash import unite_hashes
from flame.core.rank_summary.duration_histogram import BINS
from flame.core.rank_summary.merge_collectives import merge_collectives
from flame.core.rank_summary.rank_communication import merge_communication
from flame.core.rank_summary.summary import (
    FRAMES,
    METRICS,
    STACKS,
    RankSummary,
    SummaryGroups,
    empty_summary,
)

LONGEST = np.iinfo(np.int64).max


def merge_summaries(parts: Sequence[RankSummary]) -> RankSummary:
    """Merge ``parts``; InputError where a rank is in several of them.

    Of several there are no ``waits``: those are to be measured anew.
    """
    lost = tuple(sorted({one for part in parts for one in part.lost}))
    parts = [part for part in parts if len(part)]
    if not parts:
        return empty_summary(lost)
    if len(parts) == 1:
        return replace(parts[0], lost=lost)
    order = _ranks_in_order(parts)
    places = _unite(parts)
    groups, starts, cells = _merge_cells(parts, places, order)
    numbers, bins, counts = _merge_bins(parts, places)
    return RankSummary(
        frames=_merge_frames(parts, places),
        frame_hash=places.frame_hash,
        stack_hash=places.stack_hash,
        stack_parent=_merge_links(parts, places, "stack_parent", places.stack),
        stack_frame=_merge_links(parts, places, "stack_frame", places.frame),
        group_hash=places.group_hash,
        groups=_merge_groups(parts, places),
        **_merge_extremes(parts, places),
        bin_group=numbers,
        bin=bins,
        bin_count=counts,
        info=tuple(parts[part].info[at] for part, at in order),
        cell_start=starts,
        cell_group=groups,
        cell=cells,
        total=_merge_totals(parts, places),
        rank_total=np.stack([parts[part].rank_total[:, at] for part, at in order], axis=1),
        collectives=merge_collectives([part.collectives for part in parts]),
        communication=merge_communication([part.communication for part in parts]),
        waits=None,
        lost=lost,
    )


class _Places(NamedTuple):
    """Say where the frames, stacks and groups of each part are in the whole."""

    frame_hash: Column
    frame: list[I8]
    stack_hash: Column
    stack: list[I8]
    group_hash: Column
    group: list[I8]


def _unite(parts: Sequence[RankSummary]) -> _Places:
    return _Places(
        *unite_hashes([part.frame_hash for part in parts]),
        *unite_hashes([part.stack_hash for part in parts]),
        *unite_hashes([part.group_hash for part in parts]),
    )


def _ranks_in_order(parts: Sequence[RankSummary]) -> list[tuple[int, int]]:
    """List (part, place in it) of all ranks by number and path."""
    found = sorted(
        (info.rank, info.path, part, at)
        for part, one in enumerate(parts)
        for at, info in enumerate(one.info)
    )
    for before, after in pairwise(found):
        if before[:2] == after[:2]:
            raise InputError(f"rank {after[0]} is there twice: {after[1]}")
    return [(part, at) for _, _, part, at in found]


def _merge_frames(parts: Sequence[RankSummary], places: _Places) -> tuple[Frame, ...]:
    if places.frame_hash is parts[0].frame_hash:  # ranks that run one program
        return parts[0].frames
    frames: list[Frame | None] = [None] * len(places.frame_hash)
    for part, place in zip(parts, places.frame, strict=True):
        for at, frame in zip(place.tolist(), part.frames, strict=True):
            frames[at] = frame
    return tuple(frame for frame in frames if frame is not None)


def _merge_links(
    parts: Sequence[RankSummary], places: _Places, name: str, target: Sequence[I8]
) -> I4:
    """Merge a column of stacks that are places of what is at ``target`` in the whole."""
    merged = np.empty(len(places.stack_hash), np.int32)
    for part, stack, to in zip(parts, places.stack, target, strict=True):
        merged[stack] = _placed(getattr(part, name), to)
    return merged


def _placed(column: Column, place: I8) -> I8:
    """Look up ``place`` of each of ``column``; -1 stays."""
    return np.append(place, NONE)[column]


def _merge_groups(parts: Sequence[RankSummary], places: _Places) -> SummaryGroups:
    size = len(places.group_hash)
    merged = SummaryGroups(*(np.empty(size, np.int32) for _ in SummaryGroups._fields))
    for at, part in enumerate(parts):
        of = dict.fromkeys(STACKS, places.stack[at]) | dict.fromkeys(FRAMES, places.frame[at])
        for name in SummaryGroups._fields:
            column = getattr(part.groups, name)
            placed = _placed(column, of[name]) if name in of else column
            getattr(merged, name)[places.group[at]] = placed
    return merged


def _merge_extremes(parts: Sequence[RankSummary], places: _Places) -> dict[str, Column]:
    """Merge the shortest and longest activities; of equally long ones the lowest rank counts."""
    size = len(places.group_hash)
    shortest, longest = np.full(size, LONGEST), np.full(size, NONE, np.int64)
    rank = np.full(size, np.iinfo(np.int32).max, np.int32)
    for part, group in zip(parts, places.group, strict=True):
        shortest[group] = np.minimum(shortest[group], part.shortest)
        longer = part.longest > longest[group]
        longer |= (part.longest == longest[group]) & (part.longest_rank < rank[group])
        longest[group[longer]] = part.longest[longer]
        rank[group[longer]] = part.longest_rank[longer]
    return {"shortest": shortest, "longest": longest, "longest_rank": rank}


def _merge_bins(parts: Sequence[RankSummary], places: _Places) -> tuple[I4, I4, I8]:
    """Add up the counts of equal bins: (group, bin, count)."""
    keys = [
        group[part.bin_group] * BINS + part.bin + 1
        for part, group in zip(parts, places.group, strict=True)
    ]
    found, place = distinct(np.concatenate(keys))
    counts = sum_by(place, np.concatenate([part.bin_count for part in parts]), len(found))
    group, bins = found // BINS, found % BINS - 1
    return group.astype(np.int32), bins.astype(np.int32), counts


def _merge_cells(
    parts: Sequence[RankSummary], places: _Places, order: Sequence[tuple[int, int]]
) -> tuple[I4, I8, I8]:
    """Put the cells of all ranks together: (group, where each rank's begin, values)."""
    groups, values = [], []
    for part, at in order:
        cells = slice(*parts[part].cell_start[at : at + 2].tolist())
        # Places rise as hashes do: the cells stay in order.
        group = places.group[part][parts[part].cell_group[cells]]
        groups.append(group.astype(np.int32))
        values.append(parts[part].cell[:, cells])
    starts = np.cumsum([0, *map(len, groups)])
    return np.concatenate(groups), starts, np.concatenate(values, axis=1)


def _merge_totals(parts: Sequence[RankSummary], places: _Places) -> I8:
    total = np.zeros((len(METRICS), len(places.group_hash)), np.int64)
    for part, group in zip(parts, places.group, strict=True):
        total[:, group] += part.total
    return total
