"""Kernels split by PC samples: exact in sum, and node by node what plain fractions say."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flame.core.errors import NoMatchError
from flame.core.model.frames import Kind
from flame.core.model.pc_samples import Sampling
from flame.core.model.tree import TreeLayout
from flame.core.names.rename import parse_rename
from flame.core.projection.filter_options import where
from flame.core.projection.labels import Naming, exact_labels
from tests.core.projection.splits.sampled_trees import (
    is_exact,
    metrics,
    naive,
    one_kernel,
    orders,
    row_filters,
    shapes,
    weight,
)
from tests.support.generated.sampled import Run, runs
from tests.support.oracles.naive_samples import check, parts, tree_stack
from tests.support.oracles.naive_tree import Shape, Stack, without_smaller
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import leaves
from tests.support.tiers import examples

# Instructions without their place are one where file and line are.
BY_OPCODE = r"\+0x[0-9a-f]+ ="


# The tree


@given(runs, orders, metrics)
def test_every_node_has_what_the_samples_say(run: Run, levels: str, metric: str) -> None:
    profile = run.profile()
    tree = project_tree(profile, levels, metric=metric)
    check(tree, naive(profile, run.rows(), levels, metric))
    assert (tree.total[0], tree.count[0]) == (sum(weight(profile, metric)), len(run.launches))


@examples(0.4)
@given(runs, orders, metrics)
def test_instructions_that_are_renamed_alike_are_one(run: Run, levels: str, metric: str) -> None:
    profile = run.profile()
    tree = project_tree(profile, levels, metric=metric, rename=(parse_rename(BY_OPCODE),))
    check(
        tree,
        parts(
            profile,
            run.rows(),
            levels.split(","),
            weight(profile, metric),
            lambda name: re.sub(r"\+0x[0-9a-f]+ ", "", name),
        ),
    )


def test_instructions_of_one_line_that_are_called_alike_are_one() -> None:
    profile = one_kernel(((0, 0, 0, 3), (0, 1, 0, 4), (0, 2, 0, 3))).profile()
    assert len(leaves(project_tree(profile, "kernel,sass"))) == 3
    assert leaves(project_tree(profile, "kernel,sass", rename=(parse_rename(BY_OPCODE),))) == {
        ("kernel 0", "LDG.E R2, [R4]"): 300,
        ("kernel 0", "HFMA2 R0, R1"): 700,
    }


@given(runs, orders, metrics, shapes)
def test_filters_and_arrangements_see_instructions_and_reasons(
    run: Run, levels: str, metric: str, shape: Shape
) -> None:
    profile, layout = run.profile(), TreeLayout(shape.inverted, shape.collapsed)
    found = naive(profile, run.rows(), levels, metric)
    try:
        tree = project_tree(profile, levels, where(**shape.filters), metric, layout=layout)
    except NoMatchError:
        # Parts that may be nothing are not there for certain.
        left = [part for part in found if shape.apply(part.path) is not None]
        assert not any(part.value[0] or part.count[0] for part in left)
        return
    check(tree, found, shape)


@given(runs, orders, metrics, row_filters)
def test_only_what_passes_is_split(run: Run, levels: str, metric: str, chosen: Any) -> None:
    profile = run.profile()
    options, passes = chosen
    starts = profile.activities.start.tolist()
    rows = [one for one in run.rows() if passes(one, starts[one.row])]
    if not rows:
        with pytest.raises(NoMatchError):
            project_tree(profile, levels, where(**options), metric)
        return
    tree = project_tree(profile, levels, where(**options), metric)
    check(tree, naive(profile, rows, levels, metric))
    passed = weight(profile, metric)
    assert tree.total[0] == sum(passed[one.row] for one in rows)


@given(runs, orders, metrics, st.sampled_from([5, 20, 40]))
def test_what_is_small_is_merged_after_the_split(
    run: Run, levels: str, metric: str, percent: float
) -> None:
    profile = run.profile()
    found = naive(profile, run.rows(), levels, metric)
    assume(is_exact(found))
    stacks = Counter[Stack](), Counter[Stack]()
    for part in found:
        stacks[0][part.path] += part.value[0]
        stacks[1][part.path] += part.count[0]
    whole = {path: (stacks[0][path], stacks[1][path]) for path in stacks[0] | stacks[1]}
    tree = project_tree(profile, levels, where(min_percent=percent), metric)
    assert {
        tree_stack(tree, node): (int(tree.own[node]), int(tree.own_count[node]))
        for node in range(len(tree))
        if tree.own[node] or tree.own_count[node]
    } == without_smaller(whole, percent)


@given(runs, orders, metrics)
def test_siblings_stand_by_their_first_start(run: Run, levels: str, metric: str) -> None:
    profile = run.profile()
    found = naive(profile, run.rows(), levels, metric)
    assume(is_exact(found))
    tree = project_tree(profile, levels, metric=metric, layout=TreeLayout(order="start"))
    starts = profile.activities.start
    firsts: dict[Stack, int] = {}
    for part in found:
        first = min(int(starts[one.row]) for one in part.launches)
        for depth in range(len(part.path) + 1):
            path = part.path[:depth]
            firsts[path] = min(first, firsts.get(path, first))
    for node in range(len(tree)):
        ordered = [firsts[tree_stack(tree, child)] for child in tree.children(node)]
        assert ordered == sorted(ordered)


@given(runs, orders)
def test_siblings_stand_by_name(run: Run, levels: str) -> None:
    profile = run.profile()
    tree = project_tree(profile, levels, layout=TreeLayout(order="name"))
    rank = exact_labels(profile.frames, Naming()).rank
    for node in range(len(tree)):
        ordered = rank[tree.frame[tree.children(node)]].tolist()
        assert ordered == sorted(ordered)


def test_instructions_stand_by_offset_where_siblings_stand_by_name() -> None:
    run = one_kernel(((2, 2, 0, 5), (2, 0, 0, 9), (2, 1, 0, 7)))
    tree = project_tree(run.profile(), "sass", layout=TreeLayout(order="name"))
    names = [tree.name(node) for node in tree.children(0)]
    assert names == ["softmax+0x0", "softmax+0x40", "softmax+0x400"]


# The samples themselves


@given(runs)
def test_pc_samples_at_an_instruction_are_those_counted_there(run: Run) -> None:
    """Its value is the samples themselves: what is split in proportion is all of them."""
    profile = run.profile()
    sampling = profile.sampling
    assert sampling is not None
    tree = project_tree(profile, "sass,stall", metric="stalls")
    counted = Counter[tuple[int, int]]()
    for distribution in np.unique(sampling.of_group).tolist():
        if distribution >= 0:
            add_entries(counted, sampling, distribution)
    shown = {
        (int(tree.frame[tree.parent[node]]), int(tree.frame[node])): int(tree.own[node])
        for node in np.flatnonzero(tree.own).tolist()
    }
    assert shown == counted


def add_entries(counted: Counter[tuple[int, int]], sampling: Sampling, distribution: int) -> None:
    at = sampling.entries(distribution)
    keys = zip(sampling.sass[at].tolist(), sampling.stall[at].tolist(), strict=True)
    counted.update(dict(zip(keys, sampling.samples[at].tolist(), strict=True)))


@given(runs)
def test_kernels_without_samples_are_leaves(run: Run) -> None:
    profile = run.profile()
    of = profile.activities.groups.of_row
    assert profile.sampling is not None
    bare = [one for one in run.rows() if profile.sampling.of_group[of[one.row]] < 0]
    tree = project_tree(profile, "kernel,sass,stall", metric="count")
    ends = [node for node in np.flatnonzero(tree.own).tolist() if tree.kind(node) == Kind.KERNEL]
    assert sum(int(tree.own[node]) for node in ends) == len(bare)
    assert {tree.name(node) for node in ends} == {one.kernel for one in bare}


@given(runs)
def test_the_host_table_knows_no_instructions(run: Run) -> None:
    profile = run.profile()
    tree = project_tree(profile, "nvtx,sass,stall", metric="host")
    assert leaves(tree) == leaves(project_tree(profile, "nvtx", metric="host"))
