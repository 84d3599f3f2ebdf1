"""The budget of each GPU: its parts are its window, to the nanosecond, whatever is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter, Kernel, Time
from flame.core.projection.selection import select
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import Budget, budget_section, budgets
from flame.core.timeline.idle_parts import IdleCause
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import examples
from tests.support.writers.nsysfile import HTOD, NsysFile

random_traces = examples(1, [HealthCheck.too_slow])
KINETO_TRACES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))

# As the plain loops of an independent implementation found them, ns.
A100 = {
    "window": 7_862_900_811,
    "host code": 1_008_429_927,
    "in launch": 217_001_688,
    "after launch": 8_045_656,
    "sync": 1_928_785,
    "idle": 1_298_043_927,
}


def whole(budget: Budget) -> list[int]:
    """Window and parts, which add up over windows that follow each other."""
    busy = [budget.compute, budget.exposed_communication, budget.copies_alone]
    return [budget.window, *busy, *budget.idle.tolist()]


@random_traces
@given(scripts(), st.integers(-3, 12), st.integers(0, 12), st.integers(0, 12))
def test_parts_are_the_window_and_add_up_over_windows(
    trace_file: Path, script: Script, begin: int, first: int, second: int
) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    edges = [begin + script.offset, begin + script.offset + first]
    edges.append(edges[-1] + second)
    for low, middle, high in [edges]:
        found = [
            {each.gpu.device: each for each in budgets(Scope(profile, select(where=(time,))))}
            for time in (Time(low, middle), Time(middle, high), Time(low, high))
        ]
        assert all(each.check == 0 for one in found for each in one.values())
        for device, together in found[2].items():
            parts = [whole(one[device]) for one in found[:2]]
            assert [sum(pair) for pair in zip(*parts, strict=True)] == whole(together)


def test_names_choose_nothing_of_it(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10)
        file.memcpy(HTOD, 20, 40)
    profile = load(tmp_path / "trace.sqlite")
    where: tuple[Filter, ...] = (Kernel("gemm"),)
    [budget] = budgets(Scope(profile, select(where=where)))
    assert whole(budget)[:4] == [40, 10, 0, 20]
    assert budget.idle[IdleCause.UNKNOWN] == 10


def test_of_stacks_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "stacks.folded"
    path.write_text("main;work 3\n")
    section = budget_section(Scope(load(path)))
    assert (section.available, section.why) == (False, "no GPU activity with times was recorded")


@needs_traces
@pytest.mark.parametrize("name", [*NSYS_TRACES, *KINETO_TRACES])
def test_parts_are_the_window_of_real_traces(name: str) -> None:
    folder = "nsys" if name.endswith(".sqlite") else "kineto"
    for budget in budgets(Scope(load(TRACES / folder / name))):
        assert budget.check == 0
        assert int(budget.idle.sum()) == budget.gpu.idle
        assert min(whole(budget)) >= 0


@needs_traces
def test_it_is_that_of_plain_loops(request: pytest.FixtureRequest) -> None:
    [budget] = budgets(Scope(load(TRACES / "nsys" / "a100_llm_nvtx.sqlite")))
    found = {each.title: int(budget.idle[each]) for each in IdleCause}
    found |= {"window": budget.window, "idle": budget.gpu.idle}
    assert {key: found[key] for key in A100} == A100
