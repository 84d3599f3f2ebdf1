"""Show a summary of ranks as a profile: its frames, stacks and groups with their sums, no rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from flame.core.columns import I4, I8, Column, expand_ranges
from flame.core.errors import UsageError
from flame.core.model.activities import (
    NONE,
    Activities,
    Groups,
    GroupTotals,
    GroupWaits,
    off_gpu_columns,
    repeat,
)
from flame.core.model.frames import TRANSFER_PART, WAITING_PART, Frame, FrameBuilder, Kind
from flame.core.model.grouping import add_grouping
from flame.core.model.meta import GraphNodes, Meta, Process, Source
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackTable, stack_depths
from flame.core.rank_summary.summary import FRAMES, METRICS, STACKS, RankSummary
from flame.core.rank_summary.waits_of_groups import (
    count_calls,
    waits_of_all,
    waits_of_cells,
    why_no_waits,
)

FORMAT = "flame summary"

_MOST_WARNINGS = 8


def profile_of(summary: RankSummary, ranks: Sequence[int] | None = None) -> Profile:
    """Make the profile of all ranks of ``summary`` together, or of those with these numbers.

    It has sums and no rows. The sums of all ranks are exact. Those of single ranks, which the level
    ``rank``, the filter `Ranks` and ``ranks`` show, are of the cells that the summary has kept:
    `RankSummary.rank_total` tells what these lack. Nested ranges are shown below Python frames, PC
    samples are not in a summary. Raises UsageError where there is no such rank.
    """
    whole = _profile_of_all(summary)
    if ranks is None:
        return whole
    numbers = summary.rank.tolist()
    if lacking := sorted(set(ranks) - set(numbers)):
        raise UsageError(f"there is no rank {lacking[0]} in the summary of {len(numbers)} ranks")
    chosen = set(ranks)
    sums = whole.ranks
    assert sums is not None
    return sums.split(whole, [at for at, one in enumerate(numbers) if one in chosen])


def summary_of(profile: Profile) -> RankSummary | None:
    """Return the summary that ``profile`` was made of; None for other profiles."""
    ranks = profile.ranks
    return ranks.summary if isinstance(ranks, _Ranks) else None


def is_split(profile: Profile) -> bool:
    """Tell whether ``profile``, of a summary, has groups of their own for some or all ranks."""
    ranks = profile.ranks
    return isinstance(ranks, _Ranks) and ranks.places is not None


def table_groups(summary: RankSummary, host: bool) -> I8:
    """List the groups of the host's table, or of a GPU's, in the order of the profile's groups."""
    return np.flatnonzero((summary.groups.host > 0) == host)


def table_cells(summary: RankSummary, host: bool, places: Sequence[int]) -> tuple[I8, I8]:
    """(cells of the ranks at ``places``, the place of each in these) of the host's or GPU's table.

    They are in the order of the groups of a profile that is split by these ranks.
    """
    first = summary.cell_start[:-1][list(places)]
    length = np.diff(summary.cell_start)[list(places)]
    cells = expand_ranges(first, length)
    mine = (summary.groups.host[summary.cell_group[cells]] > 0) == host
    return cells[mine], np.repeat(np.arange(len(places)), length)[mine]


def rank_labels(summary: RankSummary) -> list[str]:
    """Label each rank: by its number, and by its file where several have that.

    That is its name alone where no other of them is called so.
    """
    often = Counter(one.rank for one in summary.info)
    same = Counter((one.rank, _file_name(one.path)) for one in summary.info)
    labels = []
    for one in summary.info:
        name = _file_name(one.path)
        file = name if same[one.rank, name] == 1 else one.path
        labels.append(f"rank {one.rank}" if often[one.rank] == 1 else f"rank {one.rank} · {file}")
    return labels


