"""Which activities a split tree has where: members, percentiles, the time line, searches."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from flame.core.analysis.frame_totals import percentiles
from flame.core.analysis.node_activities import NodeActivities
from flame.core.analysis.search import search
from flame.core.errors import NoMatchError
from flame.core.model.frames import PART_KINDS, Kind
from flame.core.model.tree import TreeLayout
from flame.core.projection.filter_options import where
from flame.core.timeline.highlight import matching_intervals, passing_intervals
from flame.core.timeline.intervals import timeline
from tests.core.projection.splits.sampled_trees import (
    is_exact,
    metrics,
    naive,
    orders,
    row_filters,
    shapes,
    weight,
)
from tests.support.generated.sampled import Run, runs
from tests.support.oracles.naive_samples import tree_stack
from tests.support.oracles.naive_tree import Shape
from tests.support.profiles.project_tree import project_tree


@given(runs, orders, metrics, shapes)
def test_members_of_a_node_are_the_launches_of_its_parts(
    run: Run, levels: str, metric: str, shape: Shape
) -> None:
    profile, layout = run.profile(), TreeLayout(shape.inverted, shape.collapsed)
    found = naive(profile, run.rows(), levels, metric)
    assume(is_exact(found))
    filters = where(**shape.filters)
    try:
        tree = project_tree(profile, levels, filters, metric, layout=layout)
    except NoMatchError:
        return
    members = NodeActivities.from_tree(profile, tree, filters)
    shaped = [(shape.apply(part.path), part.launches) for part in found]
    ends = [(path, of) for path, of in shaped if path is not None]
    for node in range(len(tree)):
        above = tree_stack(tree, node)
        expected = {one.row for path, of in ends if path[: len(above)] == above for one in of}
        assert sorted(members.below(node).tolist()) == sorted(expected)
    for frame in np.unique(tree.frame[1:]).tolist():
        label = tree_stack(tree, int(np.flatnonzero(tree.frame == frame)[0]))[-1]
        expected = {one.row for path, of in ends if label in path for one in of}
        assert sorted(members.of_frame(frame).tolist()) == sorted(expected)


@given(runs, orders, metrics, shapes)
def test_percentiles_are_of_the_launches_below_each_frame_but_not_of_parts(
    run: Run, levels: str, metric: str, shape: Shape
) -> None:
    profile = run.profile()
    filters = where(**shape.filters)
    found = naive(profile, run.rows(), levels, metric)
    assume(is_exact(found))
    try:
        tree = project_tree(profile, levels, filters, metric)
    except NoMatchError:
        return
    weights = weight(profile, metric)
    frames = np.unique(tree.frame[1:])
    told = percentiles(
        NodeActivities.from_tree(profile, tree, filters), np.array(weights, np.int64), frames
    )
    shape = replace(shape, inverted=False, collapsed=False)
    shaped = [(shape.apply(part.path) or (), part.launches) for part in found]
    for place, frame in enumerate(frames.tolist()):
        label = tree_stack(tree, int(np.flatnonzero(tree.frame == frame)[0]))[-1]
        rows = {one.row for path, of in shaped if label in path for one in of}
        below = sorted(weights[row] for row in rows)
        if tree.frames[frame].kind in PART_KINDS:
            below = [0]
        ranks = [-(-len(below) * percent // 100) - 1 for percent in (50, 95, 99, 100)]
        columns = (told.p50, told.p95, told.p99, told.maximum)
        assert [int(column[place]) for column in columns] == [below[rank] for rank in ranks]


@given(runs, orders, row_filters)
def test_the_time_line_is_bright_where_anything_of_an_activity_is_shown(
    run: Run, levels: str, chosen: Any
) -> None:
    profile = run.profile()
    options, passes = chosen
    filters = where(**options, hide_stacks="Wait")
    starts = profile.activities.start.tolist()
    rows = [one for one in run.rows() if passes(one, starts[one.row])]
    found = naive(profile, rows, levels, "gpu")
    assume(is_exact(found))
    try:
        tree = project_tree(profile, levels, filters)
    except NoMatchError:
        return
    line = timeline(profile)
    assert line is not None
    bright = passing_intervals(line, profile, tree, filters)
    on_gpu = line.kind == Kind.KERNEL
    rows_shown = set(line.source[on_gpu & bright].tolist())
    shown = (part for part in found if not any(text == "Wait" for _, text in part.path))
    expected = {one.row for part in shown for one in part.launches}
    assert rows_shown == expected


@given(runs, orders, st.sampled_from(["Wait", "LDG", "gemm", "softmax.0x40"]))
def test_a_search_finds_the_activities_that_have_it_in_any_part(
    run: Run, levels: str, text: str
) -> None:
    profile, pattern = run.profile(), re.compile(text)
    found = naive(profile, run.rows(), levels, "gpu")
    assume(is_exact(found))
    tree, line = project_tree(profile, levels), timeline(profile)
    assert line is not None
    bright = matching_intervals(line, tree, search(tree, pattern).mask, pattern)
    rows = set(line.source[(line.kind == Kind.KERNEL) & bright].tolist())
    hits = (part for part in found if any(pattern.search(text) for _, text in part.path))
    named = {one.row for one in run.rows() if pattern.search(one.kernel)}
    assert rows == named | {one.row for part in hits for one in part.launches}


@given(runs, orders)
def test_a_group_ends_at_the_last_node_that_all_its_parts_have_in_common(
    run: Run, levels: str
) -> None:
    profile = run.profile()
    found = naive(profile, run.rows(), levels, "gpu")
    assume(is_exact(found))
    tree = project_tree(profile, levels)
    for group in range(len(profile.activities.groups)):
        row = int(np.flatnonzero(profile.activities.groups.of_row == group)[0])
        paths = [part.path for part in found if row in {one.row for one in part.launches}]
        common = paths[0]
        for path in paths:
            same = (at for at in range(len(common)) if common[: at + 1] != path[: at + 1])
            common = common[: next(same, len(common))]
        assert tree_stack(tree, int(tree.node_of_group[group])) == common
