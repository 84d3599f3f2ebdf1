"""Find what a trace spends its time in: kernels, copies, communication, ranges, modules, functions.

Each activity counts once in each list: below the innermost of its ranges, modules and functions. So
the shares of a list add up to at most all, and no list begins with what is around everything else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.analysis.words.formats import short_place
from flame.core.columns import I4, I8, Bool, distinct, sum_by, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.frames import COPIES, Kind
from flame.core.model.grouping import category_of_frame
from flame.core.model.profile import Profile
from flame.core.names.kernel_category import COMMUNICATION
from flame.core.names.rename import NN_MODULE
from flame.core.projection.labels import Labels, Naming
from flame.core.projection.number_folds import labels_of
from flame.core.projection.weights import Weights


class HeavyFrame(NamedTuple):
    """Sum up a frame: display name, place in the sources, value, number of activities.

    ``frames`` are the ids of all that are shown as this one. ``captured``: it was open when a
    CUDA graph was captured, whose replays it counts.
    """

    name: str
    place: str
    frames: I8
    value: int
    activities: int
    captured: bool = False


class HeavyFrames(NamedTuple):
    """Hold the heaviest frames of a kind, heaviest first; the number and the value of all."""

    heaviest: tuple[HeavyFrame, ...]
    number: int
    value: int


@dataclass(frozen=True)
class Heaviest:
    """Hold what is heaviest, of ``whole``; empty where the trace has none of it.

    ``ranges`` and ``modules`` are shown with their layers folded. ``functions`` are those with a
    place in the sources, where any has one: not what is built into Python. Those that
    communicate between GPUs, by their name, are ``kernels`` too.
    """

    whole: int
    kernels: HeavyFrames
    copies: HeavyFrames
    communication: HeavyFrames
    ranges: HeavyFrames
    modules: HeavyFrames
    functions: HeavyFrames


def find_heaviest(profile: Profile, weights: Weights, naming: Naming, most: int) -> Heaviest:
    """Find the ``most`` heaviest of each kind, by the ``weights`` of the groups of activities."""
    groups, stacks = profile.activities.groups, profile.activities.stacks
    plain = labels_of(profile, naming, profile.activities)
    folded = labels_of(profile, replace(naming, fold=True), profile.activities)
    copied = np.isin(groups.kind, COPIES)
    module, function = _python_frames(profile)
    ranges = profile.frames.kind == Kind.NVTX

    def top(labels: Labels, frame: I4) -> HeavyFrames:
        return _heaviest(profile, labels, frame, weights, most)

    return Heaviest(
        int(weights.value.sum()),
        kernels=top(plain, np.where(copied, NONE, groups.frame)),
        copies=top(plain, np.where(copied, groups.frame, NONE)),
        communication=top(plain, np.where(_communicate(profile), groups.frame, NONE)),
        ranges=top(folded, stacks.innermost(_ids(ranges))[groups.nvtx]),
        modules=top(folded, stacks.innermost(_ids(module))[groups.python]),
        functions=top(plain, stacks.innermost(_ids(function))[groups.python]),
    )


def _ids(marked: Bool) -> I4:
    """The id of each frame that is ``marked``, -1 of all others."""
    return np.where(marked, np.arange(len(marked)), NONE).astype(np.int32)


def _communicate(profile: Profile) -> Bool:
    """Which groups are of kernels that communicate, bool[groups]."""
    groups = profile.activities.groups
    used = unique(groups.frame[groups.kind == Kind.KERNEL])
    frames = (profile.frames[frame] for frame in used.tolist())
    found = [category_of_frame(frame) == COMMUNICATION for frame in frames]
    return np.isin(groups.frame, used[np.array(found, bool)])


def _python_frames(profile: Profile) -> tuple[Bool, Bool]:
    """Which frames are modules of PyTorch, and which are functions."""
    module, placed = (np.zeros(len(profile.frames), bool) for _ in range(2))
    python = profile.frames.kind == Kind.PYTHON
    for index in np.flatnonzero(python).tolist():
        frame = profile.frames[index]
        module[index], placed[index] = frame.name.startswith(NN_MODULE), bool(frame.file)
    return module, placed if placed.any() else python & ~module


def _heaviest(
    profile: Profile, labels: Labels, frame: I4, weights: Weights, most: int
) -> HeavyFrames:
    """Sum ``weights`` by the frame of each group (-1: none) as ``labels`` show it."""
    some = np.flatnonzero((frame >= 0) & (weights.value > 0))
    shown, place = distinct(labels.shown[frame[some]].astype(np.int64))
    value, count = (sum_by(place, part[some], len(shown)) for part in weights)
    order = np.argsort(-value, kind="stable")[:most].tolist()
    heaviest = (_heavy(profile, labels, int(shown[at]), value[at], count[at]) for at in order)
    return HeavyFrames(tuple(heaviest), len(shown), int(value.sum()))


def _heavy(
    profile: Profile, labels: Labels, shown: int, value: np.int64, count: np.int64
) -> HeavyFrame:
    """Sum up all frames that ``labels`` show as the frame ``shown``."""
    frame = profile.frames[shown]
    return HeavyFrame(
        labels.text[shown],
        short_place(frame),
        np.flatnonzero(labels.shown == shown),
        int(value),
        int(count),
        bool(frame.get("captured")),
    )
