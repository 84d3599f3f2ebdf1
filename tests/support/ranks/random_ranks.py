"""Make summaries of ranks at random, and say in plain words what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from flame.core.frame import ACTIVITY_KINDS, Frame, Kind
from flame.core.rank_summary.collective_table import no_collectives
from flame.core.rank_summary.content_hash import Hashes, hash_frames, hash_numbers, hash_rows
from flame.core.rank_summary.duration_histogram import bins_of
from flame.core.rank_summary.rank_communication import no_communication
from flame.core.rank_summary.summary import (
    FRAMES,
    METRICS,
    STACKS,
    LostRank,
    RankInfo,
    RankSummary,
    SummaryGroups,
)

Path = tuple[Frame, ...]

_NONE = np.zeros(2, np.uint64)

_KINDS = (Kind.PYTHON, Kind.NATIVE, Kind.NVTX, Kind.NVTX, *[Kind.LAUNCH] * 4, *ACTIVITY_KINDS * 3)
"""Of the frames that all ranks have some of: of stacks, of calls, and of what ran on a GPU."""


class GroupKey(NamedTuple):
    """What a group is, in full: nothing of it is a number of the summary's own."""

    kind: int
    launched: int
    host: int
    stacks: tuple[Path, ...]
    frames: tuple[Frame | None, ...]


class PlainGroup(NamedTuple):
    """What is known of a group, of all ranks together."""

    total: tuple[int, ...]
    shortest: int
    longest: int
    longest_rank: int
    bins: tuple[tuple[int, int], ...]


class PlainRanks(NamedTuple):
    """What a summary holds."""

    groups: dict[GroupKey, PlainGroup]
    cells: dict[RankInfo, dict[GroupKey, tuple[int, ...]]]
    rank_total: dict[RankInfo, tuple[int, ...]]
    lost: frozenset[LostRank]


def random_summary(seed: int, rank: int, groups: int = 12) -> RankSummary:
    """A summary of one rank; frames, stacks and groups are often those of other ranks."""
    rng = np.random.default_rng([seed, rank])
    frames = [
        Frame(kind, f"name {at}\udc80" if at == 3 else f"name {at}", "f.py", at)
        for at, kind in enumerate(_KINDS)
    ]
    keys = {_random_key(rng, frames) for _ in range(groups)}
    lengths = {key: rng.integers(0, 5_000, rng.integers(1, 9)) for key in keys}
    values = {key: _random_values(rng, key, lengths[key]) for key in keys}
    times = tuple(rng.integers(1, 99, 2).tolist())
    info = RankInfo(rank, f"r{rank}\udcff.sqlite", gpus=("H100",), origin=int(rng.integers(9)))
    info = msgspec.structs.replace(info, step_numbers=(0, 1), step_times=times, step_work=times)
    kept = [key for key in keys if rng.random() < 0.8]
    return _built(values, lengths, info, kept)


def _random_key(rng: np.random.Generator, frames: list[Frame]) -> GroupKey:
    def path() -> Path:
        return tuple(frames[at] for at in rng.integers(0, 4, rng.integers(0, 4)).tolist())

    launch, own = frames[int(rng.integers(4, 8))], frames[int(rng.integers(8, 20))]
    stacks = tuple(path() for _ in STACKS)
    if rng.integers(2):
        return GroupKey(Kind.NVTX, 0, 1, stacks, (launch if rng.integers(2) else None, None))
    return GroupKey(int(own.kind), int(rng.integers(2)), 0, stacks, (launch, own))


