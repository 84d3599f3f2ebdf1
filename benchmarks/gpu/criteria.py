"""Hold recordings against what must be so of every one, with the tolerances that real ones need."""

from __future__ import annotations

import numpy as np

from benchmarks.gpu.check import Finding
from benchmarks.gpu.recording import Recording, Rows

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
    kernels, launches = recording.rows("kernel"), recording.rows("launch")
    found.tell(kernels=len(kernels), launches=len(launches), counters=recording.counters())
    found.hold("kernels", len(kernels) > 0, len(kernels))
    hold_launches(found, kernels, launches)
    dropped = recording.dropped()
    found.hold("nothing lost", not dropped, dropped or "")


def hold_launches(found: Finding, kernels: Rows, launches: Rows) -> None:
    """Hold that kernels have launches, and launches have Python stacks; their times fit."""
    seen = kernels["tid"] != 0
    share = float(seen.mean()) if len(seen) else 0.0
    found.hold("launch", share >= LAUNCHED, f"{share:.3%} of {len(kernels)}")
    of_python = np.isin(launches["tid"], np.unique(launches["tid"][launches["python"] != 0]))
    some = launches["python"][of_python] != 0
    share = float(some.mean()) if len(some) else 0.0
    found.hold("python", share >= WITH_PYTHON, f"{share:.2%} of {int(of_python.sum())}")
    early, worst = early_kernels(kernels, launches)
    share = 1 - early / max(len(kernels), 1)
    found.hold("after launch", share >= AFTER_LAUNCH, f"{share:.3%}, by {worst} ns at most")


def early_kernels(kernels: Rows, launches: Rows) -> tuple[int, int]:
    """Count kernels that begin before the call that launched them, and by how many ns at most."""
    begun = dict(zip(launches["correlation"].tolist(), launches["start"].tolist(), strict=True))
    pairs = zip(kernels["correlation"].tolist(), kernels["start"].tolist(), strict=True)
    ahead = [begun[one] - start for one, start in pairs if one in begun and start < begun[one]]
    return len(ahead), max(ahead, default=0)


def hold_graphs(found: Finding, recording: Recording) -> None:
    """Hold that all work of graphs leads to a node whose capture was seen."""
    kernels, nodes = recording.rows("kernel"), recording.rows("graph_node")
    replayed = kernels["graph_node"][kernels["graph"] != 0]
    execs = {int(row["exec"]): int(row["graph"]) for row in recording.rows("graph_exec")}
    told = dict(zip(nodes["node"].tolist(), nodes["original"].tolist(), strict=True))
    # A clone is told of as created, too: what it was made of says more.
    clones = nodes[nodes["original"] != 0]
    told |= dict(zip(clones["node"].tolist(), clones["original"].tolist(), strict=True))
    different, counts = np.unique(replayed, return_counts=True)
    known = [captured(int(node), told, execs) for node in different]
    share = float(np.average(known, weights=counts)) if len(counts) else 0.0
    found.hold("graph nodes", share == 1, f"{share:.2%} of {len(replayed)}")
    found.tell(graph_kernels=len(replayed), nodes_told=len(nodes))


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
