#!/usr/bin/env python3
"""Measures loading a trace against the SQL limit: the time SQLite itself needs for the columns.

flame with its compiled library and by numpy alone; whole processes with a warm cache, in turn,
medians of three: ratios can be compared between machines, seconds cannot. Processor time (user and
system) hardly depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

# numpy stays out of this process: a child's peak memory begins at that of the process it is
# spawned from.
HERE = Path(__file__).resolve().parent
ROUNDS = 3
SIZES = ("100k", "1M", "10M")
NEEDED = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "start end deviceId streamId correlationId globalPid shortName"
    " demangledName graphNodeId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid correlationId nameId callchainId",
    "NVTX_EVENTS": "start end eventType globalTid domainId textId length(text)",
}
LOAD = """
import json, sys
import flame
trace = flame.load(sys.argv[1])
print(json.dumps({"nodes": len(trace.tree()), "kernels": trace.profile.counts["kernel"]}))
"""
QUERY_BY_PYTHON = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for sql in sys.argv[2].split(";"):
    db.execute(sql).fetchall()
"""


def queries(path: Path) -> str:
    """One SELECT per table that the file has, summing the needed columns that it has."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        selects = []
        for table, wanted in NEEDED.items():
            present = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            columns = [
                c for c in wanted.split() if c.removeprefix("length(").rstrip(")") in present
            ]
            # Not sum(): a million process ids overflow 64 bits.
            sums = ", ".join(f"total({column})" for column in columns)
            selects += [f"SELECT {sums} FROM {table}"] if columns else []
    return "; ".join(selects)


def sql_command(path: Path) -> list[str]:
    """Runs the queries in the sqlite3 program or, where there is none, in Python."""
    if program := shutil.which("sqlite3"):
        return [program, "-readonly", str(path), queries(path)]
    return [sys.executable, "-c", QUERY_BY_PYTHON, str(path), queries(path)]


class Run(NamedTuple):
    """Wall and processor time of a process, s, its peak memory, bytes, and what it printed."""

    wall: float
    cpu: float
    memory: float
    output: str


def run(command: list[str], **environment: str) -> Run:
    """Runs ``command`` to its end."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        env = {**os.environ, **environment}
        process = subprocess.Popen(command, cwd=HERE.parent, stdout=output, env=env)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        wall = time.perf_counter() - begin
        output.seek(0)
        unit = 1 if sys.platform == "darwin" else 2**10
        return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * unit, output.read())


def medians(runs: list[Run]) -> Run:
    """The medians of all times, and the largest memory."""
    wall, cpu = (statistics.median(times) for times in zip(*(one[:2] for one in runs), strict=True))
    return Run(wall, cpu, max(one.memory for one in runs), runs[0].output)


def report(path: Path) -> str:
    """Measures `path` and says what came out."""
    load = [sys.executable, "-c", LOAD, str(path)]
    kinds = {
        "SQL limit": (sql_command(path), {}),
        "flame": (load, {"FLAME_NO_NATIVE": "0"}),
        "flame, numpy alone": (load, {"FLAME_NO_NATIVE": "1"}),
    }
    run(kinds["SQL limit"][0])  # warms the cache
    runs: dict[str, list[Run]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, (command, environment) in kinds.items():
            runs[kind].append(run(command, **environment))
    median = {kind: medians(each) for kind, each in runs.items()}
    limit, size = median["SQL limit"], path.stat().st_size
    facts = json.loads(median["flame"].output)
    lines = [
        f"{path.name}: {size / 2**20:.0f} MiB, {facts['kernels']:,} kernels,"
        f" {facts['nodes']:,} tree nodes",
        "                     wall s    CPU s  x SQL wall  x SQL CPU  peak MiB  x file",
    ]
    lines += [
        f"{kind:20}{one.wall:7.2f}{one.cpu:9.2f}{one.wall / limit.wall:12.2f}"
        f"{one.cpu / limit.cpu:11.2f}{one.memory / 2**20:10.0f}{one.memory / size:8.2f}"
        for kind, one in median.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("file", nargs="?", type=Path)
    source.add_argument("--kernels", choices=SIZES, help="generate a file of that size first")
    args = parser.parse_args()
    if args.file:
        print(report(args.file.resolve()))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{args.kernels}.sqlite"
        run([sys.executable, str(HERE / "generate.py"), str(path), "--kernels", args.kernels])
        print(report(path))


if __name__ == "__main__":
    main()
