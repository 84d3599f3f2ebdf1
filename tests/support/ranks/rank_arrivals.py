"""Ranks that meet in collectives: simulated with clocks apart and planted faults, or by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.rank_summary.collective_table import CollectiveTable, IdentitySource
from flame.core.rank_summary.content_hash import hash_text
from flame.core.rank_summary.merge_collectives import merge_collectives
from flame.core.rank_summary.rank_communication import RankCommunication, merge_communication
from flame.core.ranks.communication.arrivals import (
    Arrivals,
    communication_of,
    no_arrivals,
    table_of,
)

ORIGIN = 1_790_000_000_000_000_000
BASE = np.array([60_000, 90_000, 30_000, 120_000, 12_000, 110_000, 6_000, 5_000])
MLP = [3, 4, 5]


class Met(NamedTuple):
    """A collective of a rank, by hand."""

    ordinal: int
    duration: int
    communicator: str = "world"
    kind: str = "all-reduce"
    start: int = 0
    own: int = 0
    work: int = 0
    source: IdentitySource = IdentitySource.NUMBERED
    size: int = 0
    group: int = -1
    step: int = -1


def arrivals_by_hand(
    rank: int, collectives: list[Met], origin: int | None = None, **more: Any
) -> Arrivals:
    """The arrivals of a rank that has these collectives."""
    columns: dict[str, Any] = {
        name: np.array([getattr(one, name) for one in collectives], np.int64)
        for name in Met._fields
        if name not in ("communicator", "kind")
    }
    texts = {name: [getattr(one, name) for one in collectives] for name in ("communicator", "kind")}
    hashes: dict[str, Any] = {
        name: np.array([hash_text(one) for one in of], np.int64) for name, of in texts.items()
    }
    return no_arrivals(rank)._replace(
        origin=origin,
        communicators=named(texts["communicator"]),
        kinds=named(texts["kind"]),
        **columns,
        **hashes,
        **more,
    )


def named(texts: list[str]) -> tuple[tuple[int, str], ...]:
    return tuple((hash_text(one), one) for one in sorted(set(texts)))


def whole_table(ranks: list[Arrivals]) -> CollectiveTable:
    return merge_collectives([table_of(one) for one in ranks])


def whole_communication(ranks: list[Arrivals]) -> RankCommunication:
    return merge_communication([communication_of(one) for one in ranks])


class Job(NamedTuple):
    """Arrivals of ranks, and the truth: ``wait`` and ``last`` i8[ranks], what clocks are off."""

    ranks: list[Arrivals]
    wait: I8
    last: I8
    clock: I8
    collectives: int


def simulate(
    ranks: int,
    steps: int = 6,
    layers: int = 4,
    seed: int = 1,
    straggler: int | None = None,
    late: int | None = None,
) -> Job:
    """Simulate a job whose ranks meet after each layer, on clocks up to 6 ms apart.

    Kernels take their time with 2 % of noise; the ``straggler``'s in three of eight 1.25 times it.
    The host stalls the GPU before each step, that of ``late`` 0.4 ms more before every third.
    """
    rng = np.random.default_rng(seed)
    clock = np.random.default_rng(seed + 99).integers(-3_000_000, 3_000_000, ranks)
    now = np.full(ranks, 5_000_000.0)
    arrive, end, work = [], [], []
    for step in range(steps):
        stall = rng.exponential(20_000, ranks)
        if late is not None and step % 3 == 0:
            stall[late] += 400_000
        now += stall
        for _ in range(layers):
            took = np.rint(BASE[:, None] * rng.lognormal(0, 0.02, (len(BASE), ranks)))
            if straggler is not None:
                took[MLP, straggler] = np.rint(took[MLP, straggler] * 1.25)
            now = now + took.sum(axis=0) + 1_500 * len(BASE)
            arrive.append(now)
            work.append(took.sum(axis=0))
            end.append(now.max() + 150_000 * rng.lognormal(0, 0.05))
            now = np.full(ranks, end[-1]) + rng.exponential(2_000, ranks) + 1_000
    came, done, worked = np.array(arrive), np.array(end), np.array(work)
    start = came.astype(np.int64)
    duration = done.astype(np.int64)[:, None] - start
    before = np.concatenate([start[:1], (start + duration)[:-1]])
    own = start - before
    size = len(done)
    step_of = np.repeat(np.arange(steps), layers)
    found = [
        no_arrivals(rank)._replace(
            origin=ORIGIN + int(clock[rank]),
            communicator=np.full(size, hash_text("stream 0")),
            ordinal=np.arange(size),
            source=np.full(size, IdentitySource.STREAM, np.int64),
            size=np.zeros(size, np.int64),
            kind=np.full(size, hash_text("all-reduce")),
            group=np.zeros(size, np.int64),
            group_hash=np.array([[1, 2]], np.uint64),
            step=step_of,
            start=start[:, rank],
            duration=duration[:, rank],
            own=own[:, rank],
            work=np.minimum(worked[:, rank].astype(np.int64), own[:, rank]),
            communicators=named(["stream 0"]),
            kinds=named(["all-reduce"]),
        )
        for rank in range(ranks)
    ]
    wait = np.rint(came.max(axis=1)[:, None] - came).astype(np.int64).sum(axis=0)
    last = np.bincount(came.argmax(axis=1), minlength=ranks).astype(np.int64)
    return Job(found, wait, last, clock, size)
