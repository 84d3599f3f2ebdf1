"""What holds for every projection, whatever the trace, the levels, the filters and the metric."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.analysis.search import search
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import where
from tests.support.generated.strategies import Script, scripts
from tests.support.oracles.naive import Row, naive
from tests.support.oracles.naive_tree import (
    WEIGHTS,
    Stack,
    passes,
    plain,
    stack,
    totals,
    tree_label,
    tree_stacks,
)
from tests.support.profiles.frame_rows import frame_rows
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import examples

LEVELS = ("process", "thread", "device", "stream", "python", "native", "launch", "nvtx", "kernel")

some_levels = st.permutations(LEVELS).flatmap(
    lambda order: st.integers(1, len(order)).map(lambda size: tuple(order[:size]))
)
metrics = st.sampled_from(sorted(WEIGHTS))
moments = st.integers(-2, 15)
one_filter = st.one_of(
    st.tuples(st.just("time"), st.tuples(moments, st.integers(1, 10))),
    st.tuples(st.just("nvtx"), st.sampled_from(["forward", "*a*", "attn [?]", "l?yer@"])),
    st.tuples(st.just("nvtx"), st.sampled_from(["*@NCCL", "*@", "*@?[A-Z]*", "forward@l*"])),
    st.tuples(st.just("device"), st.sampled_from([(0,), (1, 2), (5,)])),
    st.tuples(st.just("stream"), st.sampled_from([(7,), (7, 13)])),
    st.tuples(st.sampled_from(["pid", "tid"]), st.sampled_from([(100,), (101,)])),
    st.tuples(st.just("kernel"), st.sampled_from(["gemm", "^void", "float", "soft|v2"])),
    st.tuples(st.just("include"), st.sampled_from(["kernel", "memcpy,memset", "graph,kernel"])),
)
filters = st.lists(one_filter, min_size=1, max_size=2).map(dict)
patterns = st.sampled_from(["a", "^gemm$", "launch|GPU", "forward", "[0-9]", "nothing like this"])
random_traces = examples(0.4, [HealthCheck.too_slow])


def loaded(script: Script, path: Path) -> tuple[Profile, list[Row]]:
    script.write(path)
    return load(path, LoadOptions("raw")), naive(path)


def in_script_time(chosen: dict[str, Any], script: Script) -> dict[str, Any]:
    """The filters with their window as text, on the clock of the trace."""
    if "time" not in chosen:
        return chosen
    begin, length = chosen["time"]
    begin += script.offset
    return {**chosen, "time": f"{begin}ns/{begin + length}ns"}


def projected(
    profile: Profile, levels: tuple[str, ...], chosen: dict[str, Any], metric: str
) -> dict[Stack, tuple[int, int]]:
    """Own values of the tree; nothing where nothing matches."""
    try:
        return tree_stacks(project_tree(profile, levels, where(**chosen), metric))
    except NoMatchError:
        return {}


@random_traces
@given(script=scripts(), levels=some_levels, metric=metrics)
def test_a_tree_is_the_activities_grouped_by_their_stacks(
    script: Script, levels: tuple[str, ...], metric: str, trace_file: Path
) -> None:
    profile, rows = loaded(script, trace_file)
    tree = project_tree(profile, levels, metric=metric)
    assert tree_stacks(tree) == totals(rows, levels, metric)
    assert int(tree.total[0]) == sum(map(WEIGHTS[metric], rows))


@random_traces
@given(script=scripts(), levels=some_levels, metric=metrics, chosen=filters)
def test_projecting_a_filter_is_filtering_then_projecting(
    script: Script,
    levels: tuple[str, ...],
    metric: str,
    chosen: dict[str, Any],
    trace_file: Path,
) -> None:
    profile, rows = loaded(script, trace_file)
    chosen = in_script_time(chosen, script)
    kept = [row for row in rows if passes(row, chosen)]
    assert projected(profile, levels, chosen, metric) == totals(kept, levels, metric)


@random_traces
@given(script=scripts(), metric=metrics, cuts=st.lists(moments, min_size=1, max_size=3))
def test_adjoining_windows_partition_the_trace(
    script: Script, metric: str, cuts: list[int], trace_file: Path
) -> None:
    profile, _ = loaded(script, trace_file)
    edges = ["", *(f"{cut + script.offset}ns" for cut in sorted(set(cuts))), ""]
    value, count = Counter[Stack](), Counter[Stack]()
    for begin, end in pairwise(edges):
        for path, own in projected(profile, LEVELS, {"time": f"{begin}/{end}"}, metric).items():
            value[path] += own[0]
            count[path] += own[1]
    whole = tree_stacks(project_tree(profile, LEVELS, metric=metric))
    assert {path: (value[path], count[path]) for path in count} == whole


@random_traces
@given(script=scripts(), order=st.permutations(LEVELS), metric=metrics)
def test_the_order_of_levels_changes_no_kernels_total(
    script: Script, order: list[str], metric: str, trace_file: Path
) -> None:
    profile, _ = loaded(script, trace_file)
    alone = {row.name: row for row in frame_rows(project_tree(profile, "kernel", metric=metric))}
    shuffled = frame_rows(project_tree(profile, tuple(order), metric=metric))
    kinds = {row.kind for row in alone.values()}
    found = {row.name: row.total for row in shuffled if row.kind in kinds}
    assert found == {name: row.total for name, row in alone.items()}


@random_traces
@given(script=scripts(), levels=some_levels, metric=metrics, pattern=patterns)
def test_a_search_counts_nested_matches_once(
    script: Script, levels: tuple[str, ...], metric: str, pattern: str, trace_file: Path
) -> None:
    profile, rows = loaded(script, trace_file)
    matches = search(project_tree(profile, levels, metric=metric), re.compile(pattern))
    expected = sum(
        WEIGHTS[metric](row)
        for row in rows
        if any(re.search(pattern, plain(text)) for _, text in stack(row, levels))
    )
    assert matches.total == expected
    assert matches.nodes == int(matches.mask.sum())


@random_traces
@given(script=scripts(), levels=some_levels, metric=metrics)
def test_the_top_table_counts_recursion_once(
    script: Script, levels: tuple[str, ...], metric: str, trace_file: Path
) -> None:
    profile, rows = loaded(script, trace_file)
    found = Counter(
        (row.kind.title, row.name, row.total, row.own, row.count)
        for row in frame_rows(project_tree(profile, levels, metric=metric))
    )
    total, own, count = Counter[Any](), Counter[Any](), Counter[Any]()
    for row in rows:
        path, weight = stack(row, levels), WEIGHTS[metric](row)
        for label in set(path):
            total[label] += weight
            count[label] += 1
        if path:
            own[path[-1]] += weight
    expected = Counter(
        (kind, plain(text), total[kind, text], own[kind, text], count[kind, text])
        for kind, text in count
    )
    assert found == expected


@random_traces
@given(script=scripts(), levels=some_levels, metric=metrics)
def test_tree_columns_are_a_preorder_with_the_widest_child_first(
    script: Script, levels: tuple[str, ...], metric: str, trace_file: Path
) -> None:
    tree = project_tree(loaded(script, trace_file)[0], levels, metric=metric)
    assert_preorder(tree)
    for node in range(len(tree)):
        children = tree.children(node)
        assert [int(tree.parent[child]) for child in children] == [node] * len(children)
        widths = [int(tree.total[child]) for child in children]
        assert widths == sorted(widths, reverse=True)
        assert int(tree.total[node]) == int(tree.own[node]) + sum(widths)
        labels = [tree_label(tree, child) for child in children]
        assert len(set(labels)) == len(labels)


def assert_preorder(tree: StackTree) -> None:
    nodes = np.arange(len(tree))
    assert tree.parent[0] == -1
    assert (tree.parent[1:] < nodes[1:]).all()
    assert np.array_equal(tree.depth[1:], tree.depth[tree.parent[1:]] + 1)
    assert (tree.end > nodes).all()
    assert (tree.end[1:] <= tree.end[tree.parent[1:]]).all()
    assert np.array_equal(tree.x, np.cumsum(tree.own) - tree.own)
    assert sorted(np.concatenate(tree.rows).tolist()) == nodes.tolist()
