"""Bounds: of one GPU never more than its window, each no more than its part, whatever ran."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter, Kernel, Time
from flame.core.projection.selection import select
from flame.core.report.findings import (
    alloc_rules,
    compute_rules,
    copy_rules,
    idle_evidence,
    idle_rules,
    iteration_rules,
    kernel_rules,
    layer_rules,
    rank_rules,
    recording_rules,
)
from flame.core.report.findings.findings import Findings, find
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from tests.conftest import TRACES, needs_traces
from tests.support.generated import strategies
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import deep_except, examples

RULES = (
    *(alloc_rules, compute_rules, copy_rules, idle_rules, iteration_rules),
    *(kernel_rules, layer_rules, rank_rules, recording_rules),
)
LEAST = {
    "LEAST", "SHORTER", "PER_SECOND", "FEWEST_DRAINED", "PROFILED", "HIDDEN", "NODES", "EXPOSED",
    "FEWEST_COPIES", "WAITED", "LAST", "OPERATIONS", "IMBALANCE", "SCORE", "FEWEST", "EXPERTS",
    "ROUTED", "UNEVEN", "MOST_OF_COMPUTE", "COMPUTES", "SMALL_SHARE", "UNSTEADY", "SLOW",
    "KNOWN_LAUNCHES", "HELD",
}  # fmt: skip
"""Thresholds that small traces do not reach."""

NAMES = (
    "gemm",
    "ncclDevKernel_AllReduce_Sum",
    "fused_moe",
    "topk_routing",
    "vectorized_elementwise_kernel",
)
PARTS = ("compute", "communication, exposed", "copies, alone", "idle", "copies, alone and idle")


@contextmanager
def every_rule_fires() -> Iterator[None]:
    """All thresholds at 0; gaps of 3 ns are long."""
    with pytest.MonkeyPatch.context() as patch:
        for module in RULES:
            for name in LEAST & {*vars(module)}:
                patch.setattr(module, name, 0)
        patch.setattr(layer_rules, "SAME", 1_000)
        patch.setattr(idle_evidence, "SHORT", 2)
        yield


def check(scope: Scope, found: Findings) -> None:
    """Bounds of each GPU: in all, and by the part of the budget that they are of."""
    for budget in budgets(scope):
        mine = [one for one in found.found if one.device == budget.gpu.device]
        bounds = dict.fromkeys(PARTS, 0)
        for one in mine:
            assert one.bound is None or one.bound > 0
            bounds[one.part or "idle"] += one.bound or 0
        idle, alone = int(budget.idle.sum()), budget.copies_alone
        assert sum(bounds.values()) <= budget.window
        assert bounds["compute"] <= budget.compute
        assert bounds["communication, exposed"] <= budget.exposed_communication
        assert bounds["copies, alone"] <= alone
        assert bounds["idle"] <= idle
        assert bounds["copies, alone"] + bounds["copies, alone and idle"] <= alone + idle
        assert bounds["idle"] + bounds["copies, alone and idle"] <= alone + idle


gc_ranges = strategies.many(
    strategies.on_thread(
        strategies.timed("nvtx", strategies.long_lengths, text=st.just("Python GC"))
    ),
    3,
)
kernels = strategies.on_gpu("kernel", name=st.sampled_from(NAMES))
windows = st.one_of(
    st.just(()),
    st.builds(
        lambda low, length: (Time(low, low + length),), st.integers(-2, 8), st.integers(1, 9)
    ),
    st.just((Kernel("gemm"),)),
)


@examples(0.4, [HealthCheck.too_slow])
@given(scripts(), strategies.many(kernels, 8), gc_ranges, windows)
def test_bounds_of_random_traces(
    trace_file: Path,
    script: Script,
    more: list[strategies.Step],
    gc: list[strategies.Step],
    where: tuple[Filter, ...],
) -> None:
    steps = (*script.steps, *more, *gc)
    profile = load(replace(script, steps=steps, offset=0).write(trace_file), LoadOptions("raw"))
    scope = Scope(profile, select(where=where), all_findings=True)
    with every_rule_fires():
        try:
            check(scope, find(scope))
        except NoMatchError:
            assert where or not len(profile.activities)


FILES = sorted(
    path.relative_to(TRACES).as_posix()
    for pattern in ("nsys/*.sqlite", "kineto/*.gz")
    for path in TRACES.glob(pattern)
)


@needs_traces
@pytest.mark.parametrize("name", deep_except(["nsys/ten_streams.sqlite"], FILES))
@pytest.mark.parametrize("all", [False, True])
def test_bounds_of_real_traces(name: str, all: bool) -> None:
    scope = Scope(load(TRACES / name), all_findings=all)
    check(scope, find(scope) if scope.gpus else Findings((), ()))


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize("name", FILES)
def test_bounds_of_real_traces_where_every_rule_fires(name: str) -> None:
    scope = Scope(load(TRACES / name), all_findings=True)
    with every_rule_fires():
        check(scope, find(scope) if scope.gpus else Findings((), ()))