def _file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _profile_of_all(summary: RankSummary) -> Profile:
    frames = FrameBuilder()
    ids = np.array([*map(frames.add, summary.frames), NONE], np.int32)
    count = len(summary)
    whole = Process(NONE, f"{count:,} rank{'' if count == 1 else 's'}")
    labels = rank_labels(summary)
    sources = tuple(
        Source(label, Meta(path=one.path, format=one.format, origin=one.origin, rank=one.rank))
        for label, one in zip(labels, summary.info, strict=True)
    )
    grouping = add_grouping(frames, (whole,), (), (), np.zeros(0, np.int32))
    of_ranks, processes = (
        np.array([frames.add(Frame(kind, label)) for label in labels], np.int32)
        for kind in (Kind.RANK, Kind.PROCESS)
    )
    stacks, number = _stacks(summary, ids)
    parts = frames.add(WAITING_PART), frames.add(TRANSFER_PART)
    ranks = _Ranks(summary, sources, of_ranks, processes, ids, number, stacks, parts)
    gpu, host = (table_groups(summary, one) for one in (False, True))
    meta = Meta(format=FORMAT, producer=_common(one.producer for one in summary.info))
    return Profile(
        frames=frames.build(),
        activities=ranks.table(gpu, repeat(np.int32(0), len(gpu))),
        processes=(whole,),
        threads=(),
        devices=(),
        grouping=grouping.padded(len(frames)),
        meta=meta,
        begin=0,
        end=max((one.end - one.begin for one in summary.info), default=0),
        graph_nodes=GraphNodes(),
        warnings=tuple(_warnings(summary)),
        host_builder=partial(ranks.table, host, repeat(np.int32(0), len(host))),
        sources=(Source("", meta),),
        timed=False,
        totals=_totals(summary.total, gpu, host, ranks, ranks.waits(gpu, of_cells=False)),
    )


def _totals(sums: I8, gpu: I8, host: I8, ranks: _Ranks, waits: GroupWaits | None) -> GroupTotals:
    """Choose the sums of each table among ``sums``, i8[metrics, groups or cells]."""
    values = {key: sums[row][gpu] for row, key in enumerate(METRICS)}
    values["host"] = sums[METRICS.index("host")][host]
    counts = {"gpu": values["count"], "host": sums[METRICS.index("count")][host]}
    return GroupTotals(values, counts, 0, ranks, waits)


