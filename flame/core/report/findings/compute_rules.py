"""Judge the time in which a GPU computed: slow kernels, uneven layers, routing, far from peaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from flame.core.columns import sum_by
from flame.core.efficiency.by_operator import rows_of_operator, work_by_operator
from flame.core.efficiency.verdict import BoundVerdict, judge
from flame.core.report.findings.caution import BY_NAMES
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import Abstained, Finding, FindingNumber
from flame.core.report.findings.layer_rules import uneven_layers
from flame.core.report.program.experts import PRODUCTS, ROUTING, measure_experts
from flame.core.report.sections.tails import kernel_tails
from flame.core.timeline.exposure import WorkClass, work_classes
from flame.core.units import format_counted, format_ns, format_percent

SCORE = 0.005
FEWEST = 100
"""Launches of a kernel in one configuration, of which a tail is told."""

FAR = 0.4
"""Part of its time that an operator needs at the peaks, up to which it is far from them.

Products and attention of libraries need 60 to 80 % as a rule, where they are not too small.
"""

HELD = 0.05
"""Part of the GPU's time that an operator has, from which on it is looked at."""

EXPERTS = 0.2
ROUTED = 0.1


def compute_rules(facts: RuleFacts) -> Iterator[Finding | Abstained | None]:
    """Apply the rules on compute to a GPU; they look at the same time, so one has a bound."""
    rules = (
        ("tail", _tail),
        ("uneven-layers", uneven_layers),
        ("routing", _routing),
        ("below-bound", _below_bound),
    )
    said = [rule(facts) for id, rule in rules if facts.tells(id)]
    found = [one for one in said if isinstance(one, Finding)]
    best = max(found, key=lambda one: one.bound or 0, default=None)
    for one in said:
        yield _of_same_time(one, best) if isinstance(one, Finding) and best else one


def _of_same_time(one: Finding, best: Finding) -> Finding:
    """The finding, without its bound where that of ``best`` is larger."""
    if one is best:
        return one
    evidence = tuple(each for each in one.evidence if each.name != "at most")
    claim = f"{one.claim}; it is a part of the same time as {best.id}"
    return replace(one, claim=claim, evidence=evidence, bound=None)


def _tail(facts: RuleFacts) -> Finding | Abstained | None:
    found, profile = kernel_tails(facts.scope), facts.scope.profile
    if not (found.configuration >= 0).any():
        return Abstained("tail", "launch configurations of kernels were not recorded")
    whole = int(facts.scope.weights.value.sum())
    often = found.tails.times.count >= FEWEST
    told = found.tail & often & (found.tails.excess >= SCORE * whole)
    slow = found.slow.where(told[found.slow.group])
    mine = profile.activities.device[slow.row] == facts.gpu.device
    slow = slow.where(mine & (work_classes(profile)[slow.row] == WorkClass.COMPUTE))
    if not len(slow.row):
        return None
    sums = sum_by(slow.group, slow.excess, len(told))
    worst, bound = int(np.argmax(sums)), min(int(sums.sum()), facts.budget.compute)
    rows = slow.row[slow.group == worst]
    usual, p99 = (int(one[worst]) for one in (found.tails.times.p50, found.tails.times.p99))
    name = facts.heaviest_name(rows)
    return facts.finding(
        "tail",
        "Rare launches of a kernel take far longer than equal ones",
        f"{facts.share(bound)} is what {format_counted(len(slow.row), 'launch', 'launches')} took "
        f"longer than half of their like; most of it in {name}: {format_ns(usual)} as a rule, "
        f"1 in 100 above {format_ns(p99)}",
        "of a kernel in one launch configuration, with 100 launches or more, 5 % at most take 1.5 "
        "times the median, the p99 does, and what they take longer is 0.5 % of GPU time or more",
        bound=bound,
        part="compute",
        evidence=(
            FindingNumber("slow launches", len(slow.row), "count"),
            FindingNumber(f"half of {name} take at most", usual, "ns"),
            FindingNumber(f"p99 of {name}", p99, "ns"),
        ),
        place=facts.heaviest(rows),
    )


def _routing(facts: RuleFacts) -> Finding | Abstained | None:
    found = measure_experts(facts.scope)
    if not found.time:
        return Abstained("routing", "no frame or kernel is called after experts")
    products, routing = (int(facts.computed[found.parts == part].sum()) for part in _EXPERT_PARTS)
    experts = products + routing
    if experts < EXPERTS * facts.gpu_time or routing < ROUTED * experts:
        return None
    rows = facts.computing
    of = found.parts[facts.scope.profile.activities.groups.of_row[rows]]
    bound = min(routing, facts.budget.compute)
    return facts.finding(
        "routing",
        "Choosing experts takes long beside their products",
        f"{format_ns(routing)} is routing of tokens to experts, "
        f"{format_percent(routing, experts)} of what runs for experts, which is "
        f"{format_percent(experts, facts.gpu_time)} of GPU time",
        "by names, work of experts is 20 % of GPU time or more, and routing 10 % of that or more",
        bound=bound,
        part="compute",
        evidence=(FindingNumber("experts", experts, "ns"), FindingNumber("routing", routing, "ns")),
        place=facts.heaviest(rows[of == ROUTING]),
        caution=BY_NAMES,
    )


_EXPERT_PARTS = (PRODUCTS, ROUTING)


def _below_bound(facts: RuleFacts) -> Finding | Abstained | None:
    """Tell which operators take far longer than they need at the peaks, as far as that is known."""
    profile = facts.scope.profile
    work = profile.work if profile.sized_operators else None
    if work is not None and not work.can_rate:
        return Abstained("below-bound", BoundVerdict.NO_PEAK.why)
    found = None if work is None else work_by_operator(profile, facts.computing)
    if found is None:
        return Abstained("below-bound", "no operator with shapes was recorded")
    counts, verdicts = found.counts, judge(found.counts)
    held = counts.covered_ns >= HELD * facts.gpu_time
    if not held.any():
        return None
    if not (held & (verdicts < BoundVerdict.UNCOVERED)).any():
        return Abstained("below-bound", BoundVerdict(int(verdicts[np.argmax(held)])).why)
    far = np.flatnonzero(held & (verdicts == BoundVerdict.NEITHER) & (counts.bound_share <= FAR))
    if not len(far):
        return None
    bound = min(int(counts.waste[far].sum()), facts.budget.compute)
    worst = int(far[np.argmax(counts.waste[far])])
    name, time = found.frames[worst].name, int(counts.rated_ns[worst])
    needed = int(counts.bound_ps[worst]) // 1000
    return facts.finding(
        "below-bound",
        "Operators take far longer than the GPU needs for them",
        f"{facts.share(bound)} is what {format_counted(len(far), 'operator', 'operators')} took "
        f"above what FLOPs and bytes take at the peaks; most of it {name}: "
        f"{format_percent(needed, time)} of {format_ns(time)} would do",
        "an operator whose work is known has 5 % of GPU time or more, its kernels take 10 µs or "
        "more in the mean, and at the peaks they would need 40 % of their time or less",
        bound=bound,
        part="compute",
        evidence=(
            FindingNumber("operators", len(far), "count"),
            FindingNumber(f"{name} takes", time, "ns"),
            FindingNumber(f"{name} needs at the peaks", needed, "ns"),
        ),
        place=facts.heaviest(rows_of_operator(profile, facts.computing, name)),
        caution="peaks are those of data sheets, at full clocks and power",
    )
