"""Hold recordings against what must be so of every one, with the tolerances that real ones need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.gpu.check import Finding
from benchmarks.gpu.recording import Recording, Rows, rows_of

LAUNCHED = 0.999
"""Share of kernels whose launch must have been seen."""
WITH_PYTHON = 0.95
"""Share of launches with a Python stack, of threads that have one at all: autograd's have none."""
AFTER_LAUNCH = 0.999
"""Share of kernels that must not begin before their launch does."""
KERNEL_COUNT = 0.01
"""How far counts may differ between runs of a program that tunes itself."""
MOST_STEPS = 8
"""From the clone of a graph's node to what was captured."""


def hold_recording(found: Finding, recording: Recording) -> None:
    """Hold what every recording of a healthy program must be, and tell what was lost."""
    kernels = recording.count("kernel")
    found.tell(kernels=kernels, launches=recording.count("launch"))
    found.tell(counters=recording.counters(), notes=recording.notes())
    found.hold("kernels", kernels > 0, kernels)
    hold_launches(found, recording)
    dropped = recording.dropped()
    found.hold("nothing lost", not dropped, dropped or "")


def hold_launches(found: Finding, recording: Recording) -> None:
    """Hold that kernels have launches, and launches have Python stacks; their times fit."""
    seen = recording.rows("kernel")["tid"] != 0
    found.hold("launch", share_of(seen) >= LAUNCHED, f"{share_of(seen):.3%} of {len(seen)}")
    launches = recording.rows("launch")
    of_python = np.isin(launches["tid"], np.unique(launches["tid"][launches["python"] != 0]))
    some = launches["python"][of_python] != 0
    found.hold("python", share_of(some) >= WITH_PYTHON, f"{share_of(some):.2%} of {len(some)}")
    ahead = [one for dump in recording.dumps for one in early_kernels(dump)]
    share = 1 - len(ahead) / max(len(seen), 1)
    said = f"{share:.3%}, by {max(ahead, default=0)} ns at most"
    found.hold("after launch", share >= AFTER_LAUNCH, said)


def share_of(some: Rows) -> float:
    """Return the share that is true, 0 of nothing."""
    return float(some.mean()) if len(some) else 0.0


def early_kernels(dump: Path) -> Iterator[int]:
    """Tell by how many ns kernels begin before the call that launched them, of those that do."""
    kernels, launches = rows_of(dump, "kernel"), rows_of(dump, "launch")
    begun = dict(zip(launches["correlation"].tolist(), launches["start"].tolist(), strict=True))
    for one, start in zip(kernels["correlation"].tolist(), kernels["start"].tolist(), strict=True):
        if begun.get(one, 0) > start:
            yield begun[one] - start


def hold_graphs(found: Finding, recording: Recording) -> None:
    """Hold that all kernels of graphs lead to a node whose capture was seen."""
    told = [node for dump in recording.dumps for node in replayed(dump)]
    known = sum(count for is_known, count in told if is_known)
    total = sum(count for _, count in told)
    found.hold("graph nodes", known == total > 0, f"{known} of {total}")


def replayed(dump: Path) -> Iterator[tuple[bool, int]]:
    """Tell of each node that ran whether its capture is known, and how many kernels it had."""
    nodes = rows_of(dump, "graph_node")
    execs = {int(row["exec"]): int(row["graph"]) for row in rows_of(dump, "graph_exec")}
    origins = dict(zip(nodes["node"].tolist(), nodes["original"].tolist(), strict=True))
    # A clone is told of as created, too: what it was made of says more.
    clones = nodes[nodes["original"] != 0]
    origins |= dict(zip(clones["node"].tolist(), clones["original"].tolist(), strict=True))
    kernels = rows_of(dump, "kernel")
    ran, counts = np.unique(kernels["graph_node"][kernels["graph"] != 0], return_counts=True)
    for node, count in zip(ran.tolist(), counts.tolist(), strict=True):
        yield captured(node, origins, execs), count


def captured(node: int, told: dict[int, int], execs: dict[int, int]) -> bool:
    """Whether a node leads to one that was made by capture or by hand."""
    for _ in range(MOST_STEPS):
        if node not in told and node >> 32 in execs:
            node = execs[node >> 32] << 32 | node & 0xFFFFFFFF
        if node not in told:
            return False
        if told[node] == 0:
            return True
        node = told[node]
    return False


def hold_count(found: Finding, what: str, have: int, want: int, share: float = 0.0) -> None:
    """Hold that a count is another tool's, or the program's own."""
    ok = abs(have - want) <= share * want
    found.hold(what, ok and want > 0, f"{have} of {want}")


def hold_samples(found: Finding, recording: Recording, exact: bool) -> None:
    """Hold that there are PC samples, and that they know their launches where they must."""
    rows = recording.rows("sample")
    total = int(rows["samples"].sum())
    related = int(rows["samples"][rows["correlation"] != 0].sum())
    found.tell(samples=total, with_launch=related)
    found.hold("samples", total > 0, total)
    found.hold("launch of samples", (related > 0) == exact, f"{related} of {total}")
