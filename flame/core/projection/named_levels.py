"""Name the arrangements of levels that are worth a key: one table for options, dialog and docs."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from flame.core.errors import UsageError
from flame.core.model.metrics import NO_SAMPLES, Metric
from flame.core.model.profile import Profile
from flame.core.nearest import did_you_mean
from flame.core.projection.chosen_metric import why_no_waits
from flame.core.projection.levels import SAMPLE_LEVELS, WAIT_LEVEL, recorded_levels
from flame.core.projection.selection import Selection


class NamedLevels(NamedTuple):
    """Call ``levels`` by a name; None: those that the metric usually has.

    ``fold`` shows layers and modules without their numbers. It needs frames of any of the levels
    ``needs``.
    """

    name: str
    levels: tuple[str, ...] | None
    about: str
    needs: tuple[str, ...] = ()
    fold: bool = False


NAMED_LEVELS = (
    NamedLevels("unified", None, "Python frames, launch, ranges, kernel: the usual"),
    NamedLevels(
        "nested",
        ("nested", "launch", "kernel"),
        "functions, ranges as nested in time; launch, kernel",
        ("nested",),
    ),
    NamedLevels(
        "modules", ("module", "kernel"), "modules, numbers folded; kernels", ("module",), True
    ),
    NamedLevels(
        "layers", ("nvtx", "kernel"), "ranges or operators, layers folded; kernels", ("nvtx",), True
    ),
    NamedLevels("kernels", ("kernel",), "kernels alone", ("kernel",)),
    NamedLevels(
        "functions",
        ("python", "native", "kernel"),
        "Python and native functions; kernels",
        ("python", "native"),
    ),
    NamedLevels("shapes", ("shapes", "kernel"), "tensor shapes; kernels", ("shapes",)),
    NamedLevels("streams", ("device", "stream", "kernel"), "GPUs, streams; kernels", ("stream",)),
    NamedLevels(
        "stalls", ("stall", "nvtx", "kernel"), "stall reasons; ranges, kernels", ("stall",)
    ),
    NamedLevels(
        "instructions", ("kernel", "sass", "stall"), "kernels, instructions, stalls", ("sass",)
    ),
    NamedLevels(
        "phases", ("phase", "kernel"), "prefill, decode, or what work was for; kernels", ("phase",)
    ),
)
"""In the order of `ARRANGEMENT_KEYS`."""

ARRANGEMENT_KEYS = "1234567890p"
"""The keys of the arrangements in their dialog."""


NO_MODULES = "no modules: with_stack=True (PyTorch) records some"


def explain_missing_levels(profile: Profile, metric: Metric, levels: tuple[str, ...]) -> str:
    """Say that the trace lacks ``levels``, and how to get them; empty where it has frames.

    Of an arrangement it must have what that needs.
    """
    if profile.sampling is None and not profile.resolved and set(SAMPLE_LEVELS) & set(levels):
        return NO_SAMPLES
    if WAIT_LEVEL in levels and (why := why_no_waits(profile)):
        return f"level {WAIT_LEVEL}: {why}"
    named = (one.needs for one in NAMED_LEVELS if one.levels == levels)
    wanted = next(named, levels)
    if recorded_levels(profile, metric, wanted):
        return ""
    return (
        NO_MODULES if wanted == ("module",) else f"this trace has no frames of {', '.join(wanted)}"
    )


def levels_called(name: str) -> NamedLevels:
    """Return what is called ``name``; UsageError if nothing is."""
    found = next((named for named in NAMED_LEVELS if named.name == name), None)
    if found is None:
        choices = ", ".join(named.name for named in NAMED_LEVELS)
        meant = did_you_mean(name, (named.name for named in NAMED_LEVELS))
        raise UsageError(f"--arrange: unknown arrangement '{name}': choose from {choices}{meant}")
    return found


def name_of(levels: tuple[str, ...] | None, fold: bool) -> str | None:
    """Return the name of ``levels``, folded or not, if they have one."""
    same = (named.name for named in NAMED_LEVELS if (named.levels, named.fold) == (levels, fold))
    return next(same, None)


def arrange(selection: Selection, named: NamedLevels) -> Selection:
    """Show ``named`` levels in place of those of ``selection``."""
    naming = replace(selection.naming, fold=named.fold)
    return replace(selection, levels=named.levels, naming=naming)
