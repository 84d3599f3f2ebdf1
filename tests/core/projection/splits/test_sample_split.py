"""Kernels split by PC samples: exact in sum, and node by node what plain fractions say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flame.core.columns import I8
from flame.core.errors import NoMatchError
from flame.core.model.frames import SMALLER, Kind
from flame.core.model.metrics import metric_of
from flame.core.model.pc_samples import Sampling
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.names.rename import parse_rename
from flame.core.projection.filter_options import where
from flame.core.projection.labels import Naming, exact_labels
from flame.core.projection.splits import sample_split as spread
from flame.core.projection.splits.sample_split import apportion
from tests.support.oracles.naive_samples import Launch, Part, check, hamilton, parts, tree_stack
from tests.support.oracles.naive_tree import Shape, Stack, without_smaller
from tests.support.project_tree import project_tree
from tests.support.recorded import leaves
from tests.support.sampled import FIRST_START, Entry, Run, runs
from tests.support.tiers import examples

METRICS = ("gpu", "count", "launch", "queue", "idle", "stalls")
LEVELS = (
    "kernel,sass,stall",
    "stall,nvtx,kernel",
    "nvtx,stall",
    "sass",
    "stall",
    "nvtx,kernel,sass",
    "stall,kernel,sass",
    "python,nvtx,shapes,kernel,sass,stall",
)
# Instructions without their place are one where file and line are.
BY_OPCODE = r"\+0x[0-9a-f]+ ="

metrics, orders = st.sampled_from(METRICS), st.sampled_from(LEVELS)


# A value in parts


def split(values: list[int], weights: list[list[int]]) -> list[list[int]]:
    """Each of `values` in proportion to its weights."""
    sizes = [len(one) for one in weights]
    of = np.repeat(np.arange(len(sizes)), sizes)
    flat = np.array([weight for one in weights for weight in one], np.int64)
    found: I8 = apportion(np.array(values, np.int64), flat, of)
    return [part.tolist() for part in np.split(found, np.cumsum(sizes)[:-1])]


values = st.one_of(st.integers(0, 5), st.integers(0, 1_000), st.integers(0, 10**15))
weights = st.one_of(st.integers(1, 4), st.integers(1, 10**6), st.integers(1, 1 << 40))
splits = st.lists(
    st.tuples(values, st.lists(weights, min_size=1, max_size=8)), min_size=1, max_size=4
)


@examples(2)
@given(splits)
def test_parts_are_those_of_fractions(units: list[tuple[int, list[int]]]) -> None:
    found = split([value for value, _ in units], [weights for _, weights in units])
    for (value, weights), shares in zip(units, found, strict=True):
        assert sum(shares) == value
        bounds = hamilton(value, weights)
        assert all(low <= part <= high for part, (low, high) in zip(shares, bounds, strict=True))


@given(splits)
def test_what_weighs_more_never_has_less(units: list[tuple[int, list[int]]]) -> None:
    found = split([value for value, _ in units], [weights for _, weights in units])
    for (_, weights), shares in zip(units, found, strict=True):
        ordered = [part for _, part in sorted(zip(weights, shares, strict=True))]
        assert ordered == sorted(shares)


def test_a_unit_far_heavier_than_others_does_not_make_these_coarse() -> None:
    assert split([3, 7], [[1, 2], [1 << 61, 1 << 60]]) == [[1, 2], [5, 2]]


def test_the_largest_values_and_weights_lose_nothing() -> None:
    (found,) = split([10**18], [[10**18 + 1, 10**17, 1]])
    assert sum(found) == 10**18
    assert found[2] in (0, 1)


def test_nothing_has_no_parts() -> None:
    none = np.zeros(0, np.int64)
    assert apportion(none, none, none).tolist() == []


# The tree


def weight(profile: Profile, metric: str) -> list[int]:
    """What every activity weighs."""
    weights: list[int] = metric_of(metric, profile.metrics).values(profile.activities).tolist()
    return weights


def naive(profile: Profile, rows: list[Launch], levels: str, metric: str) -> list[Part]:
    return parts(profile, rows, levels.split(","), weight(profile, metric))


def is_exact(found: list[Part]) -> bool:
    """Whether no two parts could have had each other's unit."""
    return all(low == high for part in found for low, high in (part.value, part.count))


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


shapes = st.builds(
    Shape,
    st.sampled_from([(), (), ("Wait",), ("LDG|gemm",), ("a", "Scoreboard")]),
    st.sampled_from([(), (), ("Barrier",), ("softmax",)]),
    st.sampled_from([(), (), ("gemm",), ("^b$",), ("Wait|Selected",)]),
    st.sampled_from([(), (), ("Wait|Barrier",), ("^a$",), (r"\+0x",)]),
    st.booleans(),
    st.booleans(),
)


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


row_filters = st.sampled_from(
    [
        ({"kernel": "gemm"}, lambda one, start: one.kernel == "gemm"),
        ({"stream": 1}, lambda one, start: one.row % 2 == 1),
        ({"nvtx": "a"}, lambda one, start: "a" in one.ranges),
        (
            {"time": f"{FIRST_START + 1}ns/{FIRST_START + 2_000}ns"},
            lambda one, start: FIRST_START + 1 <= start < FIRST_START + 2_000,
        ),
    ]
)


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


