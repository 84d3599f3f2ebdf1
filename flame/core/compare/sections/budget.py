"""Tell how the budget of the GPUs changed: what part of their time moved."""

from __future__ import annotations

from collections import Counter

from flame.core.compare.basis import Basis
from flame.core.compare.comparison import Comparison
from flame.core.compare.sections.cells import change_columns, change_percent, plain
from flame.core.compare.sides import BASE, NEW, KeptRun, Run
from flame.core.report.labels import PART_NAMES
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.report.table import Section, Table, TableColumn, Value

NAME, TITLE = "budget", "Where the time of the GPUs went, on both sides"

_COLUMNS = (TableColumn("part", "part"), *change_columns("ns", "ns_change", "_ns"))
_NOTHING = "a side has no GPU activity with times"
_NO_TIMES = "a summary of ranks has sums and no times: compare files of single ranks"
_WINDOW = "all"
_PARTS = (_WINDOW, *PART_NAMES)


def budget_section(comparison: Comparison) -> Section:
    """Tell the budgets of both sides, added up over GPUs and runs, on the basis of time."""
    of_runs = [
        run_budget(run, scope)
        for run, scope in zip(comparison.sides.runs, comparison.scopes, strict=True)
    ]
    if not all(of_runs):
        summed = comparison.sides.has_summary
        return Section(NAME, TITLE, why=_NO_TIMES if summed else _NOTHING)
    first = len(comparison.sides.base)
    sides = [sum(found, Counter[str]()) for found in (of_runs[:first], of_runs[first:])]
    basis = comparison.basis
    divisor = [_divisor(basis, comparison.sides.side_of_run, side) for side in (BASE, NEW)]
    names = [name for name in _PARTS if any(name in side for side in sides)]
    rows = [
        _row(name, *(one[name] / by for one, by in zip(sides, divisor, strict=True)))
        for name in names
    ]
    return Section(
        NAME,
        TITLE,
        facts={"check": [_left(one) for one in sides]},
        tables=(Table.of("parts", "", _COLUMNS, rows, whole=True),),
    )


def run_budget(run: Run, scope: Scope) -> Counter[str]:
    """Add up the budgets of the GPUs of ``run`` by part, ns, and all of them; empty without any."""
    if isinstance(run, KeptRun):
        return Counter(run.part.budget)
    sums = Counter[str]()
    for budget in () if run.profile.resolved else budgets(scope):
        sums[_WINDOW] += budget.window
        sums.update(dict(budget.parts))
    return sums


def _left(sums: Counter[str]) -> int:
    """What the parts lack of the window: 0."""
    return 2 * sums[_WINDOW] - sums.total()


def _divisor(basis: Basis, sides: tuple[int, ...], side: int) -> float:
    """What times of a side are divided by; a mean of an activity or a share has no budget."""
    return sum(by for by, of in zip(basis.divisor, sides, strict=True) if of == side)


def _row(name: str, base: float, new: float) -> tuple[Value, ...]:
    delta = new - base
    return name, plain(base), plain(new), plain(delta), change_percent(delta, base)
