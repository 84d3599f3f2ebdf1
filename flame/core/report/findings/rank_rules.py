"""Judge communication: what nothing hides, and the rank for which the others wait."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.columns import sum_by
from flame.core.model.activities import has_times
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import Abstained, Finding, FindingNumber
from flame.core.report.parties.communication import (
    MatchedCommunication,
    communication_of_ranks,
)
from flame.core.report.table import Place
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.exposure import WorkClass, class_times, work_classes
from flame.core.units import format_count, format_ns, format_percent

EXPOSED = 0.05
"""More exposed communication than a tenth is a known sign of trouble; half of that is told."""

WAITED = 0.05
LAST = 0.5
OPERATIONS = 20

IMBALANCE = 0.15


def rank_rules(facts: RuleFacts) -> Iterator[Finding | Abstained | None]:
    """Apply the rules on communication to a GPU."""
    late = None
    if facts.budget.exposed_communication:
        if facts.tells("late-rank"):
            late = _late_rank(facts)
            yield late
        yield _exposed(facts, late.bound or 0 if isinstance(late, Finding) else 0)
    if facts.tells("imbalance"):
        yield _imbalance(facts)


def _exposed(facts: RuleFacts, waited: int) -> Finding | None:
    """What nothing hides, without what is told as waiting for a rank."""
    bound = facts.budget.exposed_communication - waited
    if bound < EXPOSED * facts.window:
        return None
    table, classes = facts.scope.profile.activities, work_classes(facts.scope.profile)
    rows = facts.rows[classes[facts.rows] == WorkClass.COMMUNICATION]
    name = facts.heaviest_name(rows)
    inside = facts.launched_in(rows)
    mostly = f", mostly {name}{f' in {inside}' if inside else ''}," if name else ""
    return facts.finding(
        "comm-exposed",
        "Communication is not hidden behind compute",
        f"{facts.share(bound)} passed with communication{mostly} and nothing that computes",
        "communication kernels alone on the GPU are 5 % of the window or more",
        bound=bound,
        part="communication, exposed",
        evidence=(
            FindingNumber("kernels of communication", len(rows), "count"),
            FindingNumber("their sum", int(table.duration[rows].sum()), "ns"),
        ),
        place=facts.heaviest(rows),
    )


def _late_rank(facts: RuleFacts) -> Finding | Abstained | None:
    """Tell the rank that comes last, on the GPUs of the others."""
    found = communication_of_ranks(facts.scope)
    matched, number = found.matched, int(found.matched.matched.max(initial=0))
    if found.rows.ranks < 2:
        return None
    if not number:
        return Abstained("late-rank", "collectives do not match over ranks")
    if matched.last is None:
        return Abstained("late-rank", "the clocks of the ranks differ")
    late = int(np.argmax(matched.last))
    times, operations = int(matched.last[late]), int(matched.matched[late])
    if operations < OPERATIONS or times < LAST * operations:
        return None
    bound, longest = _exposed_waits(facts, found, late)
    if bound < WAITED * facts.window:
        return None
    return facts.finding(
        "late-rank",
        "The other ranks wait for one that comes late",
        f"{facts.share(bound)} passed waiting in collectives for others, with nothing that "
        f"computes; {found.labels[late]} came last {format_count(times)} times of "
        f"{format_count(operations)}",
        "of 20 operations or more that match over ranks one rank is the last to begin in half of "
        "them or more, and what others wait, with nothing that computes, is 5 % of the window or "
        "more",
        bound=bound,
        part="communication, exposed",
        evidence=(
            FindingNumber(f"{found.labels[late]} came last", times, "count"),
            FindingNumber("operations", operations, "count"),
        ),
        place=longest,
    )


def _exposed_waits(
    facts: RuleFacts, found: MatchedCommunication, late: int
) -> tuple[int, Place | None]:
    """How long the GPU waited in collectives for others and computed nothing, ns; the longest.

    What a kernel takes longer than that of the last rank it waits first.
    """
    table, matched = facts.scope.profile.activities, found.matched
    own = int(found.rows.devices[late]), int(found.rows.processes[late])
    rows, waits = matched.rows, matched.waits
    others = (table.device[rows] != own[0]) | (table.process[rows] != own[1])
    mine = others & (table.device[rows] == facts.gpu.device) & has_times(table)[rows]
    start, wait = table.start[rows[mine]], waits[mine]
    waiting = BusyTime.union(start, start + wait)
    compute = class_times(facts.scope.profile, facts.gpu.device).compute
    both = BusyTime.union(
        np.concatenate([compute.low, waiting.low]), np.concatenate([compute.high, waiting.high])
    )
    exposed = both.within_all(facts.gpu.windows) - compute.within_all(facts.gpu.windows)
    if not exposed:
        return 0, None
    most = int(np.argmax(wait))
    return exposed, Place(window=(int(start[most]), int(start[most] + wait[most])))


def _imbalance(facts: RuleFacts) -> Finding | None:
    """Tell that ranks communicate for different times, where nobody knows who came late."""
    found = communication_of_ranks(facts.scope)
    if found.rows.ranks < 2 or found.matched.last is not None:
        return None
    table, rows = facts.scope.profile.activities, found.rows.row
    total = sum_by(found.rows.rank, table.duration[rows], found.rows.ranks)
    most, least = int(total.max()), int(total.min())
    mine = found.rows.devices == facts.gpu.device
    if most - least <= IMBALANCE * most or not mine[np.argmax(total)]:
        return None
    label, other = found.labels[int(np.argmax(total))], found.labels[int(np.argmin(total))]
    return facts.information(
        "imbalance",
        "Ranks communicate for very different times",
        f"{label} {format_ns(most)} in all, {other} {format_ns(least)}: "
        f"{format_percent(most - least, most)} less; who communicates least may be the one that "
        "the others wait for",
        "the clocks of the ranks differ, and the rank that communicates least does so 15 % less "
        "than the one that does most",
        (FindingNumber("most", most, "ns"), FindingNumber("least", least, "ns")),
    )
