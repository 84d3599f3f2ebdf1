"""Say what a finding does not know for sure."""

from __future__ import annotations

import numpy as np

from flame.core.report.findings.facts import RuleFacts
from flame.core.report.measures.launching_calls import early_rows
from flame.core.report.scope import Scope
from flame.core.units import format_counted, format_ns, format_percent

BY_NAMES = "told by the names of kernels and ranges alone"

EARLY = 0.01
"""From which part of the launched kernels on it is told that they begin before their launch."""


def of_launches(facts: RuleFacts) -> str:
    """Say what is not known of who launched what, and when."""
    return "; ".join(filter(None, (_unknown(facts), _left_out(facts), _early(facts))))


def _unknown(facts: RuleFacts) -> str:
    known = facts.launches_known
    part = format_percent(known, 1)
    return f"launches of {part} of the kernels were recorded" if known < 1 else ""


def _left_out(facts: RuleFacts) -> str:
    reason = facts.scope.lacks_calls
    return f"{reason}: other calls count as the host's own code" if reason else ""


def _early(facts: RuleFacts) -> str:
    """How many kernels begin before their launch: pauses are wrong by as much."""
    table, rows = facts.scope.profile.activities, facts.kernels
    if not len(early_rows(facts.scope.profile)):
        return ""
    before = (table.launch_start[rows] - table.start[rows])[table.launched[rows]]
    early = before[before > 0]
    if len(early) < max(EARLY * len(before), 1):
        return ""
    kernels = format_counted(len(early), "kernel begins", "kernels begin")
    return (
        f"{kernels} before the launch, by up to {format_ns(int(early.max()))}: "
        "the clocks of host and GPU differ"
    )


def of_iterations(scope: Scope) -> str:
    """Say what was taken for iterations, where that is told by names."""
    found, frames = scope.profile.iterations, scope.profile.frames
    if found.source != "ranges" or not len(found):
        return ""
    first = frames[int(found.frame[int(np.argmin(found.start))])].name
    return f"iterations are taken to be the ranges such as {first}: --iteration names others"
