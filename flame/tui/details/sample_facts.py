"""Work out what PC samples say of a selected kernel, instruction or stall reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Bool, expand_ranges, sum_by, unique
from flame.core.model.frames import Kind
from flame.core.model.pc_samples import Sampling
from flame.core.model.tree import StackTree
from flame.tui.sampling.subject import groups_below, kernel_above
from flame.tui.session.session import Projection

SAMPLED = (Kind.KERNEL, Kind.SASS, Kind.STALL)


class Hottest(NamedTuple):
    """The instruction with the most samples, and how many of all there are that have any."""

    name: str
    samples: int
    instructions: int


class SampledFacts(NamedTuple):
    """``samples`` of a frame, of ``whole`` in the ``kernels`` it is in, by ``reasons`` (keys).

    ``exact``: they are of the launches at this place alone.
    """

    samples: int
    whole: int
    kernels: int
    exact: bool
    reasons: tuple[tuple[str, int], ...]
    hottest: Hottest


def sampled_of(shown: Projection, tree: StackTree, node: int) -> SampledFacts | None:
    """Collect the samples of ``node``, or None for what has none.

    ``tree`` is the projection's, or one made of it: then its frame counts at all places.
    """
    sampling = shown.profile.sampling
    if sampling is None or tree.kind(node) not in SAMPLED or shown.metric.table != "gpu":
        return None
    path = tree.path(node) if tree is shown.view.tree else [node]
    below = groups_below(shown, tree, kernel_above(tree, node))
    return sampled_below(shown, below, [(tree.kind(above), tree.frame[[above]]) for above in path])


def sampled_below(
    shown: Projection, groups: Bool, parts: Iterable[tuple[Kind, I4]]
) -> SampledFacts | None:
    """Collect the samples of ``groups``; None where they have none.

    Of ``parts``, frames (i4 each) of one kind, those of instructions and reasons choose some of
    them.
    """
    sampling = shown.profile.sampling
    assert sampling is not None
    below = groups & (sampling.of_group >= 0)
    used = unique(sampling.of_group[below])
    entries = _entries(shown, sampling, parts, used)
    samples = sampling.samples[entries]
    if not len(entries):
        return None
    return SampledFacts(
        int(samples.sum()),
        int(sampling.totals[used].sum()),
        _kernels(shown, below),
        bool(sampling.exact[used].all()),
        _reasons(shown, sampling.stall[entries], samples),
        _hottest(shown, sampling.sass[entries], samples),
    )


def _entries(
    shown: Projection, sampling: Sampling, parts: Iterable[tuple[Kind, I4]], used: I4
) -> I8:
    """Entries of the distributions ``used`` of the instructions and reasons in ``parts``."""
    entries = expand_ranges(sampling.bounds[used], np.diff(sampling.bounds)[used])
    same = shown.labels.shown
    for kind, frames in parts:
        if kind in (Kind.SASS, Kind.STALL):
            column = sampling.sass if kind == Kind.SASS else sampling.stall
            entries = entries[np.isin(same[column[entries]], frames)]
    return entries


def _kernels(shown: Projection, groups: Bool) -> int:
    """How many kernels ``groups`` are of, by the names shown."""
    frames = shown.profile.activities.groups.frame[groups]
    return len(unique(shown.labels.shown[frames]))


def _reasons(shown: Projection, stall: I4, samples: I8) -> tuple[tuple[str, int], ...]:
    frames, sums = _sums(stall, samples)
    keys = [shown.profile.frames[frame].get("reason") for frame in frames.tolist()]
    pairs = zip(keys, sums.tolist(), strict=True)
    return tuple(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def _hottest(shown: Projection, sass: I4, samples: I8) -> Hottest:
    frames, sums = _sums(sass, samples)
    most = int(np.argmax(sums))
    name = shown.labels.text[int(frames[most])]
    return Hottest(name, int(sums[most]), len(frames))


def _sums(column: I4, samples: I8) -> tuple[I4, I8]:
    values, place = np.unique(column, return_inverse=True)
    return values, sum_by(place, samples, len(values))
