"""What both sides have of any tree that is made of their union adds up, counted by plain loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.sandwich import callees_of, callers_of, merge_places
from flame.core.compare.amounts import Amounts, format_ratio
from flame.core.compare.colouring import Colouring, Measured
from flame.core.compare.comparison import compare
from flame.core.compare.sided_tree import SidedTree, sided
from flame.core.compare.sides import Run, Sides
from flame.core.loading.many import load
from flame.core.model.tree import StackTree

Values = dict[tuple[str, ...], int]
stacks = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map(tuple),
    st.integers(1, 20),
    min_size=1,
    max_size=6,
)


def two_sides(folder: Path, base: Values, new: Values) -> SidedTree:
    """The union of both, as wide as the wider."""
    runs = []
    for name, values in (("base", base), ("new", new)):
        path = folder / f"{name}.folded"
        path.write_text("".join(f"{';'.join(names)} {value}\n" for names, value in values.items()))
        runs.append(Run(load(path), name))
    found = compare(Sides((runs[0],), (runs[1],)))
    return sided(found, found.tree("both"))


def by_path(tree: StackTree, values: np.ndarray) -> Counter[tuple[str, ...]]:
    """The values of all nodes, by the names from the root down."""
    paths = [tuple(tree.name(step) for step in tree.path(node)) for node in range(len(tree))]
    assert len({*paths}) == len(paths)
    return +Counter(dict(zip(paths, values.tolist(), strict=True)))


def callers(stack: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The way up from the outermost ``name``."""
    return stack[: stack.index(name) + 1][::-1]


def callees(stack: tuple[str, ...], name: str) -> tuple[str, ...]:
    return stack[stack.index(name) :]


def family(stack: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The outermost ``name``, and the child below it."""
    return stack[stack.index(name) :][:2]


@given(stacks, stacks, st.sampled_from("abc"), st.sampled_from([0, 1, 2]))
def test_each_side_of_a_sandwich_is_that_of_its_own_stacks(
    tmp_path_factory: pytest.TempPathFactory, base: Values, new: Values, name: str, way: int
) -> None:
    sides = two_sides(tmp_path_factory.getbasetemp(), base, new)
    if name not in sides.tree.text:
        return
    frame = sides.tree.text.index(name)
    makes: list[Callable[[StackTree], StackTree]] = [
        lambda tree: callers_of(tree, frame),
        lambda tree: callees_of(tree, frame),
        lambda tree: merge_places(tree, np.flatnonzero(tree.frame == frame)),
    ]
    made = sides.derive(makes[way])
    cut = (callers, callees, family)[way]
    for own, values in zip(made.own, (base, new), strict=True):
        expected: Counter[tuple[str, ...]] = Counter()
        for stack, value in values.items():
            if name in stack:
                expected[cut(stack, name)] += value
        assert by_path(made.tree, own) == expected


BASE = {("main", "load"): 100, ("main", "step", "old"): 300, ("main", "step", "same"): 600}
NEW = {("main", "load"): 103, ("main", "step", "new"): 200, ("main", "step", "same"): 720}


@pytest.mark.parametrize(
    ("name", "sign", "words"),
    [
        ("all", "", ["+2.3 %", "+23"]),
        ("load", "", ["+3.0 %", "+3"]),
        ("old", "−", ["gone 300"]),
        ("new", "+", ["new 200"]),
        ("same", "▲", ["+20.0 %", "+120"]),
    ],
)
def test_notable_changes_have_a_sign(
    tmp_path: Path, name: str, sign: str, words: list[str]
) -> None:
    colouring = Colouring(two_sides(tmp_path, BASE, NEW))
    tree = colouring.sides.tree
    node = next(node for node in range(len(tree)) if tree.name(node) == name)
    assert (colouring.sign(node), colouring.words(node)) == (sign, words)


def strengths(colouring: Colouring) -> dict[tuple[str, ...], float]:
    tree = colouring.sides.tree
    return {tree.names(node): float(colouring.strength[node]) for node in range(len(tree))}


def test_the_other_way_round_the_colours_turn(tmp_path: Path) -> None:
    there, back = two_sides(tmp_path, BASE, NEW), two_sides(tmp_path, NEW, BASE)
    for measured in get_args(Measured):
        one, other = (strengths(Colouring(sides, measured, True)) for sides in (there, back))
        assert one == {path: -strength for path, strength in other.items()}
        assert min(one.values()) < 0 < max(one.values())
    same = Colouring(two_sides(tmp_path, BASE, BASE), everything=True)
    assert not same.strength.any()
    assert {same.sign(node) for node in range(len(same.sides.tree))} == {""}


def test_amounts_have_no_wrong_zero() -> None:
    assert Amounts("ns").value(0.2) == "<1 ns"
    assert Amounts("count").value(0.01) == "<0.1"
    assert Amounts("ns", "share").delta(-0.02) == "−<0.1 %"
    assert [format_ratio(one) for one in (0.0, 0.0001, 8.99, 9.0, -1.0, float("inf"))] == [
        "0 %",
        "+<0.1 %",
        "+899.0 %",
        "×10",
        "−100.0 %",
        "new",
    ]
