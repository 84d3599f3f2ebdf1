"""What went and what came below one node is told together, and pairs are suggested."""

from __future__ import annotations

import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from flame.core.compare.comparison import Comparison
from flame.core.compare.replaced import find_replaced
from flame.core.compare.sides import Run
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection, select
from tests.conftest import TRACES, needs_traces
from tests.support.generated.compared import one_by_one, write_steps
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import examples


def pairs(found: Comparison) -> list[tuple[str, str]]:
    replaced, tree = find_replaced(found), found.union.tree
    return [
        (tree.name(old), tree.name(new))
        for old, new in zip(replaced.old_node, replaced.new_node, strict=True)
    ]


def test_work_of_one_number_is_paired_in_order_of_time(tmp_path: Path) -> None:
    # The wider ones are not in the same order as those that began first.
    base = [{"old_1": [10, 10], "old_2": [90, 90], "once": [5], "stays": [7]}] * 4
    new = [{"new_1": [80, 80], "new_2": [20, 20], "thrice": [5] * 3, "stays": [7]}] * 5
    found = one_by_one(
        write_steps(tmp_path / "a", base),
        write_steps(tmp_path / "b", new),
        selection=select("nvtx,kernel"),
    )
    assert found.basis.kind == "step"
    assert pairs(found) == [("old_1", "new_1"), ("old_2", "new_2")]
    replaced = find_replaced(found)
    step = int(found.union.tree.parent[replaced.old_node[0]])
    assert (replaced.gone[step], replaced.new[step], replaced.amount[step]) == (205, 215, 205)
    assert not np.delete(replaced.amount, step).any()


def test_what_may_be_either_of_two_is_not_paired(tmp_path: Path) -> None:
    base = write_steps(tmp_path / "a", [{"old": [10]}] * 4)
    new = write_steps(tmp_path / "b", [{"new_1": [10], "new_2": [10]}] * 4)
    assert pairs(one_by_one(base, new, selection=select("nvtx,kernel"))) == []


def test_stacks_are_not_paired_as_their_numbers_tell_nothing(tmp_path: Path) -> None:
    runs = []
    for name, text in (("a", "p;x 3\n"), ("b", "p;v 5\n")):
        (tmp_path / f"{name}.folded").write_text(text)
        runs.append(Run(load(tmp_path / f"{name}.folded"), name))
    found = one_by_one(*runs)
    assert pairs(found) == []
    assert find_replaced(found).amount.tolist() == [0, 3, 0, 0]


@pytest.mark.deep
@examples(0.5)
@given(scripts(), scripts())
def test_sums_are_those_of_plain_loops(trace_file: Path, base: Script, new: Script) -> None:
    paths = (trace_file, trace_file.with_name("new.sqlite"))
    runs = [
        Run(load(script.write(path), LoadOptions("raw")), "")
        for script, path in zip((base, new), paths, strict=True)
    ]
    try:
        found = one_by_one(*runs, selection=select(metric="gpu"))
    except NoMatchError:
        return
    replaced, tree, count = find_replaced(found), found.union.tree, found.union.count
    for node in range(len(tree)):
        sums: defaultdict[int, int] = defaultdict(int)
        for child in tree.children(node) if count[:, node].all() else ():
            for side in (0, 1):
                if count[side, child] and not count[1 - side, child]:
                    sums[side] += int(found.union.total[side, child])
        assert (replaced.gone[node], replaced.new[node]) == (sums[0], sums[1])
    for old, other in zip(replaced.old_node, replaced.new_node, strict=True):
        assert tree.parent[old] == tree.parent[other] and tree.kind(old) == tree.kind(other)
        assert count[0, old] == count[1, other] > 0
        assert count[1, old] == count[0, other] == 0


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize("name", ["a100_llm_nvtx", "rtx3070_train_17k"])
def test_a_renamed_kernel_is_suggested(name: str, tmp_path: Path) -> None:
    source, changed = TRACES / "nsys" / f"{name}.sqlite", tmp_path / "changed.sqlite"
    shutil.copy(source, changed)
    with closing(sqlite3.connect(changed)) as file, file:
        (kernel, text), *_ = file.execute(
            "SELECT shortName, value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds"
            " ON StringIds.id = shortName GROUP BY 1 ORDER BY SUM(end - start) DESC"
        )
        file.execute("INSERT INTO StringIds (id, value) VALUES (99999999, 'gemm_of_another_name')")
        file.execute(
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET shortName = 99999999, demangledName = 99999999,"
            " mangledName = NULL WHERE shortName = ?",
            (kernel,),
        )
    runs = (Run(load(source), ""), Run(load(changed), ""))
    found = one_by_one(*runs, selection=Selection(levels=("kernel",)))
    assert pairs(found) == [(text, "gemm_of_another_name")]
    replaced = find_replaced(found)
    assert replaced.amount[0] == replaced.gone[0] == replaced.new[0] > 0
    by_call = one_by_one(*runs)
    assert set(pairs(by_call)) == {(text, "gemm_of_another_name")}
