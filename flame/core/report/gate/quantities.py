"""Measure the quantities that conditions name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flame.core.allocator.growth import LEAST_BOUNDARIES
from flame.core.columns import distinct, unique_rows
from flame.core.errors import UsageError
from flame.core.model.allocator.recorded import MemoryOfDevice
from flame.core.model.calls import CallClass
from flame.core.model.frames import Frame, Kind
from flame.core.model.launches import DEVICE, UNKNOWN
from flame.core.regex import compile_expression
from flame.core.report.allocations.stacks import devices_with_memory
from flame.core.report.findings.findings import find
from flame.core.report.gate.condition import Term
from flame.core.report.gate.named import PARTS, measure_named, recorded_durations
from flame.core.report.gate.quantity import Quantity
from flame.core.report.measures.allocator_memory import given_out
from flame.core.report.measures.copy_work import copy_work
from flame.core.report.measures.device_memory import memory_use
from flame.core.report.program.iterations import report_iterations
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import Budget, budgets

Measure = Callable[[Scope], Quantity | None]
"""None: the trace cannot tell."""

_SEVERITIES = ("high", "medium", "low", "info")
WAYS = ("HtoD", "DtoH", "DtoD", "PtoP")
"""Ways of copies: from the host, to the host, within a GPU, between GPUs."""

_TEXTS = {"frame": "RE", "phase": "NAME"}

_STEPS = ("p50", "p95", "p99", "mean", "max")


def check_name(term: Term, more: Sequence[str] = ()) -> None:
    """Check that ``term`` names a quantity that there is; UsageError with the choices otherwise.

    ``more`` are choices besides.
    """
    named = {f"{name}.{part}": name for name, parts in PARTS.items() for part in parts}
    if term.name in (QUANTITIES if term.text is None else named):
        if named.get(term.name) == "frame":
            check_expression(term)
        return
    written = [f'{name}("{_TEXTS[name]}").{at.partition(".")[2]}' for at, name in named.items()]
    choices = ", ".join([*QUANTITIES, *written, *more])
    raise UsageError(
        f"--fail-on: no quantity '{term.name}' (at {term.place + 1}); there are {choices}"
    )


def check_expression(term: Term) -> None:
    """Check that the text of ``term`` is a regular expression; UsageError with its place if not."""
    try:
        compile_expression(term.text or "")
    except UsageError as error:
        raise UsageError(f"--fail-on: {term.name} at {term.place + 1}: {error}") from None


def measure(scope: Scope, term: Term) -> Quantity | None:
    """Measure what ``term`` names, which `check_name` lets pass; None: the trace cannot tell."""
    if term.text is None:
        return QUANTITIES[term.name](scope)
    return None if scope.profile.resolved else measure_named(scope, term, recorded_durations)


def _budget_part(part: Callable[[Budget], int]) -> Measure:
    """Sum a part of the budget over the GPUs."""

    def measured(scope: Scope) -> Quantity | None:
        found = budgets(scope)
        whole = sum(budget.window for budget in found)
        return Quantity(sum(map(part, found)), "ns", whole) if found else None

    return measured


def _percent(of: Measure) -> Measure:
    def measured(scope: Scope) -> Quantity | None:
        found = of(scope)
        if found is None or not found.whole:
            return None
        return Quantity(100 * found.value / found.whole, "percent")

    return measured


def _gpu_time(scope: Scope) -> Quantity | None:
    if scope.profile.resolved:
        return None
    return Quantity(int(scope.profile.activities.duration[scope.rows].sum()), "ns")


def _kernels(scope: Scope) -> Quantity | None:
    return None if scope.profile.resolved else Quantity(len(scope.rows_of(Kind.KERNEL)), "count")


def _launches(scope: Scope) -> Quantity | None:
    """Count the calls that launched what passes."""
    if scope.profile.resolved:
        return None
    table, rows = scope.profile.activities, scope.rows
    rows = rows[table.launched[rows]]
    columns = (table.process, table.thread, table.launch_start)
    first, _ = unique_rows([column[rows] for column in columns])
    return Quantity(len(first), "count")


def _calls(kind: CallClass) -> Measure:
    def measured(scope: Scope) -> Quantity | None:
        calls = None if scope.lacks_calls else scope.calls
        return None if calls is None else Quantity(len(calls.of_class(kind)), "count")

    return measured


def _copied(way: str) -> Measure:
    """Add up the bytes of copies ``way``, such as HtoD; None where those of one are not known."""

    def measured(scope: Scope) -> Quantity | None:
        if scope.profile.resolved:
            return None
        copies, frames = copy_work(scope), scope.profile.frames
        frame = scope.profile.activities.frame[copies.row]
        ways = [at for at in distinct(frame.astype(np.int64))[0].tolist() if _goes(frames[at], way)]
        moved = copies.bytes[np.isin(frame, ways)]
        return None if (moved == UNKNOWN).any() else Quantity(int(moved.sum()), "bytes")

    return measured


def _goes(frame: Frame, way: str) -> bool:
    return frame.kind == Kind.MEMCPY and frame.name.rpartition(" ")[2] == way


def _findings(severity: str) -> Measure:
    def measured(scope: Scope) -> Quantity | None:
        if not scope.gpus and not devices_with_memory(scope):
            return None
        found = [one for one in find(scope).found if one.severity == severity]
        return Quantity(len(found), "count")

    return measured


def _steps(part: str) -> Measure:
    """Measure how long the iterations took after the warm-up, of each the slowest rank."""

    def measured(scope: Scope) -> Quantity | None:
        iterations = report_iterations(scope)
        found = None if iterations is None else iterations.verdicts.statistics
        if found is None:
            return None
        parts = {"max": found.maximum, "mean": found.mean}
        return Quantity(parts[part] if part in parts else getattr(found, part), "ns")

    return measured


def _memory(value: Callable[[MemoryOfDevice], int | None], whole: bool = False) -> Measure:
    """Measure memory of the GPU that has most of it; where ``whole``, of what is reserved there."""

    def measured(scope: Scope) -> Quantity | None:
        known = [
            (found, one) for one in devices_with_memory(scope) if (found := value(one)) is not None
        ]
        if not known:
            return None
        most, one = max(known, key=lambda pair: pair[0])
        return Quantity(most, "bytes", one.parts.reserved if whole and one.parts else None)

    return measured


def _peak_memory(scope: Scope) -> Quantity | None:
    """Find how much memory of a GPU was in use at most: by a snapshot, by CUDA, or by PyTorch."""
    if (of_snapshot := QUANTITIES["memory.peak"](scope)) is not None:
        return of_snapshot
    peaks = [one.peak for one in memory_use(scope) if one.place.kind in (DEVICE, "")]
    peaks = peaks or [one.most for one in given_out(scope)]
    return Quantity(max(peaks), "bytes") if peaks else None


def _part(name: str) -> Callable[[MemoryOfDevice], int | None]:
    return lambda one: getattr(one.parts, name) if one.parts else None


def _failures(scope: Scope) -> Quantity | None:
    """Count the requests for memory that failed."""
    known = [one for one in devices_with_memory(scope) if one.events]
    return Quantity(sum(len(one.out_of_memory) for one in known), "count") if known else None


def _growing(scope: Scope) -> Quantity | None:
    """Sum what stacks have grown by from step to step; None where that cannot be told of any."""
    known = [one for one in devices_with_memory(scope) if one.boundaries >= LEAST_BOUNDARIES]
    grown = sum(stack.total for one in known for stack in one.growth)
    return Quantity(grown, "bytes") if known else None


BUDGET_PARTS: dict[str, Callable[[Budget], int]] = {
    "busy": lambda budget: budget.gpu.busy,
    "idle": lambda budget: budget.gpu.idle,
    "compute": lambda budget: budget.compute,
    "exposed_comm": lambda budget: budget.exposed_communication,
    "copies_alone": lambda budget: budget.copies_alone,
}
"""Parts of the budget, which are of all that ran, whatever its names."""

QUANTITIES: dict[str, Measure] = {
    **{name: _budget_part(part) for name, part in BUDGET_PARTS.items()},
    **{f"{name}_percent": _percent(_budget_part(part)) for name, part in BUDGET_PARTS.items()},
    "gpu_time": _gpu_time,
    "kernels": _kernels,
    "launches": _launches,
    "syncs": _calls(CallClass.SYNC),
    "allocs": _calls(CallClass.ALLOC),
    **{f"bytes.{way.lower()}": _copied(way) for way in WAYS},
    **{f"findings.{severity}": _findings(severity) for severity in _SEVERITIES},
    **{f"step.{part}": _steps(part) for part in _STEPS},
    "peak_memory": _peak_memory,
    "memory.peak": _memory(lambda one: one.peak),
    "memory.live": _memory(lambda one: one.live_end),
    "memory.reserved": _memory(_part("reserved")),
    **{f"memory.{part}": _memory(_part(part), whole=True) for part in ("split", "releasable")},
    "memory.grown": _growing,
    "memory.failed": _failures,
}
"""What conditions may name, and how it is measured."""
