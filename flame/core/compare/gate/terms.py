"""Measure what the terms of a condition name, on both sides of a comparison."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, Bool, unique
from flame.core.compare.comparison import Comparison
from flame.core.compare.gate.rank_terms import measure_ranks
from flame.core.compare.kept.kept_durations import kept_durations
from flame.core.compare.sides import BASE, NEW, SIDES, KeptRun, Run
from flame.core.errors import NoMatchError
from flame.core.projection.matching import matching_frames
from flame.core.regex import compile_expression
from flame.core.report.gate.condition import Condition, Term, parse_condition, terms_of
from flame.core.report.gate.named import measure_named, named_work, recorded_durations
from flame.core.report.gate.percentiles import Durations
from flame.core.report.gate.quantities import (
    BUDGET_PARTS,
    check_expression,
    check_name,
    measure,
)
from flame.core.report.gate.quantity import Quantity
from flame.core.report.gate.unknown import why_no_phase, why_unknown
from flame.core.report.scope import Scope

ONE_SIDED = ("new", "gone")
"""Quantities of a comparison alone: how many frames one side only has, by their names."""

_NOT_ADDED_UP = ("step.", "findings.", "memory.", "peak_memory")
"""Beginnings of quantities that say as much of several runs, or steps, as of one."""

_OF_ALL_NAMES = ("step.", *BUDGET_PARTS)
"""Beginnings of quantities that filters by name do not change."""


class SideValues(NamedTuple):
    """Hold a quantity of both sides, on the basis of the comparison; ``runs`` has that of each run.

    ``whole`` is what shares of the new side's value are of, None where there are none.
    """

    base: float
    new: float
    unit: str
    whole: float | None
    runs: tuple[float, ...]

    @property
    def change(self) -> float | None:
        """By how much percent new is above base; None where base is nothing."""
        return 100 * (self.new / self.base - 1) if self.base else None


def read_condition(text: str) -> Condition:
    """Parse a condition on a comparison; UsageError where it names what there is not."""
    condition = parse_condition(text)
    for term in terms_of(condition):
        if not _is_one_sided(term):
            check_name(term, more=[f'{name}("RE")' for name in ONE_SIDED])
        elif term.text is not None:
            check_expression(term)
    return condition


def _is_one_sided(term: Term) -> bool:
    return term.name in ONE_SIDED and term.text is not None


def adds_up(term: Term) -> bool:
    """Tell whether what ``term`` names is a sum over the run, so that it is scaled."""
    if term.text is not None:
        return not term.name.endswith((".mean", ".p99"))
    return not term.name.startswith(_NOT_ADDED_UP) and not term.name.endswith("_percent")


def measure_sides(comparison: Comparison, term: Term) -> SideValues | None:
    """Measure what ``term`` names; None where a trace cannot tell."""
    if _is_one_sided(term):
        return _one_sided(comparison, term)
    found = [
        _measured(run, scope, term)
        for run, scope in zip(comparison.sides.runs, comparison.scopes, strict=True)
    ]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    values = np.array([one.value for one in known])
    divisor = _divisor(comparison, term)
    base, new = _scaled(comparison, values, divisor)
    wholes = np.array([one.whole for one in known if one.whole is not None])
    whole = _scaled(comparison, wholes, divisor)[NEW] if len(wholes) == len(known) else None
    return SideValues(base, new, known[0].unit, whole, tuple((values / divisor).tolist()))


def sides_without(comparison: Comparison, term: Term) -> list[str]:
    """List the sides of which no frame has a name that ``term`` asks for; none of other terms."""
    if not term.name.startswith("frame."):
        return []
    found = measure_sides(comparison, replace(term, name="frame.count"))
    if found is None:
        return []
    return [side for side, count in zip(SIDES, (found.base, found.new), strict=True) if not count]


def why_not_measured(comparison: Comparison, term: Term) -> str:
    """Say why ``term`` cannot be measured, and of which run, where not of all alike."""
    reasons = [
        (run.label, _why_not(run, scope, term))
        for run, scope in zip(comparison.sides.runs, comparison.scopes, strict=True)
        if _measured(run, scope, term) is None
    ]
    label, why = reasons[0]
    if len(reasons) == len(comparison.sides.runs) and len({why for _, why in reasons}) == 1:
        return why
    return f"{label}: {why}"


def _measured(run: Run, scope: Scope, term: Term) -> Quantity | None:
    try:
        return _measured_of_some(run, scope, term)
    except NoMatchError:
        return None


def _measured_of_some(run: Run, scope: Scope, term: Term) -> Quantity | None:
    """Do that; NoMatchError where filters leave nothing of the run."""
    if run.summary is not None:
        return measure_ranks(run, scope, term)
    if not isinstance(run, KeptRun):
        return measure(scope, term)
    if term.text is not None:
        return measure_named(scope, term, partial(_kept_durations, run))
    if scope.selection.where and not term.name.startswith(_OF_ALL_NAMES):
        return None  # It was measured of what was kept, before these filters.
    kept = run.part.quantities.get(term.name)
    return None if kept is None else Quantity(kept.value, kept.unit, kept.whole)


def _kept_durations(run: KeptRun, scope: Scope, groups: Bool) -> Durations | None:
    return None if scope.tree.parts else kept_durations(run.part, groups)


def _why_not(run: Run, scope: Scope, term: Term) -> str:
    """Why `_measured` finds nothing."""
    try:
        _measured_of_some(run, scope, term)
    except NoMatchError:
        return "nothing of it is compared"
    if run.summary is not None:
        return "a summary of ranks does not tell it"
    if not isinstance(run, KeptRun):
        return why_unknown(scope, term)
    if term.name.startswith("phase."):
        return why_no_phase(scope.profile)
    if term.text is None:
        if scope.selection.where and not term.name.startswith(_OF_ALL_NAMES):
            return "a kept base has it of all names alone: compare without filters"
        return "the base was kept without it: its trace does not tell, or an older flame kept it"
    if run.part.durations is None:
        return "an older flame kept the base, without how long activities took: keep it again"
    return "how long activities took was kept of the heaviest frames alone"


def durations_of_sides(comparison: Comparison, term: Term) -> tuple[Durations, Durations] | None:
    """Collect how long the activities took that ``term`` names, of all runs of each side."""
    sides: dict[int, Durations] = {}
    for run, scope, side in zip(
        comparison.sides.runs, comparison.scopes, comparison.sides.side_of_run, strict=True
    ):
        work = None if run.summary is not None else named_work(scope, term)
        if work is None:
            return None
        of = partial(_kept_durations, run) if isinstance(run, KeptRun) else recorded_durations
        if (found := of(scope, work.groups)) is None:
            return None
        sides[side] = sides[side].joined(found) if side in sides else found
    return sides[BASE], sides[NEW]


def _scaled(comparison: Comparison, values: F8, divisor: F8) -> tuple[float, float]:
    """Sum up the ``values`` of the runs of each side, and divide them."""
    sides = np.array(comparison.sides.side_of_run)
    base, new = (
        float(values[sides == side].sum() / divisor[sides == side].sum()) for side in (BASE, NEW)
    )
    return base, new


def _divisor(comparison: Comparison, term: Term) -> F8:
    """What each run's value is divided by: 1 of what does not add up, f8[runs]."""
    divisor = np.array(comparison.basis.divisor)
    return divisor if adds_up(term) else np.ones(len(divisor))


def _one_sided(comparison: Comparison, term: Term) -> SideValues:
    """Count the frames that are on one side only, and whose change counts."""
    changes, tree = comparison.changes, comparison.union.tree
    marked = changes.is_new if term.name == "new" else changes.is_gone
    used = unique(tree.frame[marked & comparison.counting])
    pattern = compile_expression(term.text or "")
    number = float(len(matching_frames(tree.frames, tree.text, used, pattern)))
    return SideValues(0.0, number, "count", None, ())
