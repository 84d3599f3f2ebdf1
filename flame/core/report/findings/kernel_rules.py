"""Tell what of the kernels is worth a look: one that takes most, many small ones, experts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.analysis.distribution import distribution
from flame.core.columns import Column, unique
from flame.core.model.frames import Kind
from flame.core.names.kernel_category import ELEMENTWISE
from flame.core.report.findings.caution import BY_NAMES
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import Finding, FindingNumber
from flame.core.report.program.experts import measure_experts
from flame.core.timeline.busy_time import BusyTime
from flame.core.units import format_counted, format_ns, format_percent

MOST_OF_COMPUTE = 0.5
COMPUTES = 0.5
SMALL = 10_000
"""Half of the kernels take less, ns, where these are called small."""

SMALL_SHARE = 0.15
FEWEST = 100


def kernel_rules(facts: RuleFacts) -> Iterator[Finding | None]:
    """Apply the rules on kernels to a GPU."""
    yield _one_kernel(facts)
    yield _small_kernels(facts)


def _one_kernel(facts: RuleFacts) -> Finding | None:
    compute, profile = facts.budget.compute, facts.scope.profile
    rows = facts.computing[profile.activities.kind[facts.computing] == Kind.KERNEL]
    name = facts.heaviest_name(rows)
    if not name or compute < COMPUTES * facts.window:
        return None
    table, labels = profile.activities, facts.scope.labels
    shown = labels.shown[table.frame[rows]]
    rows = rows[shown == _place_of(labels.text, shown, name)]
    when = BusyTime.union(table.start[rows], table.start[rows] + table.duration[rows])
    time = when.within_all(facts.gpu.windows)
    if time < MOST_OF_COMPUTE * compute:
        return None
    return facts.information(
        "one-kernel",
        "One kernel takes most of the compute",
        f"{name} ran for {facts.share(time)}, {format_percent(time, compute)} of all compute, in "
        f"{format_counted(len(rows), 'launch', 'launches')}",
        "a kernel is half of the compute or more, and that half of the window or more",
        (
            FindingNumber("time of the kernel", time, "ns"),
            FindingNumber("launches", len(rows), "count"),
        ),
        facts.heaviest(rows),
    )


def _place_of(text: Sequence[str], shown: Column, name: str) -> int:
    """The frame of ``name`` among those that are shown."""
    return next(int(frame) for frame in unique(shown).tolist() if text[frame] == name)


def _small_kernels(facts: RuleFacts) -> Finding | None:
    profile, rows = facts.scope.profile, facts.computing
    table, category = profile.activities, profile.grouping.category
    names = [profile.frames[at].name for at in category.tolist()]
    pointwise = np.array([name == ELEMENTWISE for name in names], bool)
    rows = rows[(table.kind[rows] == Kind.KERNEL) & pointwise[table.frame[rows]]]
    times = distribution(table.duration[rows])
    if times is None or times.count < FEWEST or times.p50 >= SMALL:
        return None
    if times.total < SMALL_SHARE * facts.budget.compute:
        return None
    return facts.information(
        "small-kernels",
        "Many small elementwise kernels",
        f"{format_counted(times.count, 'kernel', 'kernels')} that are elementwise by their names "
        f"take {format_ns(times.total)}, {format_percent(times.total, facts.budget.compute)} of "
        f"compute; half of them less than {format_ns(times.p50 + 1)}",
        "100 elementwise kernels or more are 15 % of compute or more, and half of them take less "
        "than 10 µs",
        (
            FindingNumber("kernels", times.count, "count"),
            FindingNumber("their sum", times.total, "ns"),
        ),
        facts.heaviest(rows),
        caution=BY_NAMES,
    )


def many_experts_kernels(facts: RuleFacts) -> Finding | None:
    """Tell how many kernels run for experts, where launches bound."""
    found = measure_experts(facts.scope)
    if found.per_layer is None:
        return None
    return facts.information(
        "many-experts-kernels",
        "Experts run as many kernels",
        f"an iteration runs {found.per_layer:g} kernels for experts in each layer, while launches "
        "bound the GPU",
        "launch-bound is told, and kernels of experts, layers and iterations are known by names",
        (FindingNumber("kernels of a layer and iteration", found.per_layer, "ratio"),),
        caution=BY_NAMES,
    )
