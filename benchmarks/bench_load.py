#!/usr/bin/env python3
"""Measures loading a trace against the SQL limit: the time SQLite itself needs for the columns.

Both are whole processes with a warm cache, medians of three, in one run: ratios can be compared
between machines, seconds cannot.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

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
import json, resource, sys, time
begin = time.perf_counter()
import flame
trace = flame.load(sys.argv[1])
loaded = time.perf_counter()
tree = trace.tree()
done = time.perf_counter()
print(json.dumps({
    "load": loaded - begin,
    "tree": done - loaded,
    "nodes": len(tree),
    "kernels": trace.profile.counts["kernel"],
    "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
}))
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


def run(command: list[str]) -> tuple[float, str]:
    """Wall time in s, and what the command printed."""
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True)
    return time.perf_counter() - begin, done.stdout


def report(path: Path) -> str:
    """Measures `path` and says what came out."""
    file_mib = path.stat().st_size / 2**20
    sql, load = sql_command(path), [sys.executable, "-c", LOAD, str(path)]
    run(sql)  # warms the cache
    limits, walls, inner = [], [], []
    for _ in range(ROUNDS):
        limits.append(run(sql)[0])
        wall, output = run(load)
        walls.append(wall)
        inner.append(json.loads(output))
    limit, wall = statistics.median(limits), statistics.median(walls)
    median = {key: statistics.median(one[key] for one in inner) for key in inner[0]}
    unit = 2**20 if sys.platform == "darwin" else 2**10
    rss = max(one["rss"] for one in inner) / unit
    return (
        f"{path.name}: {file_mib:.0f} MiB, {median['kernels']:,.0f} kernels,"
        f" {median['nodes']:,.0f} tree nodes\n"
        f"  SQL limit ({Path(sql[0]).name}): {limit:.2f} s\n"
        f"  load + tree: {wall:.2f} s (load {median['load']:.2f} s, tree {median['tree']:.3f} s)\n"
        f"  ratio to the SQL limit: {wall / limit:.2f}\n"
        f"  peak memory: {rss:.0f} MiB, {rss / file_mib:.2f} of the file"
    )


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
