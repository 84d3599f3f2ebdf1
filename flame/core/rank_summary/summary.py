"""Declare the summary of ranks: frames, stacks and groups of all, sums of each, no activities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct

from flame.core.columns import I4, I8
from flame.core.frame import Frame
from flame.core.lazy_dataclass import dataclass
from flame.core.rank_summary.collective_table import CollectiveTable, no_collectives
from flame.core.rank_summary.content_hash import Hashes
from flame.core.rank_summary.rank_communication import RankCommunication, no_communication
from flame.core.rank_summary.rank_waits import RankWaitTable

METRICS = ("count", "gpu", "launch", "queue", "idle", "host")
"""What is summed up, in the order of rows of ``total``, ``rank_total`` and ``cell``."""

STACKS = ("python", "native", "nvtx", "stack")
FRAMES = ("launch", "frame")


class SummaryGroups(NamedTuple):
    """Hold the groups of activities, i4[groups] each, as `Activities` has them.

    They do not say who ran them: processes, threads, devices and streams have numbers of their
    own on each rank. ``host`` is 1 for groups of the host's table. ``python``, ``native``,
    ``nvtx`` and ``stack`` are places among the stacks, ``launch`` and ``frame`` among the frames;
    -1: none.
    """

    kind: I4
    launched: I4
    host: I4
    python: I4
    native: I4
    nvtx: I4
    stack: I4
    launch: I4
    frame: I4


class RankInfo(Struct, frozen=True, order=True):
    """Describe a rank that was read; times in ns.

    ``path`` names its file as it was given. ``begin`` and ``end`` count from ``origin``, the time
    of day in ns since 1970 or None. ``coverage`` is GPU time with a launch, a range and so on, as
    `Profile.coverage`. ``step_numbers`` are those of its iterations, which rise, ``step_times`` how
    long these took on the host, and ``step_work`` what the GPU did for them besides communication.
    ``iteration`` is the expression that chose the ranges that are iterations, '' without one, and
    ``host`` the machine's name, if that is known.
    """

    rank: int
    path: str
    format: str = ""
    producer: str = ""
    begin: int = 0
    end: int = 0
    origin: int | None = None
    activities: int = 0
    gpus: tuple[str, ...] = ()
    coverage: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    step_numbers: tuple[int, ...] = ()
    step_times: tuple[int, ...] = ()
    step_work: tuple[int, ...] = ()
    iteration: str = ""
    host: str = ""


class LostRank(NamedTuple):
    """Name a file that could not be read, and say why."""

    path: str
    reason: str


@dataclass(frozen=True, eq=False)
class RankSummary:
    """Hold the sums of one rank or of many, as columns.

    Frames, stacks and groups are in the order of their hashes, ranks in that of their number and
    path: so what is merged in another order is the same, bit for bit.

    ``stack_parent`` i4[stacks] is the place of the stack without its last frame, -1 where that is
    empty; ``stack_frame`` i4[stacks] that frame.

    ``total`` i8[metrics, groups] and ``rank_total`` i8[metrics, ranks] are exact sums, in ns but
    for counts. ``cell`` i8[metrics, cells] is what a rank has of a group: those of rank r are from
    ``cell_start[r]`` (i8[ranks + 1]) on, ``cell_group`` i4[cells] rises within it. Small cells may
    have been left out: ``rank_total`` tells how much.

    ``shortest``, ``longest`` (i8) and ``longest_rank`` (i4) are of the activities of each group,
    ``bin`` (i4) and ``bin_count`` (i8) their durations' histogram, in order of ``bin_group`` (i4)
    and bin.

    ``lost`` are the files that could not be read. ``waits`` is what a second pass has found out
    with the collectives of all ranks, None where none could.
    """

    frames: tuple[Frame, ...]
    frame_hash: Hashes
    stack_hash: Hashes
    stack_parent: I4
    stack_frame: I4
    group_hash: Hashes
    groups: SummaryGroups
    shortest: I8
    longest: I8
    longest_rank: I4
    bin_group: I4
    bin: I4
    bin_count: I8
    info: tuple[RankInfo, ...]
    cell_start: I8
    cell_group: I4
    cell: I8
    total: I8
    rank_total: I8
    collectives: CollectiveTable
    communication: RankCommunication
    waits: RankWaitTable | None
    lost: tuple[LostRank, ...] = ()

    def __len__(self) -> int:
        return len(self.info)

    @property
    def rank(self) -> I8:
        """The number of each rank, i8[ranks], ascending."""
        return np.array([one.rank for one in self.info], np.int64)


def empty_summary(lost: tuple[LostRank, ...] = ()) -> RankSummary:
    """Make the summary of no rank, with what was ``lost``."""
    i4, i8, hashes = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros((0, 2), np.uint64)
    nothing = np.zeros((len(METRICS), 0), np.int64)
    return RankSummary(
        frames=(),
        frame_hash=hashes,
        stack_hash=hashes,
        stack_parent=i4,
        stack_frame=i4,
        group_hash=hashes,
        groups=SummaryGroups(*[i4] * len(SummaryGroups._fields)),
        shortest=i8,
        longest=i8,
        longest_rank=i4,
        bin_group=i4,
        bin=i4,
        bin_count=i8,
        info=(),
        cell_start=np.zeros(1, np.int64),
        cell_group=i4,
        cell=nothing,
        total=nothing,
        rank_total=nothing,
        collectives=no_collectives(),
        communication=no_communication(),
        waits=None,
        lost=lost,
    )
