#!/usr/bin/env python3
"""Sums up clones of a rank, and says what merging, packing and unpacking them took.

    python benchmarks/clone_ranks.py FOLDER --ranks 64 256 1024 [--rounds 3]

No two clones have a number in common: times differ by some percent, and who waits in collectives
by chance. A summary of so many ranks is written into FOLDER for each size; what all took is
printed as JSON, in s of this process, the least of the rounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flame.core.columns import I8, distinct, sum_by
from flame.core.loading.many import load
from flame.core.rank_summary.duration_histogram import BINS, MOST_BIN
from flame.core.rank_summary.summary import METRICS, RankSummary
from flame.core.rank_summary.summary_file import pack_summary, unpack_summary
from flame.core.ranks.communication.arrivals import Arrivals, communication_of, table_of
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.communication.summary_waits import with_waits
from flame.core.ranks.communication.waits import RankWaits, waits_of
from flame.core.ranks.job import Reduction
from flame.core.ranks.summarise import RankPart, summarise
from tests.support.ranks.rank_traces import write_ranks

T = TypeVar("T")
_GPU = METRICS.index("gpu")


def clone(part: RankPart, rank: int) -> RankPart:
    """The same rank once more, with other numbers."""
    draw, one = np.random.default_rng(rank), part.summary
    arrivals = _arrivals(part.arrivals[0], rank, draw)
    total = one.total.copy()
    total[1:] = _varied(total[1:], draw)
    total[_GPU] = np.maximum(total[_GPU], _communicated(one, arrivals))
    bins = _bins(one, draw)
    info = one.info[0]
    info = msgspec.structs.replace(
        info,
        rank=rank,
        path=f"runs/rank{rank:05}.sqlite",
        step_times=tuple(_varied(np.array(info.step_times, np.int64), draw).tolist()),
        step_work=tuple(_varied(np.array(info.step_work, np.int64), draw).tolist()),
    )
    summary = replace(
        one,
        info=(info,),
        total=total,
        rank_total=total.sum(axis=1, keepdims=True),
        cell=total[:, one.cell_group],
        longest=one.longest + draw.integers(0, 1_000, len(one.longest)),
        longest_rank=np.full(len(one.longest), rank, np.int32),
        bin_group=(bins[0] // BINS).astype(np.int32),
        bin=(bins[0] % BINS - 1).astype(np.int32),
        bin_count=bins[1],
        collectives=table_of(arrivals),
        communication=communication_of(arrivals),
    )
    return RankPart(summary, (arrivals,))


def _communicated(one: RankSummary, arrivals: Arrivals) -> I8:
    """What collectives take in each group of ``one``, which its GPU time is not below."""
    places = {tuple(key): place for place, key in enumerate(one.group_hash.tolist())}
    of = np.array([places[tuple(key)] for key in arrivals.group_hash.tolist()], np.int64)
    known = arrivals.group >= 0
    return sum_by(of[arrivals.group[known]], arrivals.duration[known], len(one.group_hash))


def _varied(values: I8, draw: np.random.Generator) -> I8:
    return np.rint(values * draw.lognormal(0, 0.02, values.shape)).astype(np.int64)


def _bins(one: RankSummary, draw: np.random.Generator) -> tuple[I8, I8]:
    """(group and bin, count) of durations that fall into bins beside those they were in."""
    bins = np.clip(one.bin + draw.integers(-1, 2, len(one.bin)), -1, MOST_BIN)
    keys, place = distinct(one.bin_group.astype(np.int64) * BINS + bins + 1)
    return keys, sum_by(place, one.bin_count, len(keys))


def _arrivals(one: Arrivals, rank: int, draw: np.random.Generator) -> Arrivals:
    wait = np.rint(draw.exponential(20_000, len(one.start))).astype(np.int64)
    clock = int(draw.integers(-3_000_000, 3_000_000))
    return one._replace(
        rank=rank,
        origin=None if one.origin is None else one.origin + clock,
        start=one.start - clock - wait,
        duration=one.duration + wait,
        own=_varied(one.own, draw),
    )


def merged(parts: Sequence[RankPart]) -> RankSummary:
    """The sums of all, as a job does it: eight by eight, as they come."""
    reduction = Reduction()
    for part in parts:
        reduction.add(part.summary)
    return reduction.whole()


def waited(parts: Sequence[RankPart], whole: RankSummary) -> list[RankWaits]:
    """The second pass."""
    matching = match_table(whole.collectives, len(whole))
    return [waits_of(part.arrivals[0], whole.collectives, matching) for part in parts]


def timed(work: Callable[[], T], times: dict[str, float], name: str) -> T:
    """What ``work`` returns; its time is noted if it is the least."""
    begin = time.process_time()
    found = work()
    times[name] = min(times.get(name, np.inf), time.process_time() - begin)
    return found


def one_round(parts: Sequence[RankPart], path: Path, times: dict[str, float]) -> None:
    """Sum up ``parts``, write them, and read them again."""
    whole = timed(partial(merged, parts), times, "merge")
    waits = timed(partial(waited, parts, whole), times, "waits")
    whole = timed(partial(with_waits, whole, waits), times, "with waits")
    data = timed(partial(pack_summary, whole), times, "pack")
    again = timed(partial(unpack_summary, data, str(path)), times, "unpack")
    assert len(again) == len(parts)
    path.write_bytes(data)
    times["bytes"] = len(data)


def measure(folder: Path, base: Path, sizes: Sequence[int], rounds: int) -> dict[int, object]:
    """Measure each size, in turn, so many times."""
    part = summarise(load(base), base)
    parts = [clone(part, rank) for rank in range(max(sizes))]
    found: dict[int, dict[str, float]] = {size: {} for size in sizes}
    for _, size in _turns(sizes, rounds):
        one_round(parts[:size], folder / f"{size}.flamesum", found[size])
    groups, collectives = len(part.summary.group_hash), len(part.summary.collectives.ordinal)
    of_each = {"groups": groups, "collectives": collectives}
    return {size: times | of_each for size, times in found.items()}


def _turns(sizes: Sequence[int], rounds: int) -> Iterator[tuple[int, int]]:
    """Each size in turn; the larger ones, which take longer, less often."""
    for number in range(rounds):
        for size in sizes:
            if number == 0 or size <= 1_024:
                yield number, size


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trace", type=Path, help="of the rank to clone; else one is generated")
    args = parser.parse_args()
    base = args.trace or write_ranks(args.folder / "one", 2, steps=12, layers=24).paths[0]
    print(json.dumps(measure(args.folder, base, args.ranks, args.rounds)))


if __name__ == "__main__":
    main()
