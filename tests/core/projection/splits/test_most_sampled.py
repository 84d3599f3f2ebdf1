"""More instructions than can be shown: the most sampled are kept, and sums stay exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.frames import SMALLER, Kind
from flame.core.model.tree import StackTree
from flame.core.projection.filter_options import where
from flame.core.projection.splits import sample_split as spread
from tests.core.projection.splits.sampled_trees import metrics, one_kernel, orders, weight
from tests.support.generated.sampled import Run, runs
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import leaves


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
