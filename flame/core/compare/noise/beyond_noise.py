"""Hold which frames of a comparison have changed beyond noise, once that has been found out."""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, U1, Bool
from flame.core.compare.comparison import Comparison
from flame.core.compare.evidence import Evidence, EvidenceLevel, NodeVerdict, find_evidence
from flame.core.compare.over_ranks.worst_ranks import worst_ranks
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass


class FrameVerdict(IntEnum):
    """Say what is known of a frame: that it has changed last.

    It is ``SMALL`` where it has changed beyond noise, but by less than counts, and ``WORST`` where
    only the worst rank has changed, not most of them.
    """

    UNTESTED, SAME, UNCLEAR, SMALL, WORST, CHANGED = range(6)


class PlacesOfFrames(NamedTuple):
    """Count the places of each frame of a union, i8[frames] each: all, and those that are tested.

    Of these some have ``grown`` and ``shrunk`` beyond noise, or have done so and are ``small``, or
    did on the ``worst`` rank, and some are the ``same``.
    """

    all: I8
    tested: I8
    grown: I8
    shrunk: I8
    small: I8
    worst: I8
    same: I8

    def verdicts(self, frame: I8, delta: F8) -> U1:
        """Judge each ``frame`` whose sum over all places has changed by ``delta``, u1[n].

        It has changed where a place has that did so in the same direction.
        """
        moved = np.where(delta > 0, self.grown[frame], np.where(delta < 0, self.shrunk[frame], 0))
        judged = np.where(self.tested[frame] > 0, FrameVerdict.UNCLEAR, FrameVerdict.UNTESTED)
        judged = np.where(self.small[frame] > 0, FrameVerdict.SMALL, judged)
        judged = np.where(self.same[frame] == self.all[frame], FrameVerdict.SAME, judged)
        judged = np.where(self.worst[frame] > 0, FrameVerdict.WORST, judged)
        found: U1 = np.where(moved > 0, FrameVerdict.CHANGED, judged).astype(np.uint8)
        return found


@dataclass(frozen=True, eq=False)
class BeyondNoise:
    """Say what has changed beyond noise: ``nodes`` of the union, bool[n], and its ``frames``.

    Nodes of which nothing tells noise are marked where their change counts, frames where a node is.
    ``verdict`` is the `FrameVerdict` of each node, u1[n].
    """

    evidence: Evidence
    verdict: U1
    nodes: Bool
    frames: Bool
    places: PlacesOfFrames

    @property
    def level(self) -> EvidenceLevel:
        """What is known is known from this; `NONE` where nothing tells noise."""
        return EvidenceLevel(int(self.evidence.level.max(initial=0)))


@dataclass
class NoiseMarks:
    """Hold what has been ``found``: None as long as it is not known."""

    found: BeyondNoise | None = field(default=None)


@kept
def noise_marks(comparison: Comparison) -> NoiseMarks:
    """Return the marks that all pictures of ``comparison`` have in common."""
    return NoiseMarks()


@kept
def find_beyond_noise(comparison: Comparison) -> BeyondNoise:
    """Find out what has changed beyond noise in ``comparison``."""
    tree, nodes = comparison.union.tree, changed_nodes(comparison)
    frames = np.zeros(len(tree.text), bool)
    frames[tree.frame[nodes]] = True
    verdict = node_verdicts(comparison)
    places = _count_places(comparison, verdict)
    return BeyondNoise(find_evidence(comparison), verdict, nodes, frames, places)


@kept
def changed_nodes(comparison: Comparison) -> Bool:
    """Mark the nodes that changed beyond noise, or enough where nothing tells noise, bool[n]."""
    found = find_evidence(comparison)
    untold = found.level == EvidenceLevel.NONE
    changed: Bool = (found.verdict == NodeVerdict.CHANGED) | (untold & comparison.counting)
    return changed


def node_verdicts(comparison: Comparison) -> U1:
    """Judge each node by itself: its `FrameVerdict`, u1[n]."""
    found, changes = find_evidence(comparison), comparison.changes
    with np.errstate(invalid="ignore"):
        away = np.where(changes.delta > 0, found.low > 0, found.high < 0)
    unclear = np.where(away & ~comparison.counting, FrameVerdict.SMALL, FrameVerdict.UNCLEAR)
    judged = np.where(found.verdict == NodeVerdict.SAME, FrameVerdict.SAME, unclear)
    if (worst := worst_ranks(comparison)) is not None:
        judged = np.where(worst.marked, FrameVerdict.WORST, judged)
    judged = np.where(found.verdict == NodeVerdict.CHANGED, FrameVerdict.CHANGED, judged)
    untold = found.level == EvidenceLevel.NONE
    verdicts: U1 = np.where(untold, FrameVerdict.UNTESTED, judged).astype(np.uint8)
    return verdicts


def _count_places(comparison: Comparison, verdict: U1) -> PlacesOfFrames:
    tree, delta = comparison.union.tree, comparison.changes.delta
    changed = verdict == FrameVerdict.CHANGED
    marks = (
        np.ones(len(tree), bool),
        verdict > FrameVerdict.UNTESTED,
        changed & (delta > 0),
        changed & (delta < 0),
        verdict == FrameVerdict.SMALL,
        verdict == FrameVerdict.WORST,
        verdict == FrameVerdict.SAME,
    )
    size = len(tree.text)
    return PlacesOfFrames(*(np.bincount(tree.frame[one], minlength=size) for one in marks))
