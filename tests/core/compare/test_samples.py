"""Samples are what plain loops over activities sum up."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.compare.comparison import Comparison
from flame.core.compare.samples import (
    HeaviestNodes,
    activity_samples,
    compared_rows,
    compared_weights,
    run_samples,
    step_samples,
)
from flame.core.compare.sides import Run
from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filters import Steps
from flame.core.projection.selection import select
from tests.conftest import EVERY_NSYS_TRACE, TRACES, needs_traces
from tests.support.generated.compared import Step, one_by_one, write_steps
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import examples

kernels = st.dictionaries(
    st.sampled_from(["gemm", "softmax", "norm"]), st.lists(st.integers(0, 90), max_size=3)
)
steps = st.lists(kernels, min_size=3, max_size=6)


def in_step(profile: Profile, row: int) -> int:
    """The number of the step that a row was launched in; -1 in none."""
    table, known = profile.activities, profile.iterations
    launched = table.launch_start[row] if table.launched[row] else table.start[row]
    for one in np.flatnonzero(known.process == table.process[row]).tolist():
        if known.start[one] <= launched < known.end[one]:
            return int(known.number[one])
    return -1


def steps_of(run: Run) -> list[int]:
    """The numbers of the steps that are compared, in order."""
    spans = [span for one in run.where if isinstance(one, Steps) for span in one.spans]
    return sorted(number for first, last in spans for number in range(first, last + 1))


def sums_by_step(found: Comparison, at: int) -> dict[int, Counter[int]]:
    """What each node of the union has below it in each step, summed row by row."""
    sums: dict[int, Counter[int]] = defaultdict(Counter)
    run, tree, parent = found.sides.runs[at], found.trees[at], found.union.tree.parent
    table = run.profile.activities
    numbers = steps_of(run)
    for row in range(len(table)):
        own, number = int(tree.node_of_group[table.groups.of_row[row]]), in_step(run.profile, row)
        node = int(found.union.node[at][own]) if own >= 0 and number in numbers else -1
        while node >= 0:
            sums[number][node] += int(table.duration[row])
            node = int(parent[node])
    return sums


@examples(0.5)
@given(steps, steps)
def test_samples_by_step_are_what_each_step_launched(
    tmp_path_factory: pytest.TempPathFactory, base: list[Step], new: list[Step]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    runs = [write_steps(folder / name, some) for name, some in (("a", base), ("b", new))]
    try:
        found = one_by_one(*runs, selection=select("nvtx,kernel"), per="step")
    except (UsageError, NoMatchError):  # no more than a half is in steps
        return
    nodes = HeaviestNodes.of(found)
    samples = step_samples(found, nodes)
    assert samples.complete.all()
    for at, side in enumerate((samples.base, samples.new)):
        sums = sums_by_step(found, at)
        numbers = steps_of(found.sides.runs[at])
        for node, row in zip(nodes.node.tolist(), side, strict=True):
            assert row.tolist() == [sums[number][node] for number in numbers]


def check_nodes(found: Comparison) -> None:
    """Each node is itself, or the lower end of a chain of nodes that hold the same."""
    nodes, union = HeaviestNodes.of(found, 40), found.union
    tree = union.tree
    parts = [side.total / max(side.total[0], 1) for side in (found.changes.base, found.changes.new)]
    weight = np.maximum(*parts)
    left_out = weight[nodes.place < 0]
    assert len(set(nodes.node.tolist())) == len(nodes.node) <= 40
    assert not len(left_out) or left_out.max() <= weight[nodes.node].min()
    for node in np.flatnonzero(nodes.place >= 0).tolist():
        first = int(nodes.node[nodes.place[node]])
        assert (union.total[:, first] == union.total[:, node]).all()
        assert (union.count[:, first] == union.count[:, node]).all()
        assert first in tree.path(node)
    values = np.arange(len(tree), dtype=np.int64)
    sums = nodes.sums(values % 3, values, values, 3)
    for place, node in enumerate(nodes.node.tolist()):
        below = range(node, int(tree.end[node]))
        assert sums[:, place].tolist() == [
            sum(one for one in below if one % 3 == row) for row in range(3)
        ]


def check_activities(found: Comparison) -> None:
    """Every activity that is compared is there, and strata are what they are said to be."""
    samples = activity_samples(found)
    for at in range(2):
        rows = compared_rows(found, at)
        mine = samples.is_new == bool(at)
        own = np.zeros(len(found.union), np.int64)
        np.add.at(own, samples.node[mine], samples.value[mine])
        assert (own == found.union.own[at]).all()
        assert samples.value[mine].tolist() == rows.value.tolist()
        table, weights = compared_weights(found, at)
        groups = table.groups.of_row[rows.row]
        sums, counts = np.zeros((2, len(table.groups)), np.int64)
        np.add.at(sums, groups, table.duration[rows.row])
        np.add.at(counts, groups, 1)
        assert weights.value.tolist() == sums.tolist()
        assert weights.activities.tolist() == counts.tolist()
    keys = dict[int, set[object]]()
    for at, run in enumerate(found.sides.runs):
        rows, launches = compared_rows(found, at), run.profile.launches
        for row, node, stratum in zip(
            rows.row.tolist(),
            rows.node.tolist(),
            samples.stratum[samples.is_new == bool(at)].tolist(),
            strict=True,
        ):
            frame = run.profile.frames[int(rows.table.frame[row])]
            config = (
                launches.configs[launches.config[row]]
                if launches and launches.config[row] >= 0
                else None
            )
            how = (config.grid, config.block) if config and config.grid else None
            size = int(launches.bytes[row]) if launches else -1
            keys.setdefault(stratum, set()).add(
                (node, frame.kind, frame.get("demangled") or frame.name, how, size)
            )
    known = any(run.profile.launches is None for run in found.sides.runs)
    assert known or all(len(some) == 1 for some in keys.values())
    assert len(keys) == samples.strata


@pytest.mark.deep
@examples(0.5)
@given(scripts(), scripts())
def test_samples_of_random_traces(trace_file: Path, base: Script, new: Script) -> None:
    paths = (trace_file, trace_file.with_name("new.sqlite"))
    runs = [
        Run(load(script.write(path), LoadOptions("raw")), "")
        for script, path in zip((base, new), paths, strict=True)
    ]
    try:
        found = one_by_one(*runs, selection=select(metric="gpu"))
    except NoMatchError:
        return
    check_nodes(found)
    check_activities(found)


@needs_traces
@pytest.mark.parametrize("name", EVERY_NSYS_TRACE)
def test_samples_of_real_traces(name: str) -> None:
    run = Run(load(TRACES / "nsys" / name), name)
    try:
        found = one_by_one(run, run)
    except NoMatchError:
        return
    check_nodes(found)
    if found.union.tree.metric.table == "gpu":
        check_activities(found)


def test_runs_are_scaled_as_the_basis_says(tmp_path: Path) -> None:
    base = write_steps(tmp_path / "a", [{"gemm": [40, 60]}] * 3)
    new = write_steps(tmp_path / "b", [{"gemm": [20], "norm": [10]}] * 3)
    expected = {
        "step": ([100], [30]),
        "total": ([300], [90]),
        "activity": ([50], [15]),
        "share": ([100], [100]),
    }
    for per, values in expected.items():
        found = one_by_one(base, new, per=per)
        nodes = HeaviestNodes.of(found)
        samples = run_samples(found, nodes)
        root = nodes.place[0]
        assert (samples.base[root].tolist(), samples.new[root].tolist()) == values
