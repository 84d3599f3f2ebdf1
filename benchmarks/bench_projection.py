#!/usr/bin/env python3
"""Measures projecting a trace anew: other levels, filters, bottom-up, folding, search, sandwich.

On generated traces: trees of as many nodes as asked for (half of their names differ), and one of as
many ranges of different names. Processor time of one process, the best of the rounds, and the
memory that is taken meanwhile. The baseline in the same rounds is one numpy pass: a number for each
node of the tree, summed by group. Ratios to it can be compared between machines, milliseconds
cannot.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.bench_tui import number
from benchmarks.support import rows as told
from benchmarks.support.measuring import generated
from benchmarks.support.tree_traces import NODES_PER_STEP, OPERATORS, generate
from flame.core.analysis.sandwich import callees_of, callers_of
from flame.core.columns import sum_by
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.projection.filters import Kernel, MinShare, ShowStacks
from flame.core.projection.labels import exact_labels
from flame.core.projection.number_folds import fold_numbers
from flame.core.projection.project import project
from flame.core.projection.selection import select
from flame.core.starting import prepare_process
from flame.tui.session.query import Query, find

BASELINE = "sum by group"
Work = Callable[[], object]


class Cost(NamedTuple):
    """Processor seconds of every round, and the most bytes taken meanwhile."""

    cpu: list[float]
    memory: list[int]


def works(profile: Profile) -> dict[str, Work]:
    """What is measured on ``profile``, the baseline first; nothing is kept from round to round."""
    tree = project(profile)
    count, deepest = len(tree), int(tree.frame[tree.depth.argmax()])
    group, values = np.random.default_rng(0).integers(0, count, count), np.arange(count)
    return {
        BASELINE: lambda: sum_by(group, values, count),
        "as opened": anew(profile),
        "pivot": anew(profile, levels=("kernel", "nvtx", "stream")),
        "bottom-up": anew(profile, layout=TreeLayout(inverted=True)),
        "by name": anew(profile, layout=TreeLayout(order="name")),
        "filter: kernels": anew(profile, where=(Kernel("attn|mm_kernel"),)),
        "filter: stacks": anew(profile, where=(ShowStacks("attn"),)),
        "filter: share": anew(profile, where=(MinShare(0.1),)),
        "first fold": lambda: first_fold(profile, tree),
        "fold": anew(profile, fold_numbers=True),
        "search": lambda: find(tree, Query("attn")),
        "search: capitals": lambda: find(tree, Query("Attn")),
        "search: pattern": lambda: find(tree, Query(r"attn \d*7$")),
        "sandwich": lambda: (callers_of(tree, deepest), callees_of(tree, deepest)),
    }


def anew(profile: Profile, **how: Any) -> Work:
    """The projection of what ``how`` selects."""
    return partial(project, profile, select(**how))


def first_fold(profile: Profile, tree: StackTree) -> object:
    """Fold the numbers in all names, of which nothing is known yet."""
    exact = exact_labels(profile.frames, select().naming)
    return fold_numbers(profile.frames, exact, profile.table(tree.metric).stacks)


def measure(path: Path, rounds: int) -> dict[str, Cost]:
    """The cost of every work on the trace at ``path``."""
    profile = load(path)
    todo = works(profile)
    costs = {name: Cost([], []) for name in todo}
    for _ in range(rounds):
        for name, work in todo.items():
            costs[name].cpu.append(timed(work))
    for name, work in todo.items():
        costs[name].memory.append(peak(work))
    return costs


def timed(work: Work) -> float:
    """Processor seconds of ``work``."""
    gc.collect()
    begin = time.process_time()
    work()
    return time.process_time() - begin


def peak(work: Work) -> int:
    """The most bytes that ``work`` takes at any time, its result included."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def rows(costs: dict[str, Cost], nodes: int) -> list[dict[str, object]]:
    """A row per work: best time in ms and as a ratio, memory in bytes a node."""
    limit = min(costs[BASELINE].cpu)
    return [
        {
            "work": name,
            "ms": round(min(cost.cpu) * 1e3, 2),
            "ratio": round(min(cost.cpu) / limit, 1),
            "bytes_per_node": round(max(cost.memory) / nodes),
        }
        for name, cost in costs.items()
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--nodes", default="10k,250k", help="sizes of the tree (default: %(default)s)")
    add("--names", default="100k", help="ranges of different names (default: %(default)s)")
    add("--rounds", type=int, default=3)
    add("--keep", type=Path, metavar="DIR", help="a folder that holds the traces, or will")
    add("--kernels", default="", help="kernels whose names repeat (100k, 1M)")
    told.add_option(parser)
    args = parser.parse_args()
    prepare_process()  # as the app does, whose keys wait for this
    sizes = {f"{size} nodes": number(size) for size in filter(None, args.nodes.split(","))}
    for size in filter(None, args.names.split(",")):
        sizes[f"{size} names"] = number(size) * NODES_PER_STEP // OPERATORS
    found: list[told.Row] = []
    with nullcontext(args.keep) if args.keep else tempfile.TemporaryDirectory() as folder:
        for size in filter(None, args.kernels.split(",")):
            sizes[f"{size} kernels"] = number(size)
            generated(Path(folder), size).rename(Path(folder) / f"{size} kernels.sqlite")
        for title, nodes in sizes.items():
            path = Path(folder) / f"{title}.sqlite"
            if not path.exists():
                generate(path, nodes)
            costs = rows(measure(path, args.rounds), nodes)
            report(title, costs)
            found += as_told(title, costs)
    told.tell(found, args.json)


def as_told(title: str, found: list[dict[str, object]]) -> Iterator[told.Row]:
    """The rows of the page of figures."""
    for row in found:
        of = "{ratio} x a sum by group, {bytes_per_node} bytes a node".format_map(row)
        yield told.Row(f"{row['work']}, {title}", float(str(row["ms"])), "ms", of)


def report(title: str, found: list[dict[str, object]]) -> None:
    """Print what was ``found``."""
    print(f"\n{title:18}{'CPU ms':>10}{'x sum':>8}{'bytes/node':>12}")
    for row in found:
        print("{work:18}{ms:10.2f}{ratio:8.1f}{bytes_per_node:12d}".format_map(row), flush=True)


if __name__ == "__main__":
    main()
