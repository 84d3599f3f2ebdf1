"""Name things on screen, after the kind of trace that a profile was read from."""

from __future__ import annotations

from functools import lru_cache

from flame.core.analysis.words.formats import NVTX, Terms, reworded
from flame.core.model.frames import PART_KINDS, Frame
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree

CAPTURED = "↻"
"""Before the name of a range that was open when a CUDA graph was captured."""


def lasts(metric: Metric) -> bool:
    """Tell whether ``metric`` is a time of single activities, which can be counted and compared."""
    return metric.unit == "ns" and metric.noun == "activities"


def counts(tree: StackTree, node: int) -> bool:
    """Tell whether the number of activities means something at ``node``: also not below parts."""
    return lasts(tree.metric) and not any(
        tree.kind(above) in PART_KINDS for above in tree.path(node)
    )


NO_SAMPLES = "no PC samples: --ncu, or --pc of record and attach"


@lru_cache(1)
def whole_of(profile: Profile) -> int:
    """Sum the first metric of ``profile``: GPU time, or what a file measures first."""
    return int(profile.totals_by_group(profile.metrics[0])[0].sum())


def level_about(level: str, terms: Terms) -> str:
    """Explain what the frames of ``level`` are."""
    if level == "nvtx":
        return f"{terms.ranges} open at the launch" + ("" if terms is NVTX else ": --levels nvtx")
    return reworded(_LEVELS[level], terms)


_LEVELS = {
    "rank": "the file it was read from, or its rank",
    "process": "the process that launched it",
    "thread": "the thread that launched it",
    "device": "the GPU it ran on",
    "stream": "the stream it ran on",
    "pool": "the pool of an allocator: of memory alone",
    "phase": "prefill, decode, --phases; else categories",
    "stack": "the stack, as the file has it",
    "nested": "Python frames and ranges, as nested in time",
    "module": "nn.Modules, or modules that ranges are named after",
    "python": "Python frames of the launch",
    "native": "C and C++ frames of the launch",
    "launch": "the API call that launched it",
    "shapes": "tensor shapes of the innermost range",
    "category": "what kernels compute: matrix products, …",
    "cause": "why the GPU was idle: metric waiting",
    "kernel": "kernel, copy, memset or graph",
    "sass": "instruction of the kernel, by PC samples",
    "stall": "what a warp waited for there",
    "wait": "waiting for other ranks, transfer: of a summary",
}


def mark_of(frame: Frame) -> str:
    """Return the sign before the name of ``frame``, mostly none."""
    return CAPTURED if frame.get("captured") else ""
