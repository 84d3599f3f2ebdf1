"""Two sides add up, and comparing them the other way round turns all signs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.columns import Column
from flame.core.compare.basis import Units, parse_per
from flame.core.compare.changes import Changes
from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.sides import Run, Sides
from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.many import load
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.options import LoadOptions
from flame.core.projection.filters import Kernel, MinShare
from flame.core.projection.selection import Selection, select
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

Path_ = tuple[str, ...]
random_traces = examples(1, [HealthCheck.too_slow])
stacks = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple),
    st.integers(1, 20),
    min_size=1,
    max_size=6,
)


def folded(path: Path, values: dict[Path_, int]) -> Run:
    """A run of the stacks with these values."""
    lines = (f"{';'.join(names)} {value}\n" for names, value in values.items())
    path.write_text("".join(lines))
    return Run(load(path), path.name)


def totals(tree: StackTree, own: np.ndarray) -> Counter[Path_]:
    """What ends at each path, by its names."""
    found: Counter[Path_] = Counter()
    for node in range(len(tree)):
        found[tree.names(node)] += int(own[node])
    return +found


@given(stacks, stacks, st.sampled_from(["weight", "name", "start"]), st.booleans())
def test_the_union_has_every_path_of_both_sides_once(
    tmp_path_factory: pytest.TempPathFactory,
    base: dict[Path_, int],
    new: dict[Path_, int],
    order: str,
    inverted: bool,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    sides = Sides(
        (folded(folder / "a.folded", base),),
        (folded(folder / "b.folded", new), folded(folder / "c.folded", base)),
    )
    selection = Selection(layout=TreeLayout(inverted, order=order))  # type: ignore[arg-type]
    found = compare(sides, selection)
    tree = found.union.tree
    paths = [tree.names(node) for node in range(len(tree))]
    assert len(set(paths)) == len(paths)
    turned = [
        {names[::-1] if inverted else names: value for names, value in one.items()}
        for one in (base, new, base)
    ]
    for own, expected in zip(found.union.own, turned, strict=True):
        assert totals(tree, own) == expected
    for own, at, run in zip(found.union.own, found.union.node, found.trees, strict=True):
        assert own[at].sum() == run.own.sum()
    if order == "name":
        assert paths == sorted(paths)
    if order == "weight":
        for node in range(len(tree)):
            widths = [found.union.total[:, child].max() for child in tree.children(node)]
            assert widths == sorted(widths, reverse=True)


def rounded(steps: int) -> Fraction:
    """The part of a value by which so many roundings to doubles change it at most.

    N. Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1: n u / (1 - n u).
    """
    unit = Fraction(1, 1 << 53)
    return steps * unit / (1 - steps * unit)


def quotients(of: Column, divisor: Column) -> list[Fraction]:
    """Exactly ``of`` by ``divisor``; 0 where there is nothing to divide by."""
    pairs = zip(of.tolist(), divisor.tolist(), strict=True)
    return [Fraction(one) / Fraction(by) if by else Fraction(0) for one, by in pairs]


def off(found: Column, exact: Iterable[Fraction]) -> list[Fraction]:
    """How far each number found is from the exact one."""
    return [abs(Fraction(one) - right) for one, right in zip(found.tolist(), exact, strict=True)]


def check_sums(found: Comparison) -> None:
    """The root's change is the sum of those of the leaves, exactly; so is each side.

    Numbers that are not whole are right but for the roundings of doubles that they go through.
    """
    changes, own = found.changes, found.own_changes
    for side, leaves in ((changes.base, own.base), (changes.new, own.new)):
        assert side.total[0] == leaves.total.sum() and side.count[0] == leaves.count.sum()
    sizes = [check_parts(one) for one in (changes, own)]
    # Each change of a leaf is rounded twice, their sum once for each further leaf.
    of_leaves, exact = own.delta.sum(keepdims=True), exact_delta(changes)[:1]
    assert off(of_leaves, exact)[0] <= rounded(len(own.delta) + 1) * sizes[1]


def exact_delta(changes: Changes) -> list[Fraction]:
    base, new = (quotients(side.total, side.divisor) for side in (changes.base, changes.new))
    return [after - before for before, after in zip(base, new, strict=True)]


def check_parts(changes: Changes) -> Fraction:
    """What is due to the number and to the duration is right; returns both sides' values, summed.

    A change is two quotients and their difference, so each side's value is rounded twice. A part by
    number is two quotients, their difference, and its product with a mean: four times. What both
    parts add up to differs by the rounding of one of them, and of their sum.
    """
    base, new = changes.base, changes.new
    values = [quotients(side.total, side.divisor) for side in (base, new)]
    counts = [quotients(side.count, side.divisor) for side in (base, new)]
    means = [quotients(side.total, side.count) for side in (base, new)]
    both = [sum(pair, Fraction(0)) for pair in zip(*values, strict=True)]
    usual = [
        before if number else after
        for before, after, number in zip(*means, base.count.tolist(), strict=True)
    ]
    for wrong, size in zip(off(changes.delta, exact_delta(changes)), both, strict=True):
        assert wrong <= rounded(2) * size
    due = [(new - base) * mean for base, new, mean in zip(*counts, usual, strict=True)]
    most = [(new + base) * mean for base, new, mean in zip(*counts, usual, strict=True)]
    for wrong, size in zip(off(changes.by_count, due), most, strict=True):
        assert wrong <= rounded(4) * size
    parts = changes.by_count + changes.by_duration
    last = (np.spacing(np.abs(changes.by_duration)) / 2, np.spacing(np.abs(parts)) / 2)
    for wrong, *halves in zip(
        off(parts, map(Fraction, changes.delta.tolist())),
        *(one.tolist() for one in last),
        strict=True,
    ):
        assert wrong <= sum(map(Fraction, halves))
    return sum(both, Fraction(0))


@random_traces
@given(scripts(), scripts(), st.sampled_from(["total", "share", "second", "2,3"]))
def test_the_other_way_round_all_signs_turn(
    trace_file: Path, base: Script, new: Script, per: str
) -> None:
    runs = [
        Run(load(script.write(trace_file), LoadOptions("raw")), name)
        for script, name in ((base, "base"), (new, "new"))
    ]
    counted = parse_per(per)
    back_counted = Units(counted.new, counted.base) if isinstance(counted, Units) else counted
    try:
        there = compare(Sides((runs[0],), (runs[1],)), per=counted)
    except (NoMatchError, UsageError):
        return
    back = compare(Sides((runs[1],), (runs[0],)), per=back_counted)
    check_sums(there)
    names = [
        [one.union.tree.names(node) for node in range(len(one.union))] for one in (there, back)
    ]
    assert sorted(names[0]) == sorted(names[1])
    place = {path: node for node, path in enumerate(names[1])}
    if len(place) == len(names[1]):  # kernels of one name may be of several kinds
        order = [place[path] for path in names[0]]
        np.testing.assert_allclose(there.changes.delta, -back.changes.delta[order], atol=1e-9)
        assert (there.changes.is_new == back.changes.is_gone[order]).all()


def test_more_often_and_longer_each_are_told_apart(tmp_path: Path) -> None:
    def run(name: str, count: int, each: int) -> Run:
        with NsysFile(tmp_path / name) as file:
            for at in range(count):
                file.kernel("gemm", at * 1000, at * 1000 + each)
        return Run(load(tmp_path / name), name)

    base = run("base.sqlite", 10, 100)
    often = compare(Sides((base,), (run("often.sqlite", 13, 100),))).changes
    assert (often.delta[0], often.by_count[0], often.by_duration[0]) == (300, 300, 0)
    longer = compare(Sides((base,), (run("longer.sqlite", 10, 130),))).changes
    assert (longer.delta[0], longer.by_count[0], longer.by_duration[0]) == (300, 0, 300)


def test_kernels_have_the_same_short_name_on_both_sides(tmp_path: Path) -> None:
    """What tells a kernel from the others of one trace is more than what does in the other."""
    kernels = [f"void reduce<{of}>(int)" for of in ("Sum, 512, A", "Sum, 512, B", "Sum, 128, A")]
    runs = []
    for name, number in (("three", 3), ("two", 2), ("one", 1)):
        with NsysFile(tmp_path / name) as file:
            for at, kernel in enumerate(kernels[:number]):
                file.kernel("reduce", at * 1000, at * 1000 + 100, demangled=kernel)
        runs.append(Run(load(tmp_path / name), name))
    trees = [run.tree(select("kernel", kernel_names="short")) for run in runs]
    named = [{tree.name(node) for node in range(1, len(tree))} for tree in trees]
    assert not named[0] & named[2] and not named[1] & named[2]
    for pair, lacks in ((runs[:2], 1), (runs[1:], 1), (runs[::2], 2)):
        sides = Sides((pair[0],), (pair[1],))
        changes = compare(sides, select("kernel", kernel_names="short")).changes
        assert (int(changes.is_gone.sum()), int(changes.is_new.sum())) == (lacks, 0)


def test_several_runs_are_their_mean(tmp_path: Path) -> None:
    runs = [folded(tmp_path / f"{value}.folded", {("a",): value}) for value in (10, 20, 40)]
    changes = compare(Sides((runs[0], runs[1]), (runs[2],))).changes
    assert (changes.base.value[0], changes.new.value[0]) == (15, 40)


def test_iterations_are_one_frame_whatever_their_numbers(
    tmp_path: Path,
) -> None:
    def run(name: str, steps: range) -> Run:
        with NsysFile(tmp_path / name) as file:
            for step in steps:
                at = step * 1000
                file.nvtx(f"run step {step} now", at, at + 500)
                file.nvtx("phase 7", at, at + 400)
                file.api("cudaLaunchKernel", at + 10, at + 20, step + 1)
                file.kernel("gemm", at + 100, at + 200, step + 1)
        return Run(load(tmp_path / name), name)

    base, new = run("base.sqlite", range(4)), run("new.sqlite", range(20, 24))
    found = compare(Sides((base,), (new,)), select("nvtx,kernel"), "total")
    tree = found.union.tree
    assert [tree.names(node) for node in range(len(tree))][1:] == [
        ("run step * now",),
        ("run step * now", "phase 7"),
        ("run step * now", "phase 7", "gemm"),
    ]
    assert not found.changes.delta.any()


def test_a_filter_that_only_one_side_passes_leaves_the_other_empty(tmp_path: Path) -> None:
    base, new = (tmp_path / name for name in ("base.sqlite", "new.sqlite"))
    for path, kernel in ((base, "old_gemm"), (new, "new_gemm")):
        with NsysFile(path) as file:
            file.kernel(kernel, 0, 100)
    sides = Sides((Run(load(base), "base"),), (Run(load(new), "new"),))
    found = compare(sides, select(where=(Kernel("new"),)))
    assert found.changes.is_new.all()
    assert found.changes.by_count[0] == found.changes.delta[0] == 100
    with pytest.raises(NoMatchError, match="nothing in BASE or NEW"):
        compare(sides, select(where=(Kernel("other"),)))


def test_small_siblings_are_merged_by_what_both_sides_have(tmp_path: Path) -> None:
    base = folded(tmp_path / "a.folded", {("a",): 90, ("b",): 1, ("c",): 1, ("d",): 1})
    new = folded(tmp_path / "b.folded", {("a",): 90, ("b",): 1, ("c",): 1, ("d",): 90})
    found = compare(Sides((base,), (new,)), Selection(where=(MinShare(5),)))
    tree = found.union.tree
    values = {tree.name(node): found.union.own[:, node].tolist() for node in range(1, len(tree))}
    assert values == {"a": [90, 90], "d": [1, 90], "[smaller frames]": [2, 2]}


@pytest.mark.parametrize("text", ["steps", "0", "1,2,3", "-1", "nan", "1,", "inf"])
def test_what_is_no_basis_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--per"):
        parse_per(text)


def test_a_basis_that_a_run_has_not_is_refused(tmp_path: Path) -> None:
    run = folded(tmp_path / "a.folded", {("a",): 1})
    for per, why in (("step", "has no iterations"), ("second", "has no times")):
        with pytest.raises(UsageError, match=why):
            compare(Sides((run,), (run,)), per=per)


@needs_traces
@pytest.mark.deep
def test_all_pairs_of_real_traces_add_up() -> None:
    """Of Nsight Systems and of PyTorch, each with each, both ways round."""
    paths = [*(TRACES / "nsys" / name for name in NSYS_TRACES), *TRACES.glob("kineto/*.json.gz")]
    runs, roots = [Run(load(path), path.name) for path in paths], dict[tuple[int, int], float]()
    every = range(len(runs))
    for base, new in product(every, every):
        sides = Sides((runs[base],), (runs[new],))
        try:
            found = compare(sides, select(fold=True, fold_numbers=True), "total")
        except NoMatchError:
            continue
        check_sums(found)
        roots[base, new] = float(found.changes.delta[0])
        assert base != new or not found.changes.delta.any()
    assert len(roots) >= len(runs) ** 2 - 1, "all but what has no kernels and itself"
    assert all(roots[new, base] == -delta for (base, new), delta in roots.items())
