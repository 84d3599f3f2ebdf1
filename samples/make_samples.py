#!/usr/bin/env python3
"""Writes a synthetic Nsight Systems export: a mixture-of-experts decode on two GPUs.

The same bytes at every run (with one version of SQLite); see README.md for what is in it.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from samples.decode_timeline import COPIES, UNMAPPED, Range, Rank, Step
from samples.moe_model import KERNELS
from samples.nsys_rows import Row, Strings, description, events
from samples.nsys_schema import MARK, START_END, TABLES_2026, create_sql, required

# 8 requests are prefilled and decode, 8 more join them, all decode together and are done.
CYCLE = (Step(8, 2048, 0), *[Step(0, 0, 8)] * 6, Step(8, 1024, 8), *[Step(0, 0, 16)] * 8)
CYCLES = {"small": 1, "large": 10}
SLOW_STEP = 12
PIDS = (4101, 4102)
BEGIN = -2_000_000
FIRST_STEP = 900_000_000
MID_FLIGHT = 6


@dataclass(frozen=True)
class Expected:
    """What the generator knows of its own file.

    `paths` maps the NVTX path of GPU work (range texts, outer to inner; for replayed kernels the
    replay's own ranges, then those of the capture) to ns, `layers` a layer's number to ns.
    """

    kernels: int
    memcpys: int
    memsets: int
    gpu_ns: int
    paths: Mapping[tuple[str, ...], int]
    layers: Mapping[int, int]
    no_launch: int
    unmapped_nodes: int


def expected(size: str = "small") -> Expected:
    """The truth about the file that `write` makes for `size`."""
    ranks = _play(size)
    activities = [activity for rank in ranks for activity in rank.activities]
    paths = ranks[0].truth + ranks[1].truth
    layers: Counter[int] = Counter()
    for path, ns in paths.items():
        if number := re.search(r"\.layers\.(\d+)", " ".join(path)):
            layers[int(number[1])] += ns
    return Expected(
        kernels=sum(activity.key in KERNELS for activity in activities),
        memcpys=sum(activity.key in COPIES for activity in activities),
        memsets=sum(activity.key == "memset" for activity in activities),
        gpu_ns=sum(activity.end - activity.start for activity in activities),
        paths=paths,
        layers=layers,
        no_launch=MID_FLIGHT * len(ranks),
        unmapped_nodes=sum(a.key == UNMAPPED and a.node is not None for a in activities),
    )


def write(path: Path, size: str = "small") -> None:
    """Writes the sample; an existing file is replaced."""
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA page_size=4096")
    db.execute("PRAGMA journal_mode=OFF")
    db.execute("BEGIN")
    ranks = _play(size)
    strings = Strings()
    tables = {**events(ranks, strings), **description(ranks, strings)}
    for table, columns in TABLES_2026.items():
        rows = strings.rows() if table == "StringIds" else tables.get(table)
        if rows:
            _insert(db, table, columns, rows)
    db.execute("COMMIT")
    db.execute("VACUUM")
    db.close()


def _steps(size: str) -> list[Step]:
    steps = list(CYCLE * CYCLES[size])
    steps[SLOW_STEP] = replace(steps[SLOW_STEP], slow=True)
    return steps


def _play(size: str) -> list[Rank]:
    ranks = [Rank(index, pid, BEGIN + 70_000 * index) for index, pid in enumerate(PIDS)]
    for rank in ranks:
        rank.capture()
        rank.now = FIRST_STEP
        rank.mid_flight(MID_FLIGHT)
    steps = _steps(size)
    times = [_run_step(ranks, step) for step in steps]
    _requests(ranks[0], steps, times)
    _leave_open(ranks[0])
    for rank in ranks:
        rank.poll(FIRST_STEP - 5_000_000, rank.now, 9_700_000)
    return ranks


def _run_step(ranks: Sequence[Rank], step: Step) -> tuple[int, int]:
    """Both ranks begin a step together, as tensor parallelism makes them."""
    begin = max(rank.now for rank in ranks)
    for rank in ranks:
        rank.now = begin + rank.jitter(9_000, 50)
        rank.step(step)
    return begin, ranks[0].now


def _requests(rank: Rank, steps: Sequence[Step], times: Sequence[tuple[int, int]]) -> None:
    """A start/end range per request, ending in another order than they began; and a mark."""
    arrivals = [(i, n) for i, step in enumerate(steps) for n in range(step.context)]
    for number, (first, n) in enumerate(arrivals):
        last = first - first % len(CYCLE) + len(CYCLE) - 1
        begin, end = times[first][0] + 2_000 * n, times[last][1] + 1_000 * (5 * n % 8)
        event = Range(begin, f"request {number}", START_END, end)
        event.id, event.thread = number + 1, rank.thread
        event.end_thread = rank.watchdog if n % 2 else None
        rank.ranges.append(event)
    mark = Range(times[0][0] + 30_000, "request 3: prefix cache hit", MARK, thread=rank.thread)
    rank.ranges.append(mark)


def _leave_open(rank: Rank) -> None:
    """The recording stops inside the last step: its range has no end."""
    [*_, last] = (event for event in rank.ranges if event.text.startswith("execute_"))
    last.end = None


def _insert(db: sqlite3.Connection, table: str, columns: str, rows: Iterable[Row]) -> None:
    db.execute(create_sql(table, columns))
    names = [column.rstrip("!^").partition(":")[0] for column in columns.split()]
    neutral = dict.fromkeys(names) | required(columns)
    slots = ", ".join(f":{name}" for name in names)
    db.executemany(f"INSERT INTO {table} VALUES ({slots})", ({**neutral, **row} for row in rows))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parent
    parser.add_argument("-o", metavar="DIR", type=Path, default=here, help="default: samples/")
    parser.add_argument("--size", choices=sorted(CYCLES), default="small")
    args = parser.parse_args()
    path = args.o / f"decode_{args.size}.sqlite"
    write(path, args.size)
    print(f"{path}: {path.stat().st_size / 2**20:.2f} MiB", file=sys.stderr)


if __name__ == "__main__":
    main()
