"""Hold a finding: a claim with its evidence, and an upper bound of what mending it can save."""

from __future__ import annotations

from typing import Literal, NamedTuple

from flame.core.lazy_dataclass import dataclass
from flame.core.report.table import Place, Unit, Value

Severity = Literal["high", "medium", "low", "info"]

SHARES: tuple[tuple[Severity, float], ...] = (("high", 0.20), ("medium", 0.05), ("low", 0.01))
"""From which share of the window on a bound is how severe; below the last it is not shown."""

FEWEST_ACTIVITIES = 50
SHORTEST_WINDOW = 10_000_000
"""Below so many activities, or ns, a device says too little: small examples would shout."""

ON_REQUEST = frozenset(
    {
        "graph-nodes",
        "imbalance",
        "late-rank",
        "many-experts-kernels",
        "one-kernel",
        "routing",
        "small-kernels",
        "uneven-layers",
    }
)
"""Findings that are told under --all alone: on no real trace have they proved right often enough.

A rule leaves this set when all its firings on real traces were looked at and none was wrong.
"""

NUMBERS = {
    "capture-window": "iterations",
    "launch-bound": "launches",
    "host-bound": "idle",
    "sync-drain": "syncs",
    "loading": "launches",
    "gc": "states",
    "gil": "states",
    "alloc-in-loop": "memory",
    "pageable": "copies",
    "sync-copies": "copies",
    "copies-exposed": "copies",
    "comm-exposed": "communication",
    "late-rank": "communication",
    "imbalance": "communication",
    "slow-iterations": "iterations",
    "tail": "tails",
    "uneven-layers": "layers",
    "routing": "experts",
    "below-bound": "efficiency",
    "many-experts-kernels": "experts",
    "one-kernel": "kernels",
    "small-kernels": "kernels",
    "profiler-cost": "states",
    "hidden-graphs": "coverage",
    "graph-nodes": "launches",
    "out-of-memory": "memory",
    "memory-growth": "memory",
    "memory-split": "memory",
    "memory-cached": "memory",
}
"""The section with the numbers behind each finding."""


class FindingNumber(NamedTuple):
    """Name a number that a finding rests on."""

    name: str
    value: Value
    unit: Unit


@dataclass(frozen=True)
class Finding:
    """Say what is wrong on a GPU (place in `Profile.devices`, -1: unknown, None: of all GPUs).

    ``bound`` is what mending it can save at most, ns of the ``part`` of the GPU's budget; None
    where that is not told in time. Bounds of one GPU are of disjoint parts. ``rule`` says in words
    when it is told; ``place`` leads to where it is seen. ``advice`` is a key of `ADVICE` where that
    of ``id`` does not fit. ``caution`` says what it does not know for sure.
    """

    id: str
    device: int | None
    severity: Severity
    title: str
    claim: str
    rule: str
    evidence: tuple[FindingNumber, ...] = ()
    bound: int | None = None
    part: str = ""
    place: Place | None = None
    advice: str = ""
    caution: str = ""


class Abstained(NamedTuple):
    """Say why a rule judges nothing."""

    id: str
    why: str


def severity_of(bound: int, window: int) -> Severity | None:
    """Grade what ``bound`` is of ``window``; None where it is too little to be told."""
    share = bound / window if window else 0.0
    return next((severity for severity, least in SHARES if share >= least), None)