def _random_values(
    rng: np.random.Generator, key: GroupKey, lengths: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[int, ...]:
    whole, rest = int(lengths.sum()), [int(one) for one in rng.integers(0, 1_000, 3)]
    return (len(lengths), *([0] * 4 if key.host else [whole, *rest]), whole if key.host else 0)


def _built(
    values: dict[GroupKey, tuple[int, ...]],
    lengths: dict[GroupKey, np.ndarray[tuple[int], np.dtype[np.int64]]],
    info: RankInfo,
    kept: list[GroupKey],
) -> RankSummary:
    paths = {path[:end] for key in values for path in key.stacks for end in range(1, len(path) + 1)}
    named = {frame for path in paths for frame in path}
    named |= {frame for key in values for frame in key.frames if frame is not None}
    frames = dict(zip(named, hash_frames(named), strict=True))
    stacks: dict[Path, Hashes] = {}
    for path in sorted(paths, key=len):
        above = stacks.get(path[:-1], _NONE)
        stacks[path] = hash_rows([above[None], frames[path[-1]][None]])[0]
    groups = {key: _hash_of(key, stacks, frames) for key in values}
    frame_order, stack_order, group_order = _ordered(frames), _ordered(stacks), _ordered(groups)
    frame_at, stack_at, group_at = map(_places, (frame_order, stack_order, group_order))
    columns = [[key.kind, key.launched, key.host] for key in group_order]
    for row, key in zip(columns, group_order, strict=True):
        row += [stack_at.get(path, -1) for path in key.stacks]
        row += [-1 if frame is None else frame_at[frame] for frame in key.frames]
    total = np.array([values[key] for key in group_order], np.int64).reshape(-1, len(METRICS)).T
    cells = sorted(group_at[key] for key in kept)
    bins = [sorted(Counter(bins_of(lengths[key]).tolist()).items()) for key in group_order]
    flat = [(at, one, count) for at, found in enumerate(bins) for one, count in found]
    of_bins = np.array(flat, np.int64).reshape(-1, 3).T
    return RankSummary(
        frames=tuple(frame_order),
        frame_hash=_stacked(frames, frame_order),
        stack_hash=_stacked(stacks, stack_order),
        stack_parent=np.array([stack_at.get(path[:-1], -1) for path in stack_order], np.int32),
        stack_frame=np.array([frame_at[path[-1]] for path in stack_order], np.int32),
        group_hash=_stacked(groups, group_order),
        groups=SummaryGroups(
            *np.array(columns, np.int32).reshape(-1, 3 + len(STACKS) + len(FRAMES)).T
        ),
        shortest=np.array([lengths[key].min() for key in group_order], np.int64),
        longest=np.array([lengths[key].max() for key in group_order], np.int64),
        longest_rank=np.full(len(group_order), info.rank, np.int32),
        bin_group=of_bins[0].astype(np.int32),
        bin=of_bins[1].astype(np.int32),
        bin_count=of_bins[2],
        info=(info,),
        cell_start=np.array([0, len(cells)], np.int64),
        cell_group=np.array(cells, np.int32),
        cell=total[:, cells],
        total=total,
        rank_total=total.sum(axis=1, keepdims=True),
        collectives=no_collectives(),
        communication=no_communication(),
        waits=None,
        lost=(LostRank(f"lost {info.rank % 3}", "cut off"),) if info.rank % 4 == 0 else (),
    )


def _hash_of(key: GroupKey, stacks: dict[Path, Hashes], frames: dict[Frame, Hashes]) -> Hashes:
    parts = [hash_numbers(np.array([key.kind]))[0]]
    parts.append(hash_numbers(np.array([key.launched + 2 * key.host]))[0])
    parts += [stacks.get(path, _NONE) for path in key.stacks]
    parts += [_NONE if frame is None else frames[frame] for frame in key.frames]
    found: Hashes = hash_rows([part[None] for part in parts])[0]
    return found


def _ordered(hashes: dict) -> list:  # type: ignore[type-arg]
    return sorted(hashes, key=lambda one: int(hashes[one][0]))


def _places(ordered: list) -> dict:  # type: ignore[type-arg]
    return {one: at for at, one in enumerate(ordered)}


def _stacked(hashes: dict, ordered: list) -> Hashes:  # type: ignore[type-arg]
    return np.array([hashes[one] for one in ordered], np.uint64).reshape(-1, 2)


def plain(summary: RankSummary) -> PlainRanks:
    """Say what ``summary`` holds."""
    paths: list[Path] = []
    for at in range(len(summary.stack_hash)):
        path: list[Frame] = []
        while at >= 0:
            path.append(summary.frames[summary.stack_frame[at]])
            at = int(summary.stack_parent[at])
        paths.append(tuple(reversed(path)))
    columns = [column.tolist() for column in summary.groups]
    keys = [
        GroupKey(
            row[0],
            row[1],
            row[2],
            tuple(paths[at] if at >= 0 else () for at in row[3 : 3 + len(STACKS)]),
            tuple(summary.frames[at] if at >= 0 else None for at in row[3 + len(STACKS) :]),
        )
        for row in zip(*columns, strict=True)
    ]
    bins: list[list[tuple[int, int]]] = [[] for _ in keys]
    for group, one, count in zip(
        *(c.tolist() for c in (summary.bin_group, summary.bin, summary.bin_count)), strict=True
    ):
        bins[group].append((one, count))
    groups = {
        key: PlainGroup(
            tuple(summary.total[:, at].tolist()),
            int(summary.shortest[at]),
            int(summary.longest[at]),
            int(summary.longest_rank[at]),
            tuple(bins[at]),
        )
        for at, key in enumerate(keys)
    }
    cells = {}
    for place, info in enumerate(summary.info):
        low, high = summary.cell_start[place : place + 2].tolist()
        cells[info] = {
            keys[summary.cell_group[at]]: tuple(summary.cell[:, at].tolist())
            for at in range(low, high)
        }
    totals = {
        info: tuple(summary.rank_total[:, at].tolist()) for at, info in enumerate(summary.info)
    }
    return PlainRanks(groups, cells, totals, frozenset(summary.lost))


def plain_merge(parts: Iterable[PlainRanks]) -> PlainRanks:
    """Merge what summaries hold, one thing after another."""
    whole = PlainRanks({}, {}, {}, frozenset())
    for part in parts:
        for key, mine in part.groups.items():
            other = whole.groups.get(key)
            whole.groups[key] = mine if other is None else _together(other, mine)
        whole.cells.update(part.cells)
        whole.rank_total.update(part.rank_total)
        whole = whole._replace(lost=whole.lost | part.lost)
    return whole


def _together(one: PlainGroup, other: PlainGroup) -> PlainGroup:
    longest, rank = max((one.longest, -one.longest_rank), (other.longest, -other.longest_rank))
    counts = Counter(dict(one.bins)) + Counter(dict(other.bins))
    return PlainGroup(
        tuple(a + b for a, b in zip(one.total, other.total, strict=True)),
        min(one.shortest, other.shortest),
        longest,
        -rank,
        tuple(sorted(counts.items())),
    )