class _Ranks:
    """Tells the sums of each rank of a summary.

    ``ids`` and ``number`` say where its frames and stacks are in the profile, whose frames for the
    ranks are ``rank_frames`` and ``process_frames``, and for the parts of collectives ``parts``.
    """

    places: tuple[int, ...] | None = None
    """The ranks that the profile is split by; None of all together."""

    def __init__(
        self,
        summary: RankSummary,
        sources: tuple[Source, ...],
        rank_frames: I4,
        process_frames: I4,
        ids: I4,
        number: I4,
        stacks: StackTable,
        parts: tuple[int, int],
    ) -> None:
        self.summary = summary
        self._sources = sources
        self._frames = rank_frames, process_frames
        self._parts = parts
        self._ids, self._number, self._stacks = ids, number, stacks
        self._split: WeakKeyDictionary[Profile, _Split] = WeakKeyDictionary()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files of the ranks of the profile."""
        if self.places is None:
            return self._sources
        return tuple(self._sources[at] for at in self.places)

    @property
    def gpus(self) -> Mapping[str, int]:
        """How many GPUs of each name the ranks of the profile ran on."""
        info = self.summary.info
        places = range(len(info)) if self.places is None else self.places
        return Counter(name for at in places for name in info[at].gpus)

    @property
    def why_no_waits(self) -> str:
        """Why it is not known how long their collectives waited; empty where it is."""
        return why_no_waits(self.summary)

    def waits(self, chosen: I8, of_cells: bool) -> GroupWaits | None:
        """How long the collectives of the ``chosen`` groups, or cells, waited."""
        summary, waits = self.summary, self.summary.waits
        if waits is None or not waits.by_group:
            return None
        if of_cells:
            return GroupWaits(*waits_of_cells(summary, waits, chosen), *self._parts)
        calls, waiting, transfer = waits_of_all(summary, waits)
        return GroupWaits(calls[chosen], waiting[chosen], transfer[chosen], *self._parts)

    def table(self, groups: Column, process: Column) -> Activities:
        """Make a table of ``groups`` of the summary that ``process`` has run, with no rows."""
        of, size = self.summary.groups, len(groups)
        no_row = np.zeros(0, np.int64)
        kind = of.kind[groups].astype(np.uint8)
        table = Activities(
            **off_gpu_columns(0), kind=kind[:0], start=no_row, duration=no_row, stacks=self._stacks
        )
        unknown = repeat(np.int32(NONE), size)
        table.__dict__["groups"] = Groups(
            repeat(np.int32(0), 0),
            kind,
            process=process,
            **dict.fromkeys(("thread", "device", "stream"), unknown),
            **{name: self._number[getattr(of, name)[groups]] for name in STACKS},
            **{name: self._ids[getattr(of, name)[groups]] for name in FRAMES},
            launched=of.launched[groups] > 0,
        )
        return table

    def split(self, profile: Profile, places: Sequence[int]) -> Profile:
        """Return the same with groups of their own for the ranks at ``places``, and no others."""
        known = self.places or range(len(self._sources))
        chosen = tuple(known[at] for at in places)
        if chosen == self.places:
            return profile
        kept = self._split.get(profile)
        if kept is None or kept.places != chosen:
            kept = self._split[profile] = _Split(chosen, self._split_by(profile, chosen))
        return kept.profile

    def _split_by(self, profile: Profile, places: tuple[int, ...]) -> Profile:
        summary = self.summary
        (gpu, of_gpu), (host, of_host) = (
            table_cells(summary, one, places) for one in (False, True)
        )
        names = rank_labels(summary)
        ranks, processes = (frames[list(places)] for frames in self._frames)
        return replace(
            profile,
            activities=self.table(summary.cell_group[gpu], of_gpu.astype(np.int32)),
            host_builder=partial(self.table, summary.cell_group[host], of_host.astype(np.int32)),
            processes=tuple(Process(NONE, names[at], n) for n, at in enumerate(places)),
            grouping=replace(profile.grouping, rank=ranks, process=processes),
            totals=_totals(
                summary.cell, gpu, host, self._of(places), self.waits(gpu, of_cells=True)
            ),
            sources=tuple(self._sources[at] for at in places),
        )

    def _of(self, places: tuple[int, ...]) -> _Ranks:
        """The same, of a profile that is split by the ranks at ``places``."""
        ranks = copy(self)
        ranks.places = places
        return ranks


class _Split(NamedTuple):
    """Hold the profile of the ranks at ``places``."""

    places: tuple[int, ...]
    profile: Profile


def _stacks(summary: RankSummary, ids: I4) -> tuple[StackTable, I4]:
    """(the stacks in order of depth, where each is in them); the last is of the empty one."""
    root = np.array([NONE], np.int32)
    depth = stack_depths(np.concatenate([root, summary.stack_parent + 1]))[1:]
    order = np.argsort(depth, kind="stable")
    number = np.zeros(len(order) + 1, np.int32)
    number[order] = np.arange(1, len(order) + 1)
    parent = np.concatenate([root, number[summary.stack_parent[order]]])
    frame = np.concatenate([root, ids[summary.stack_frame[order]]])
    return StackTable(parent, frame, np.concatenate([root + 1, depth[order]])), number


def _common(texts: Iterable[str]) -> str:
    """The one text that all are; empty where they differ."""
    found = set(texts)
    return found.pop() if len(found) == 1 else ""


def _warnings(summary: RankSummary) -> list[str]:
    """Say which files could not be read, what ranks were warned of, and what never met."""
    often = Counter(text for one in summary.info for text in dict.fromkeys(one.warnings))
    notes = [
        f"{count:,} of {len(summary):,} ranks: {text}" if count < len(summary) else text
        for text, count in often.most_common(_MOST_WARNINGS)
    ]
    lost = [f"{one.path} is lacking: {one.reason}" for one in summary.lost[:_MOST_WARNINGS]]
    if len(summary.lost) > len(lost):
        lost.append(f"{len(summary.lost) - len(lost):,} more files are lacking")
    waits = summary.waits
    met = count_calls(summary, waits).note if waits is not None and waits.by_group else ""
    return [*lost, *notes, *filter(None, [met])]
