"""Keep of runs what comparing with them needs: sums of groups, iterations, budgets, findings."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, order_by, sum_by, unique, unique_rows
from flame.core.compare.basis import FEWEST_STEPS, periods_of, seconds_of, steady_steps
from flame.core.compare.comparable import facts_of_run, held_by_profiler, recorded_by, warnings_of_loss
from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.kept.base_file import (
    KeptFacts,
    KeptFinding,
    KeptFrame,
    KeptGroups,
    KeptPart,
    KeptQuantity,
    KeptRunData,
    KeptSteps,
)
from flame.core.compare.sides import Run, Sides
from flame.core.errors import UsageError
from flame.core.model.activities import NONE
from flame.core.model.profile import Profile
from flame.core.projection.selection import Selection
from flame.core.report.findings.findings import find
from flame.core.report.gate.quantities import QUANTITIES
from flame.core.report.sections.budget import budgets

_STACKS = ("python", "native", "nvtx")
_FRAMES = ("launch", "frame")
_MOST_SUMS = 100_000
"""Sums by iteration that are kept: of the heaviest groups."""

_NOT_KEPT = ("mangled",)
"""What is known of frames, and of no use to a comparison."""


def keep_run(run: Run, selection: Selection) -> KeptRunData:
    """Collect what is kept of ``run``; UsageError where it has no GPU activities.

    ``selection`` says how frames are named, and what of the run is chosen.
    """
    profile = run.profile
    if profile.resolved or profile.totals is not None or not len(profile.activities):
        raise UsageError(f"{run.label}: has no GPU activities to keep a base of")
    ...
