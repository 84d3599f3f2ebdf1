"""Traces of a few kernels with short stacks, and trees of them under a shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from flame.core.errors import NoMatchError
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.projection.filter_options import where
from tests.support.oracles.naive_tree import Shape, Stack
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded


def project(
    profile: Profile,
    levels: tuple[str, ...] | None,
    metric: str,
    shape: Shape,
    **more: Any,
) -> StackTree | None:
    """The tree under `shape` and `more` filters; None where nothing is left."""
    layout = TreeLayout(shape.inverted, shape.collapsed)
    try:
        return project_tree(profile, levels, where(**shape.filters, **more), metric, layout=layout)
    except NoMatchError:
        return None


class Launched(NamedTuple):
    """One kernel: names from the outermost in, each of one letter."""

    python: str
    nvtx: str
    kernel: str
    time: int

    def stack(self, levels: Iterable[str]) -> Stack:
        """Its frames from the root down."""
        return tuple((level, name) for level in levels for name in getattr(self, level))


def profile_of(activities: Iterable[Launched]) -> Profile:
    """A trace of these, each launched within ranges of its own."""
    trace = Recorded()
    for number, one in enumerate(activities, 1):
        begin = 100 * number
        for depth, name in enumerate(one.nvtx):
            trace.range(name, begin + depth, begin + 50 - depth)
        trace.call("launch", begin + 20, begin + 21, corr=number, python=one.python)
        trace.kernel(one.kernel, 10_000 + begin, 10_000 + begin + one.time, corr=number)
    return trace.profile()
