"""How long each activity took on both sides, beside plain loops over what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flame.core.analysis.distribution import Distribution, distribution
from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.sides import Run, Sides
from flame.core.loading.many import load
from flame.tui.diff.facts import BINS, SideFacts, side_facts, two_histograms
from tests.tui.diff.test_diff_app import BASE, MS, NEW, SHOWN, Kernels, written


def comparison(folder: Path, base: Kernels, new: Kernels) -> Comparison:
    runs = [
        Run(load(written(folder / f"{name}.sqlite", one)), name)
        for name, one in (("base", base), ("new", new))
    ]
    return compare(Sides((runs[0],), (runs[1],)), SHOWN)


def facts_of(found: Comparison, *nodes: int) -> SideFacts:
    return [*side_facts(found, np.array(nodes))][-1]


def expected(kernels: Kernels, names: tuple[str, ...]) -> Distribution | None:
    each = [
        duration * MS
        for path, durations in kernels.items()
        if path[: len(names)] == names
        for duration in durations
    ]
    return distribution(np.array(each, np.int64))


def test_each_node_has_the_durations_below_it(tmp_path: Path) -> None:
    found = comparison(tmp_path, BASE, NEW)
    tree = found.union.tree
    for node in range(len(tree)):
        facts, names = facts_of(found, node), tree.names(node)
        assert (facts.base, facts.new) == (expected(BASE, names), expected(NEW, names))
        assert (facts.histograms is None) == (
            facts.base is None or facts.new is None or names == ("attention", "softmax")
            or names == ("mlp", "gemm")
        )  # fmt: skip


def test_places_are_taken_together(tmp_path: Path) -> None:
    found = comparison(tmp_path, BASE, NEW)
    tree = found.union.tree
    facts = facts_of(found, *(node for node in range(len(tree)) if tree.name(node) == "gemm"))
    assert facts.base is not None and facts.new is not None
    assert (facts.base.count, facts.base.total) == (3, 40 * MS)
    assert (facts.new.count, facts.new.total) == (4, 56 * MS)


@pytest.mark.parametrize(
    ("base", "new", "log"),
    [([0, 5, 900], [1000, 7], True), ([100, 101, 180], [199, 200, 200], False)],
)
def test_both_histograms_have_one_axis(base: list[int], new: list[int], log: bool) -> None:
    found = two_histograms(np.array(base), np.array(new))
    assert found is not None and found.log == log
    assert (found.low, found.high) == (min(base + new), max(base + new))
    assert (int(found.base.sum()), int(found.new.sum())) == (len(base), len(new))
    assert len(found.base) == len(found.new) == BINS
    assert found.base[0] and found.new[-1]
    assert two_histograms(np.array([3, 3]), np.array([3])) is None
