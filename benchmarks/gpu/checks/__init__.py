"""All checks, in the order in which they run; each module is about something else."""

from benchmarks.gpu.check import Check
from benchmarks.gpu.checks import cost, cupti, ends, memory, others, recorded, sampled

CHECKS: tuple[Check, ...] = tuple(
    sorted(
        (
            *cupti.CHECKS,
            *recorded.CHECKS,
            *memory.CHECKS,
            *sampled.CHECKS,
            *ends.CHECKS,
            *cost.CHECKS,
            *others.CHECKS,
        ),
        key=lambda check: check.run,
    )
)
