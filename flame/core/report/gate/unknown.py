"""Say why a trace cannot tell what a condition names."""

from __future__ import annotations

from flame.core.model.profile import Profile
from flame.core.report.gate.condition import Term
from flame.core.report.gate.named import known_phases, named_work
from flame.core.report.scope import Scope

_OTHERWISE = "the trace does not tell"

_WHY = {
    "step": "no iterations: name a range by --iteration",
    "bytes": "the trace does not have the sizes of all copies",
    "memory": "no memory snapshot, or one that does not tell",
    "peak_memory": "the trace does not have how much memory was in use",
    "findings": "nothing in the trace is judged",
}
"""By the first part of a quantity's name."""


def why_unknown(scope: Scope, term: Term) -> str:
    """Say in a few words why `measure` found nothing of ``term``."""
    first = term.name.partition(".")[0]
    if scope.profile.resolved and first not in ("memory", "peak_memory"):
        return "there are no activities with times"
    if first in ("syncs", "allocs"):
        return scope.lacks_calls or _OTHERWISE
    if first == "phase":
        return why_no_phase(scope.profile)
    if first == "frame":
        found = named_work(scope, term)
        none = found is None or not found.activities
        return "no frame has such a name" if none else "instructions have no durations"
    return _WHY.get(first, _OTHERWISE)


def why_no_phase(profile: Profile) -> str:
    """Say which phases there are, where none is called as asked for."""
    phases = ", ".join(known_phases(profile))
    return f"no phase is called so; there are {phases}" if phases else "there are no phases"
