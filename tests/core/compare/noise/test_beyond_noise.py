"""Coloured is what has changed beyond noise; what nothing tells from noise, by its size."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from flame.core.analysis.sandwich import callees_of, callers_of
from flame.core.compare.changes import Limits
from flame.core.compare.colouring import Colouring
from flame.core.compare.comparison import Comparison
from flame.core.compare.evidence import EvidenceLevel, NodeVerdict, find_evidence
from flame.core.compare.noise.beyond_noise import (
    FrameVerdict,
    NoiseMarks,
    find_beyond_noise,
    noise_marks,
)
from flame.core.compare.sided_tree import sided
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.projection.selection import select
from tests.core.compare.test_evidence import folded
from tests.support.generated.compared import Step, node_called, one_by_one, write_steps

NAMES = ("gemm", "softmax", "norm", "bias", "gelu")


def steps(seed: int, longer: float, name: str) -> list[Step]:
    """Steps of which ``softmax`` varies by half, and ``gemm`` and ``norm`` take ``longer``."""
    random = np.random.default_rng(seed)

    def steady(mean: float) -> list[int]:
        return [int(mean * random.normal(1, 0.01))]

    return [
        {
            "gemm": steady(10_000 * longer),
            "softmax": [int(4_000 * (1 + abs(random.normal(0, 0.9 * longer))))],
            "norm": steady(40 * longer),
            "bias": steady(3_000),
            name: steady(500),
        }
        for _ in range(10)
    ]


@pytest.fixture
def found(tmp_path: Path) -> Comparison:
    base, new = (
        write_steps(tmp_path / name, steps(seed, longer, own))
        for seed, (name, longer, own) in enumerate((("a", 1.0, "gelu"), ("b", 1.2, "relu")))
    )
    return one_by_one(base, new, selection=select("nvtx,kernel"))


def of_stacks(folder: Path, base: dict[str, int], new: dict[str, int]) -> Comparison:
    return one_by_one(folded(folder / "a.folded", base), folded(folder / "b.folded", new))


def colours(found: Comparison, marks: NoiseMarks) -> Colouring:
    return Colouring(sided(found, found.tree("both")), marks=marks)


def coloured(colouring: Colouring) -> set[str]:
    tree = colouring.sides.tree
    return {tree.name(node) for node in np.flatnonzero(colouring.strength).tolist()}


def test_noise_is_coloured_until_it_is_known_to_be_that(found: Comparison) -> None:
    marks = noise_marks(found)
    colouring = colours(found, marks)
    assert coloured(colouring) >= {"gemm", "softmax", "gelu", "relu"}
    before = colouring.strength
    marks.found = find_beyond_noise(found)
    assert marks.found.level == EvidenceLevel.STEPS
    assert coloured(colouring) == coloured(replace(colouring)) and "gemm" in coloured(colouring)
    assert "softmax" not in coloured(colouring) and "bias" not in coloured(colouring)
    assert colouring.strength_by(None) is before  # it is worked out once
    everything = replace(colouring, everything=True)
    assert "softmax" in coloured(everything) and "norm" in coloured(everything)


def test_what_is_said_is_what_plain_loops_find(found: Comparison) -> None:
    noise, evidence, changes = find_beyond_noise(found), find_evidence(found), found.changes
    tree, said = found.union.tree, {}
    for node in range(len(tree)):
        verdict, counts = evidence.verdict[node], bool(found.counting[node])
        beyond = evidence.low[node] > 0 or evidence.high[node] < 0
        if evidence.level[node] == EvidenceLevel.NONE:
            expected = FrameVerdict.UNTESTED
        elif verdict == NodeVerdict.UNCLEAR and beyond and not counts:
            expected = FrameVerdict.SMALL
        else:
            expected = FrameVerdict[NodeVerdict(verdict).name]
        assert noise.verdict[node] == expected
        untold = expected == FrameVerdict.UNTESTED and counts
        assert noise.nodes[node] == (untold or expected == FrameVerdict.CHANGED)
        said[tree.name(node)] = expected
    assert (said["gemm"], said["norm"]) == (FrameVerdict.CHANGED, FrameVerdict.SMALL)
    assert (said["softmax"], said["bias"]) == (FrameVerdict.UNCLEAR, FrameVerdict.SAME)
    frames = tree.frame.astype(np.int64)
    # Every name has one place here, so that what is known of the frame is what is of the node.
    for verdict, expected in zip(
        noise.places.verdicts(frames[1:], changes.delta[1:]), noise.verdict[1:], strict=True
    ):
        assert verdict == expected
    against = noise.places.verdicts(frames[1:], -changes.delta[1:])
    assert not (against == FrameVerdict.CHANGED).any()


@pytest.mark.parametrize(("name", "expected"), [("gemm", True), ("softmax", False)])
def test_a_sandwich_has_the_colours_of_the_frame_it_is_of(
    name: str, expected: bool, found: Comparison
) -> None:
    colouring = colours(found, NoiseMarks(find_beyond_noise(found)))
    tree = found.union.tree
    frame = int(tree.frame[node_called(found, name)])

    def turned(tree: StackTree) -> StackTree:
        return replace(callers_of(tree, frame), layout=TreeLayout(inverted=True))

    halves = (colouring.derive(turned), colouring.derive(partial(callees_of, frame=frame)))
    for half in halves:
        assert half.strength.any() == expected
    assert len(halves[0].sides.tree) == 2 and halves[0].strength.all() == expected


def test_where_nothing_tells_noise_all_that_counts_is_coloured(tmp_path: Path) -> None:
    found = of_stacks(tmp_path, {"a;b": 100, "a;c": 50}, {"a;b": 150, "a;c": 51})
    noise = find_beyond_noise(found)
    assert noise.level == EvidenceLevel.NONE and noise.nodes.tolist() == found.counting.tolist()
    assert not noise.places.tested.any()
    assert coloured(colours(found, NoiseMarks(noise))) == coloured(colours(found, NoiseMarks()))


@pytest.mark.parametrize("swapped", [False, True])
def test_limits_are_parts_of_the_larger_side(swapped: bool, tmp_path: Path) -> None:
    """Of 1,000 and 1,010 in all, 10 are 1 % of the smaller side, and less of the larger one."""
    sides = ({"a": 990, "b": 10}, {"a": 990, "b": 20})
    base, new = sides[::-1] if swapped else sides
    found = of_stacks(tmp_path, base, new)
    for part, large in ((0.0099, True), (0.00995, False)):
        narrow = replace(found, limits=Limits(0.05, part))
        assert bool(narrow.counting[node_called(found, "b")]) == large


def test_a_mean_counts_as_often_as_there_are_activities(tmp_path: Path) -> None:
    base, new = (
        write_steps(tmp_path / name, [{"many": [100] * 99, "rare": [rare, rare]}])
        for name, rare in (("a", 100), ("b", 130))
    )
    found = one_by_one(base, new, selection=select("kernel"), per="activity")
    for part, large in ((0.0058, True), (0.006, False)):  # twice 30 of 10,160 ns in all
        narrow = replace(found, limits=Limits(0.05, part))
        assert bool(narrow.counting[node_called(found, "rare")]) == large
