"""Which activities lie below a node, against what each activity's own tree says."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.distribution import distribution
from flame.core.analysis.node_activities import NodeActivities
from flame.core.columns import I8
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.projection.filters import Filter, Kernel, Streams, Time
from tests.conftest import NSYS_TRACES, needs_traces
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded

Stack = tuple[str, ...]

ranges = st.lists(st.sampled_from("abc"), max_size=4)
stacks = st.builds(lambda names, kernel: (*names, kernel), ranges, st.sampled_from("xyz"))
many_stacks = st.lists(stacks, min_size=1, max_size=12)
filters = st.sampled_from(
    [(), (Time(10_000, 10_050),), (Streams((1,)),), (Time(10_010), Kernel("[xy]"))]
)


def profile_of(stacks: list[Stack]) -> Profile:
    """One kernel per stack: the last name is the kernel's, the others are ranges around it."""
    trace = Recorded()
    for place, stack in enumerate(stacks):
        begin = 100 * place
        for depth, name in enumerate(stack[:-1]):
            trace.range(name, begin + depth, begin + 90 - depth)
        trace.call("launch", begin + 20, begin + 25, corr=place + 1)
        start = 10_000 + 10 * place
        trace.kernel(stack[-1], start, start + place + 1, corr=place + 1, stream=place % 3)
    return trace.profile()


def members_of(
    profile: Profile, where: tuple[Filter, ...] = (), levels: str = "nvtx,kernel"
) -> NodeActivities:
    return NodeActivities.from_tree(profile, project_tree(profile, levels, where), where)


def passing(stacks: list[Stack], where: tuple[Filter, ...]) -> dict[int, Stack]:
    """The stack of each row that passes, by how `profile_of` has made it."""
    found = dict(enumerate(stacks))
    for one in where:
        if isinstance(one, Time):
            low, high = one.begin or 0, one.end or 1 << 60
            found = {row: s for row, s in found.items() if low <= 10_000 + 10 * row < high}
        elif isinstance(one, Streams):
            found = {row: s for row, s in found.items() if row % 3 in one.ids}
        else:
            found = {row: s for row, s in found.items() if s[-1] in "xy"}
    return found


@given(many_stacks, filters)
def test_below_a_node_are_the_rows_whose_stack_begins_so(
    stacks: list[Stack], where: tuple[Filter, ...]
) -> None:
    rows = passing(stacks, where)
    if not rows:
        return
    members = members_of(profile_of(stacks), where)
    for node in range(len(members.tree)):
        names = members.tree.names(node)
        expected = [row for row, stack in rows.items() if stack[: len(names)] == names]
        assert sorted(members.below(node).tolist()) == expected


@given(many_stacks, filters)
def test_of_a_frame_are_the_rows_with_it_anywhere_each_once(
    stacks: list[Stack], where: tuple[Filter, ...]
) -> None:
    rows = passing(stacks, where)
    if not rows:
        return
    profile = profile_of(stacks)
    members = members_of(profile, where)
    for frame in range(len(profile.frames)):
        name = profile.frames[frame].name
        if name in "abcxyz":
            expected = [row for row, stack in rows.items() if name in stack]
            assert sorted(members.of_frame(frame).tolist()) == expected


@pytest.mark.parametrize("metric", ["gpu", "count", "launch", "host"])
def test_their_values_add_up_to_the_total(metric: str) -> None:
    profile = profile_of([("a", "b", "x"), ("a", "a", "y"), ("x",)])
    tree = project_tree(profile, metric=metric)
    members = NodeActivities.from_tree(profile, tree, ())
    values: I8 = tree.metric.values(profile.table(tree.metric))
    sums = [int(values[members.below(node)].sum()) for node in range(len(tree))]
    assert sums == tree.total.tolist()
    assert [len(members.below(node)) for node in range(len(tree))] == tree.count.tolist()


def test_the_root_has_every_row_once() -> None:
    members = members_of(profile_of([("x",), ("y",), ("a", "y")]))
    assert np.sort(members.below(0)).tolist() == [0, 1, 2]


def test_a_frame_that_is_nowhere_has_no_rows() -> None:
    members = members_of(profile_of([("a", "x")]), levels="nvtx")
    assert members.of_frame(len(members.tree.text) - 1).tolist() == []


def test_a_selection_of_nothing_has_no_tree_at_all() -> None:
    profile = profile_of([("x",)])
    with pytest.raises(NoMatchError):
        members_of(profile, (Time(0, 1),))


KERNELS = """
    SELECT max("end" - start, 0) FROM CUPTI_ACTIVITY_KIND_KERNEL
    JOIN StringIds ON StringIds.id = shortName WHERE value = ? ORDER BY 1
"""


@needs_traces
@pytest.mark.parametrize("trace", NSYS_TRACES)
def test_percentiles_of_real_kernels_are_those_of_sql(
    trace: str, nsys_trace: Callable[[str], Path]
) -> None:
    profile = load(nsys_trace(trace))
    if not len(profile.activities):
        pytest.skip("nothing ran on a GPU")
    members = members_of(profile, levels="kernel")
    tree = members.tree
    for node in tree.children(0)[:20]:
        found = distribution(profile.activities.duration[members.below(node)])
        assert found is not None
        assert (found.total, found.count) == (tree.total[node], tree.count[node])
        ordered = _durations(nsys_trace(trace), tree.name(node))
        if tree.kind(node) == Kind.KERNEL and ordered:
            ranks = [(len(ordered) * percent + 99) // 100 for percent in (50, 95, 99)]
            assert [found.p50, found.p95, found.p99] == [ordered[rank - 1] for rank in ranks]
            assert (found.minimum, found.maximum) == (ordered[0], ordered[-1])


def _durations(path: Path, kernel: str) -> list[int]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        if not db.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'"
        ).fetchone():
            return []
        return [ns for (ns,) in db.execute(KERNELS, (kernel,))]
