"""Sum up the trace of a rank: all of its groups, none of its activities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from flame.core.columns import I4, I8, Bool, Column, distinct, sum_by, unique
from flame.core.errors import InputError, UsageError
from flame.core.kept_results import kept
from flame.core.lazy_regex import lazy_regex
from flame.core.model.activities import NONE, Activities
from flame.core.model.iterations import Iterations, chosen_ranges
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.rank_summary.content_hash import Hashes, unite_hashes
from flame.core.rank_summary.duration_histogram import BINS, bins_of
from flame.core.rank_summary.hashed_groups import (
    HashedGroups,
    hash_table,
    hash_used_frames,
    used_stacks,
)
from flame.core.rank_summary.merge import LONGEST, merge_summaries
from flame.core.rank_summary.opened import summary_of
from flame.core.rank_summary.summary import (
    FRAMES,
    METRICS,
    STACKS,
    RankInfo,
    RankSummary,
    SummaryGroups,
)
from flame.core.ranks.communication.arrivals import (
    Arrivals,
    arrivals_of,
    communication_of,
    table_of,
)
from flame.core.ranks.communication.rank_groups import RankGroups, name_groups
from flame.core.ranks.communication.rank_steps import RankSteps
from flame.core.regex import compile_expression

MOST_CELLS = 2000
"""Cells that are kept of a rank."""

_MOST_WARNINGS = 8
_MOST_RANKS = 1 << 30
_NUMBER = lazy_regex(r"[0-9]+")
_PID = lazy_regex(r"^([0-9]+)-[0-9a-f]+\.fdump$")
"""Dumps are named so; the second number is when the process began."""


class RankOptions(NamedTuple):
    """Choose how ranks are read.

    Collectives whose group is not recorded are of a group of ``mesh``. Iterations are the ranges
    that the expression ``iteration`` matches. ``cache`` is that of `LoadOptions`.
    """

    mesh: RankGroups | None = None
    iteration: str = ""
    cache: bool = True


USUAL = RankOptions()
"""How ranks are read where nothing is said."""


class RankPart(NamedTuple):
    """Hold what is known of the ranks of one file.

    ``arrivals`` are the collectives of each rank; none of a file that is itself a summary.
    """

    summary: RankSummary
    arrivals: tuple[Arrivals, ...] = ()


def summarise(
    profile: Profile,
    path: str | Path,
    most: int = MOST_CELLS,
    options: RankOptions = USUAL,
) -> RankPart:
    """Sum up the ranks of ``profile``, whose file was given as ``path``, with ``most`` cells each.

    A rank is a process that ran something on a GPU. Its number is the recorded one, else the last
    number in the file's name (of a dump the first, which is its process's), else 0. Of several
    processes, in order of their GPUs, the recorded number is the first one's and those of the
    others follow; where none was recorded, the number of the name counts files of so many ranks
    (``node1`` with eight has ranks 8 to 15). What ran in a process without a GPU, or in none that
    is known, counts for the first of them.

    Of a summary that has been opened it is the summary itself. Raises InputError for a file of
    resolved stacks, which has other metrics, UsageError where finding iterations takes too long.
    """
    if (known := summary_of(profile)) is not None:
        return RankPart(known)
    if profile.resolved and profile.memory is not None:
        raise InputError(
            f"{path}: a memory snapshot has no GPU time: flame view FILES shows those of ranks"
        )
    if profile.resolved:
        raise InputError(f"{path}: it has stacks that were added up before, of no rank")
    if options.iteration:
        profile = profile.with_iterations(_iterations(profile, options.iteration))
    tables = _Tables.of(profile)
    processes = _processes(profile)
    numbers = _numbers(profile, path, len(processes))
    parts, arrivals = [], []
    for number, chosen in zip(numbers, _divide(profile, processes), strict=True):
        found = tables.arrivals(chosen[0], number)
        info = _info(profile, str(path), number, chosen[0], found.steps)
        info = msgspec.structs.replace(info, iteration=options.iteration, host=profile.meta.host)
        arrivals.append(found if options.mesh is None else name_groups(found, options.mesh))
        parts.append(tables.sum_up(chosen, info, arrivals[-1], most))
    return RankPart(parts[0] if len(parts) == 1 else merge_summaries(parts), tuple(arrivals))


def _iterations(profile: Profile, expression: str) -> Iterations:
    """Find the ranges that ``expression`` matches; it says why it cannot be used."""
    try:
        pattern = compile_expression(expression)
        return chosen_ranges(profile.frames, profile.threads, pattern, profile.spans_finder)
    except UsageError as error:
        raise UsageError(f"--iteration {expression!r}: {error}") from None


# Who is a rank


def _processes(profile: Profile) -> list[int]:
    """List the processes that ran anything on a GPU, in order of these; -1 where none did."""
    groups = profile.activities.groups
    found = unique(groups.process[groups.process >= 0]).tolist()
    first = {one: int(groups.device[groups.process == one].min()) for one in found}
    return sorted(found, key=lambda one: (first[one], profile.processes[one].pid, one)) or [NONE]


def _numbers(profile: Profile, path: str | Path, ranks: int) -> range:
    """Number the ``ranks`` of a file."""
    first = profile.meta.rank
    if first is None or not 0 <= first < _MOST_RANKS:
        name = Path(path).name
        found = _PID.findall(name) or _NUMBER.findall(name)
        first = int(found[-1][-9:]) * ranks % _MOST_RANKS if found else 0
    return range(first, first + ranks)


def _divide(profile: Profile, processes: Sequence[int]) -> Iterator[tuple[I8, I8]]:
    """Divide the groups of a GPU and of the host among ``processes``."""
    owners = []
    for table in (profile.activities, profile.host):
        place = np.zeros(len(profile.processes) + 1, np.int64)
        place[processes] = np.arange(len(processes))
        owners.append(place[table.groups.process])
    for number in range(len(processes)):
        gpu, host = (np.flatnonzero(owner == number) for owner in owners)
        yield gpu, host


def _info(profile: Profile, path: str, rank: int, chosen: I8, steps: RankSteps) -> RankInfo:
    """Describe a rank, which ran the ``chosen`` groups of a GPU, in these ``steps``."""
    groups = profile.activities.groups
    total, count = (column[chosen] for column in profile.gpu_by_group)
    devices = unique(groups.device[chosen])
    return RankInfo(
        rank=rank,
        path=path,
        format=profile.meta.format,
        producer=profile.meta.producer,
        begin=profile.begin,
        end=profile.end,
        origin=profile.meta.origin,
        activities=int(count.sum()),
        gpus=tuple(profile.devices[at].name for at in devices[devices >= 0].tolist()),
        coverage=tuple(
            (key, int(total[mask[chosen]].sum())) for key, mask in profile.covered_groups.items()
        ),
        warnings=profile.warnings[:_MOST_WARNINGS],
        step_numbers=tuple(steps.number.tolist()),
        step_times=tuple(steps.time.tolist()),
        step_work=tuple(steps.work.tolist()),
    )


# What it did


class _Durations(NamedTuple):
    """Hold how long the activities of each group were: i8[groups], and bins as of a summary."""

    shortest: I8
    longest: I8
    bin_group: I8
    bin: I8
    bin_count: I8


@kept
def _durations(table: Activities) -> _Durations:
    group, size = table.groups.of_row, len(table.groups)
    shortest, longest = np.full(size, LONGEST), np.full(size, NONE, np.int64)
    np.minimum.at(shortest, group, table.duration)
    np.maximum.at(longest, group, table.duration)
    keys, place = distinct(group.astype(np.int64) * BINS + bins_of(table.duration) + 1)
    count = np.bincount(place, minlength=len(keys)).astype(np.int64)
    return _Durations(shortest, longest, keys // BINS, keys % BINS - 1, count)


class _Tables(NamedTuple):
    """Hold the tables of a profile, a GPU's and the host's, with the hashes of what is in them."""

    profile: Profile
    tables: tuple[Activities, Activities]
    frame_hash: Hashes
    hashed: tuple[HashedGroups, HashedGroups]

    @classmethod
    def of(cls, profile: Profile) -> _Tables:
        tables = profile.activities, profile.host
        frames = hash_used_frames(profile.frames, tables)
        hashed = hash_table(tables[0], frames, False), hash_table(tables[1], frames, True)
        return cls(profile, tables, frames, hashed)

    def arrivals(self, chosen: I8, rank: int) -> Arrivals:
        """Find the collectives of a ``rank`` that ran the ``chosen`` groups of a GPU."""
        groups = self.tables[0].groups
        mine = np.zeros(len(groups), bool)
        mine[chosen] = True
        rows = np.flatnonzero(mine[groups.of_row])
        return arrivals_of(self.profile, rank, self.hashed[0].group, rows)

    def sum_up(
        self, chosen: tuple[I8, I8], info: RankInfo, arrivals: Arrivals, most: int
    ) -> RankSummary:
        """Sum up a rank that ran the ``chosen`` groups of each table."""
        vocabulary = _Vocabulary.of(self, chosen)
        total = self._total(chosen, vocabulary)
        collective = np.isin(vocabulary.group_hash[:, 0], arrivals.group_hash[:, 0])
        kept_cells = heaviest(total, vocabulary.groups.host > 0, most, collective)
        return RankSummary(
            frames=tuple(self.profile.frames[at] for at in vocabulary.frame_ids.tolist()),
            frame_hash=self.frame_hash[vocabulary.frame_ids],
            stack_hash=vocabulary.stack_hash,
            stack_parent=vocabulary.stack_parent,
            stack_frame=vocabulary.stack_frame,
            group_hash=vocabulary.group_hash,
            groups=vocabulary.groups,
            **self._lengths(chosen, vocabulary.place, len(vocabulary.group_hash)),
            longest_rank=np.full(len(vocabulary.group_hash), info.rank, np.int32),
            info=(info,),
            cell_start=np.array([0, len(kept_cells)], np.int64),
            cell_group=kept_cells.astype(np.int32),
            cell=total[:, kept_cells],
            total=total,
            rank_total=total.sum(axis=1, keepdims=True),
            collectives=table_of(arrivals),
            communication=communication_of(arrivals),
            waits=None,
            lost=(),
        )

    def _total(self, chosen: tuple[I8, I8], vocabulary: _Vocabulary) -> I8:
        """Sum up each metric of the ``chosen`` groups, i8[metrics, groups of the summary]."""
        total = np.zeros((len(METRICS), len(vocabulary.group_hash)), np.int64)
        for row, key in enumerate(METRICS):
            metric = metric_of(key)
            at = int(metric.table == "host")
            values = self.profile.totals_by_group(metric)[0][chosen[at]]
            total[row] = sum_by(vocabulary.place[at], values, total.shape[1])
        count = self.profile.totals_by_group(metric_of("host"))[1][chosen[1]]
        total[METRICS.index("count")] += sum_by(vocabulary.place[1], count, total.shape[1])
        return total

    def _lengths(self, chosen: tuple[I8, I8], place: Sequence[I8], size: int) -> dict[str, Column]:
        """Put together how long the activities of each group were, as columns of the summary."""
        shortest, longest = np.full(size, LONGEST), np.full(size, NONE, np.int64)
        keys, counts = [], []
        for table, groups, to in zip(self.tables, chosen, place, strict=True):
            found = _durations(table)
            np.minimum.at(shortest, to, found.shortest[groups])
            np.maximum.at(longest, to, found.longest[groups])
            where = np.full(len(table.groups), NONE, np.int64)
            where[groups] = to
            mine = np.flatnonzero(where[found.bin_group] >= 0)
            keys.append(where[found.bin_group[mine]] * BINS + found.bin[mine] + 1)
            counts.append(found.bin_count[mine])
        key, at = distinct(np.concatenate(keys))
        return {
            "shortest": shortest,
            "longest": longest,
            "bin_group": (key // BINS).astype(np.int32),
            "bin": (key % BINS - 1).astype(np.int32),
            "bin_count": sum_by(at, np.concatenate(counts), len(key)),
        }


class _Vocabulary(NamedTuple):
    """Hold the frames, stacks and groups of a rank, each in the order of their hashes.

    ``place`` is where the chosen groups of each table are, i8 each.
    """

    frame_ids: I8
    stack_hash: Hashes
    stack_parent: I4
    stack_frame: I4
    group_hash: Hashes
    groups: SummaryGroups
    place: list[I8]

    @classmethod
    def of(cls, all_of: _Tables, chosen: tuple[I8, I8]) -> _Vocabulary:
        """Find what the ``chosen`` groups of each table refer to."""
        rows = [
            np.flatnonzero(used_stacks(table, groups))
            for table, groups in zip(all_of.tables, chosen, strict=True)
        ]
        ids, number = _order_frames(all_of, chosen, rows)
        stack_hash, stack_place = unite_hashes(
            [one.stack[used] for one, used in zip(all_of.hashed, rows, strict=True)]
        )
        group_hash, place = unite_hashes(
            [one.group[groups] for one, groups in zip(all_of.hashed, chosen, strict=True)]
        )
        parent, frame = (np.empty(len(stack_hash), np.int32) for _ in range(2))
        columns = SummaryGroups(
            *(np.empty(len(group_hash), np.int32) for _ in SummaryGroups._fields)
        )
        for at, table in enumerate(all_of.tables):
            stacks = np.full(len(table.stacks) + 1, NONE, np.int32)
            stacks[rows[at]] = stack_place[at]
            parent[stack_place[at]] = stacks[table.stacks.parent[rows[at]]]
            frame[stack_place[at]] = number[table.stacks.frame[rows[at]]]
            _fill(columns, place[at], table, chosen[at], stacks, number, host=at)
        return cls(ids, stack_hash, parent, frame, group_hash, columns, place)


def _order_frames(all_of: _Tables, chosen: tuple[I8, I8], rows: Sequence[I8]) -> tuple[I8, I4]:
    """(ids of the frames of chosen groups and stacks, by hash; the place of each frame in these).

    The last place, and those of other frames, are -1.
    """
    used: Bool = np.zeros(len(all_of.frame_hash), bool)
    for table, groups, stacks in zip(all_of.tables, chosen, rows, strict=True):
        used[table.stacks.frame[stacks]] = True
        for name in FRAMES:
            used[getattr(table.groups, name)[groups]] = True
    used[-1] = False
    ids = np.flatnonzero(used)
    ids = ids[np.argsort(all_of.frame_hash[ids, 0], kind="stable")]
    unite_hashes([all_of.frame_hash[ids]])  # InputError where two have one hash
    number = np.full(len(used), NONE, np.int32)
    number[ids] = np.arange(len(ids))
    return ids, number


def _fill(
    columns: SummaryGroups,
    place: I8,
    table: Activities,
    chosen: I8,
    stacks: I4,
    frames: I4,
    host: int,
) -> None:
    """Put the ``chosen`` groups of ``table`` to their ``place``."""
    groups = table.groups
    columns.host[place] = host
    columns.kind[place] = groups.kind[chosen]
    columns.launched[place] = groups.launched[chosen]
    for names, number in ((STACKS, stacks), (FRAMES, frames)):
        for name in names:
            getattr(columns, name)[place] = number[getattr(groups, name)[chosen]]


def heaviest(total: I8, is_host: Bool, most: int, needed: Bool) -> I8:
    """Choose the ``most`` groups of a rank that weigh most, those of a GPU first; ascending.

    A group weighs the largest part that it has of any metric but the count. Those that are
    ``needed`` are chosen in any case: waiting is told of all groups that have collectives.
    """
    if total.shape[1] <= most:
        return np.arange(total.shape[1])
    times = np.delete(total, METRICS.index("count"), axis=0)
    weight = (times / np.maximum(times.sum(axis=1, keepdims=True), 1)).max(axis=0)
    order = np.lexsort((-weight, is_host, ~needed))
    return np.sort(order[: max(most, np.count_nonzero(needed))])