def one_kernel(*distributions: tuple[Entry, ...], duration: int = 1_000) -> Run:
    """A kernel for each of `distributions`, of `duration` ns."""
    launches = tuple(((), (), f"kernel {at}", duration) for at in range(len(distributions)))
    return Run(launches, distributions, tuple(range(len(distributions))))


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


# More instructions than can be shown


@contextmanager
def few_parts(most: int = 6) -> Iterator[None]:
    """While so many parts are shown, and at least two of a kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spread, "MOST_PARTS", most)
        patch.setattr(spread, "_LEAST_PARTS", 2)
        yield


# 5 instructions of gemm, which have 1 to 3 reasons, and 21, 30, 3, 2 and 1 samples.
MANY = (
    (0, 0, 0, 10),
    (0, 0, 1, 10),
    (0, 0, 2, 1),
    (0, 1, 0, 30),
    (0, 2, 1, 2),
    (0, 2, 2, 1),
    (0, 3, 3, 2),
    (0, 4, 0, 1),
)


def instructions(tree: StackTree, kernel: str) -> dict[str, int]:
    """Values of the instructions below `kernel`."""
    node = tree.find((kernel,))
    return {tree.name(child): int(tree.total[child]) for child in tree.children(node)}


def test_the_most_sampled_instructions_are_kept_whole() -> None:
    with few_parts(12):
        tree = project_tree(one_kernel(MANY, MANY, duration=57).profile(), "kernel,sass,stall")
    for kernel in ("kernel 0", "kernel 1"):
        # 12 parts for two: 6 each, and the third instruction would be the 5th and 6th.
        assert instructions(tree, kernel) == {
            "+0x0010 HFMA2 R0, R1": 30,
            "+0x0000 LDG.E R2, [R4]": 21,
            "+0x0020 HFMA2 R0, R1": 3,
            SMALLER: 3,
        }
        rest = tree.find((kernel, SMALLER))
        stalls = {tree.name(node): int(tree.total[node]) for node in tree.children(rest)}
        assert stalls == {"Barrier": 2, "Long Scoreboard": 1}


def test_they_are_all_shown_where_they_are_few_enough() -> None:
    with few_parts(16):
        tree = project_tree(one_kernel(MANY, MANY, duration=57).profile(), "kernel,sass,stall")
    assert len(instructions(tree, "kernel 1")) == 5


def test_of_many_kernels_the_heaviest_have_instructions() -> None:
    run = one_kernel(*[MANY] * 9)
    run = Run(
        tuple((*one[:3], 57 * (1 + 4 * at % 9)) for at, one in enumerate(run.launches)),
        run.distributions,
        run.of_group,
    )
    with few_parts(12):
        tree = project_tree(run.profile(), "kernel,sass,stall")
    shown = [set(instructions(tree, f"kernel {at}")) != {SMALLER} for at in range(9)]
    # Two parts each are enough for six.
    assert shown == [False, True, True, True, True, False, True, False, True]


@given(runs, orders, metrics)
def test_sums_are_exact_however_few_are_shown(run: Run, levels: str, metric: str) -> None:
    profile = run.profile()
    with few_parts():
        tree = project_tree(profile, levels, metric=metric)
    assert (tree.total[0], tree.count[0]) == (sum(weight(profile, metric)), len(run.launches))


@given(runs)
def test_samples_per_reason_are_exact_however_few_are_shown(run: Run) -> None:
    """Each distribution is split as one here: there is nothing to round."""
    profile = run.profile()
    with few_parts():
        tree = project_tree(profile, "sass,stall", metric="stalls")
    assert by_reason(tree) == by_reason(project_tree(profile, "stall", metric="stalls"))


@given(runs)
def test_few_or_not_a_kernel_has_what_it_has(run: Run) -> None:
    profile = run.profile()
    with few_parts():
        tree = project_tree(profile, "python,kernel,sass,stall")
    plain = leaves(project_tree(profile, "python,kernel"))
    kernels = np.flatnonzero(tree.frames.kind[tree.frame] == Kind.KERNEL)
    found = {tree.names(node): int(tree.total[node]) for node in kernels.tolist()}
    assert {path: value for path, value in found.items() if value} == plain


@given(runs, st.sampled_from(["kernel,sass,stall", "nvtx,sass"]), st.sampled_from([10, 30]))
def test_what_is_small_joins_the_instructions_that_are_rare(
    run: Run, levels: str, percent: float
) -> None:
    profile = run.profile()
    with few_parts():
        whole, tree = (
            project_tree(profile, levels),
            project_tree(profile, levels, where(min_percent=percent)),
        )
    assert (tree.total[0], tree.count[0]) == (whole.total[0], whole.count[0])
    for node in range(len(tree)):
        below = tree.frame[tree.children(node)].tolist()
        assert len(below) == len(set(below))


def by_reason(tree: StackTree) -> dict[int, int]:
    """Values by stall frame."""
    kinds = tree.frames.kind[tree.frame]
    found = Counter[int]()
    for node in np.flatnonzero(kinds == Kind.STALL).tolist():
        found[int(tree.frame[node])] += int(tree.total[node])
    return dict(found)
