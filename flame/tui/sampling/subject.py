"""Find the kernel whose instructions are shown for a selected frame, and its samples."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Bool, sum_by, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Kind
from flame.core.model.metrics import Metric
from flame.core.model.tree import StackTree
from flame.core.projection.filters import GroupFilter, passing_rows
from flame.tui.sampling.version import Version, versions_of
from flame.tui.session.session import Projection
from flame.tui.session.wording import NO_SAMPLES

ON_HOST = "this metric is of the host, instructions run on GPUs: m shows another"
NONE_BELOW = "no kernel below this frame has PC samples"


@dataclass(frozen=True, eq=False)
class Subject:
    """A kernel, called ``name``, and its ``versions``, the most sampled first.

    ``value`` is the metric of its launches at the selected place, ``unsampled`` of which those that
    have no samples. ``sites`` is the number of distributions; ``exact``: they are of these launches
    alone. ``others``: so many more kernels there have samples.
    """

    name: str
    frame: int
    versions: tuple[Version, ...]
    metric: Metric
    value: int
    unsampled: int
    sites: int
    exact: bool
    others: int

    @cached_property
    def samples(self) -> int:
        """The samples of all versions."""
        return sum(version.total for version in self.versions)


class Spot(NamedTuple):
    """An instruction: which version, and the place in its code."""

    version: int
    place: int


class _Heaviest(NamedTuple):
    frame: int
    number: int


def subject_of(shown: Projection, tree: StackTree, node: int) -> Subject | str:
    """Find the kernel of ``node``, or the heaviest sampled one below it; else why there is none.

    ``tree`` is the projection's, or one made of it: then its frame counts at all places.
    """
    return subject_below(shown, groups_below(shown, tree, kernel_above(tree, node)))


def subject_below(shown: Projection, below: Bool, name: str = "") -> Subject | str:
    """Find the heaviest sampled kernel of the groups ``below``; else why there is none.

    It is the one called ``name`` where that has samples there.
    """
    profile = shown.profile
    if profile.sampling is None:
        return NO_SAMPLES
    if shown.metric.table != "gpu":
        return ON_HOST
    if not (below & (profile.sampling.of_group >= 0)).any():
        return NONE_BELOW
    return _subject(shown, profile.sampling.of_group, below, name)


def kernel_above(tree: StackTree, node: int) -> int:
    """Find the kernel above ``node``, an instruction or a reason; else ``node`` itself."""
    if tree.kind(node) not in (Kind.SASS, Kind.STALL):
        return node
    kernels = (above for above in reversed(tree.path(node)) if tree.kind(above) == Kind.KERNEL)
    return next(kernels, node)


def _subject(shown: Projection, of_group: I4, below: Bool, name: str) -> Subject:
    profile, value = shown.profile, _values(shown)
    sampling = profile.sampling
    assert sampling is not None
    labels = shown.labels
    kernel = labels.shown[profile.activities.groups.frame]
    rows = np.flatnonzero(below & (of_group >= 0))
    named = [one for one in unique(kernel[rows]).tolist() if labels.text[one] == name]
    heaviest = _heaviest(kernel[rows], value[rows], sampling.totals[of_group[rows]])
    frame, number = (named[0], 1) if named else heaviest
    rows = rows[kernel[rows] == frame]
    used, place = np.unique(of_group[rows], return_inverse=True)
    sums = sum_by(place, value[rows], len(used))
    whole = int(value[below & (kernel == frame)].sum())
    return Subject(
        labels.text[frame],
        frame,
        tuple(versions_of(sampling, profile.frames, used, sums)),
        shown.metric,
        whole,
        whole - int(sums.sum()),
        len(used),
        bool(sampling.exact[used].all()),
        number - 1,
    )


def groups_below(shown: Projection, tree: StackTree, node: int) -> Bool:
    """Mark the groups of the table of which anything ends at ``node`` or below it."""
    whole = shown.view.tree
    if tree is whole:
        marked = np.zeros(len(whole), bool)
        marked[node : tree.end[node]] = True
    else:
        places = np.where(whole.frame == tree.frame[node], whole.end, 0)
        marked = np.arange(len(whole)) < np.maximum.accumulate(places)
    return whole.groups_below(marked)


def _values(shown: Projection) -> I8:
    """The metric of every group, of what passes the filters on activities."""
    profile, where = shown.profile, shown.selection.where
    table = profile.table(shown.metric)
    passing = passing_rows(profile, table, where)
    rows = None if passing is None else np.flatnonzero(passing)
    value, _ = profile.totals_by_group(shown.metric, rows)
    for filter_ in where:
        if isinstance(filter_, GroupFilter):
            value = np.where(filter_.groups(profile, table), value, 0)
    return value


def _heaviest(kernels: I4, value: I8, samples: I8) -> _Heaviest:
    """The heaviest of ``kernels``, by value and then by samples, and how many there are."""
    frames, place = np.unique(kernels, return_inverse=True)
    values, counts = (sum_by(place, column, len(frames)) for column in (value, samples))
    return _Heaviest(int(frames[np.lexsort((-counts, -values))[0]]), len(frames))


# What is selected in it


def spot_of(shown: Projection, subject: Subject, tree: StackTree, node: int) -> Spot:
    """Find the instruction of ``node`` or of the one it is part of, or where its reason is hottest.

    The hottest of all versions where ``node`` is of no instruction and no reason.
    """
    on_path = {tree.kind(above): int(tree.frame[above]) for above in tree.path(node)}
    spot = _spot_of_frame(shown, subject, on_path.get(Kind.SASS, -1))
    if spot is not None:
        return spot
    stall = on_path.get(Kind.STALL)
    reason = tree.frames[stall].get("reason") if stall is not None else ""
    known = enumerate(subject.versions)
    version, _ = max(known, key=lambda pair: pair[1].most_for(reason), default=(0, None))
    return Spot(version, subject.versions[version].hottest_for(reason))


def _spot_of_frame(shown: Projection, subject: Subject, frame: int) -> Spot | None:
    sampling = shown.profile.sampling
    if frame < 0 or sampling is None:
        return None
    same = shown.labels.shown[sampling.sass] == frame
    version_of = {
        number: at for at, version in enumerate(subject.versions) for number in version.numbers
    }
    entries = np.flatnonzero(same & np.isin(sampling.code, list(version_of)))
    if not len(entries):
        return None
    number, place = int(sampling.code[entries[0]]), int(sampling.place[entries[0]])
    version = version_of[number]
    offset = sampling.codes[number].offset[place]
    return Spot(version, int(np.searchsorted(subject.versions[version].code.offset, offset)))
