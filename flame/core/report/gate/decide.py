"""Decide a condition on a report: it holds, it does not, or the trace cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flame.core.errors import UsageError
from flame.core.report.gate.condition import (
    Any,
    Condition,
    Not,
    Operator,
    Term,
    parse_condition,
    terms_of,
)
from flame.core.report.gate.quantities import check_name, measure
from flame.core.report.gate.quantity import Quantity
from flame.core.report.gate.unknown import why_unknown
from flame.core.report.scope import Scope
from flame.core.report.table import CONTRACT

COMPARE: dict[Operator, Callable[[float, float], bool]] = {
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
}
_WRITTEN = {
    "ns": "a time, with ns, us, ms or s",
    "count": "a number without a unit",
    "percent": "a number or a share",
    "bytes": "a size, with kB, MB or GB",
}


class Decision(NamedTuple):
    """Hold what became of a condition: ``holds`` is None where that cannot be decided.

    ``values`` are what its terms were measured as, by name; None where the trace cannot tell, and
    ``unknown`` says why.
    """

    holds: bool | None
    values: dict[str, float | None]
    unknown: dict[str, str]

    @property
    def undecided(self) -> dict[str, str]:
        """What could not be measured, with the reasons, where the condition cannot be decided."""
        return self.unknown if self.holds is None else {}


def read_condition(text: str) -> Condition:
    """Parse a condition on a report; UsageError where it is none, or names what there is not."""
    condition = parse_condition(text)
    for term in terms_of(condition):
        check_name(term)
        if term.limit.change:
            raise UsageError(
                f"--fail-on: {term.name} at {term.place + 1} is compared with a change, and a "
                "report has no base: write a value without a sign"
            )
    return condition


def decide(scope: Scope, condition: Condition) -> Decision:
    """Decide ``condition``; UsageError where it compares with a wrong unit."""
    found = {term: _decided(scope, term) for term in terms_of(condition)}
    values = {spelled(term): value for term, (_, value) in found.items()}
    outcome = holds(condition, {term: is_so for term, (is_so, _) in found.items()})
    unknown = {
        spelled(term): why_unknown(scope, term)
        for term, (is_so, _) in found.items()
        if is_so is None
    }
    return Decision(outcome, values, unknown)


def spelled(term: Term) -> str:
    """Write what a term names, as in a condition."""
    if term.text is None:
        return term.name
    name, point, part = term.name.partition(".")
    return f'{name}("{term.text}"){point}{part}'


def _decided(scope: Scope, term: Term) -> tuple[bool | None, float | None]:
    """(whether the term holds, its value)."""
    found = measure(scope, term)
    if found is None:
        return None, None
    return COMPARE[term.operator](found.value, limit_of(term, found)), found.value


def limit_of(term: Term, quantity: Quantity) -> float:
    """Find the limit of ``term`` in the unit of what was measured.

    Nothing has none. Raises UsageError where it is written in another one.
    """
    limit = term.limit
    if not limit.value and limit.kind == "count":
        return 0.0
    if limit.kind == "percent" and quantity.whole is not None:
        return limit.value * quantity.whole / 100
    if limit.kind != quantity.unit and not (quantity.unit == "percent" and limit.kind == "count"):
        wanted = _WRITTEN[quantity.unit] + (", or a share" if quantity.whole is not None else "")
        wanted += ", or a part of the base in %" if limit.change else ""
        raise UsageError(f"--fail-on: {term.name} at {term.place + 1} is compared with {wanted}")
    return limit.value


def holds(condition: Condition, terms: dict[Term, bool | None]) -> bool | None:
    """Combine what ``terms`` are; None, which cannot be decided, counts where it matters."""
    if isinstance(condition, Term):
        return terms[condition]
    if isinstance(condition, Not):
        inner = holds(condition.inner, terms)
        return None if inner is None else not inner
    parts = [holds(part, terms) for part in condition.parts]
    deciding = isinstance(condition, Any)
    if deciding in parts:
        return deciding
    return None if None in parts else not deciding


def as_facts(text: str, decision: Decision) -> dict[str, object]:
    """Put a decision into JSON's terms: the last line that a script reads."""
    return {
        "flame_report": CONTRACT,
        "condition": text,
        "result": decision.holds,
        "undecided": decision.undecided,
        "values": decision.values,
    }
