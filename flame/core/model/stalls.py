"""Name the stall reasons of PC samples (why a warp did not go on), however tools spell them.

What they mean is in NVIDIA's Kernel Profiling Guide, chapter "Warp Stall Reasons". Which of them
there are depends on the GPU: gmma and warpgroup_arrive are of Hopper, tex_throttle of older GPUs.
"""

from __future__ import annotations

from typing import NamedTuple


class Stall(NamedTuple):
    """Describe a stall reason: ``key`` is the same for all spellings, ``title`` is for display.

    ``meaning`` says in one line what the warp waited for, empty for a reason not known here.
    """

    key: str
    title: str
    meaning: str = ""


UNKNOWN = "unknown"
"""Key for samples that are counted, but under no reason."""

STALLS = (
    Stall("barrier", "Barrier", "the other warps of its block to reach the barrier"),
    Stall("branch_resolving", "Branch Resolving", "the target of a branch to be worked out"),
    Stall("dispatch", "Dispatch Stall", "the dispatcher, which held a ready instruction back"),
    Stall("drain", "Drain", "its stores to reach memory, after its last instruction"),
    Stall("gmma", "GMMA", "matrix multiplications of its warpgroup"),
    Stall("imc_miss", "IMC Miss", "a constant that was not in the immediate constant cache"),
    Stall("lg_throttle", "LG Throttle", "room in the queue for local and global memory accesses"),
    Stall("long_scoreboard", "Long Scoreboard", "data from global, local or texture memory"),
    Stall("math_pipe_throttle", "Math Pipe Throttle", "an execution pipe that others kept busy"),
    Stall("membar", "Membar", "a memory barrier: its earlier accesses to be done"),
    Stall("mio_throttle", "MIO Throttle", "room in the queue for shared memory and special math"),
    Stall("misc", "Misc", "the hardware, for another reason"),
    Stall("no_instructions", "No Instructions", "its next instruction to be fetched"),
    Stall("not_selected", "Not Selected", "its turn: it was ready, but another warp was chosen"),
    Stall("selected", "Selected", "nothing: it issued its instruction"),
    Stall("short_scoreboard", "Short Scoreboard", "data from shared memory or special math"),
    Stall("sleeping", "Sleeping", "the end of a sleep or yield of all its threads"),
    Stall("tex_throttle", "TEX Throttle", "room in the queue for texture accesses"),
    Stall("wait", "Wait", "a fixed number of cycles, until a result is there"),
    Stall("warpgroup_arrive", "Warpgroup Arrive", "the other warps of its warpgroup to arrive"),
    Stall(UNKNOWN, "[reason not recorded]", "the report counts these samples without a reason"),
)
"""All reasons known, from Volta to Blackwell; a meaning ends "the warp waited for …"."""

_BY_KEY = {stall.key: stall for stall in STALLS}

_SHORT = {
    "branch_resolve": "branch_resolving",
    "dispatch_stall": "dispatch",
    "imc": "imc_miss",
    "lg": "lg_throttle",
    "long_sb": "long_scoreboard",
    "math": "math_pipe_throttle",
    "mio": "mio_throttle",
    "no_inst": "no_instructions",
    "no_instruction": "no_instructions",
    "short_sb": "short_scoreboard",
    "sleep": "sleeping",
    "tex": "tex_throttle",
    "warpgroup_arrives": "warpgroup_arrive",
}
"""Other spellings: those of Nsight Compute's source page, and of CUPTI where versions differ."""

_PREFIXES = ("smsp__pcsamp_warps_issue_stalled_", "stall_")


def stall_of(name: str) -> Stall:
    """Look up the stall reason that a tool calls ``name``.

    CUPTI writes ``smsp__pcsamp_warps_issue_stalled_long_scoreboard``, the source page of Nsight
    Compute ``stall_long_sb``. A reason not known here is shown by its own name.
    """
    key = name.strip().lower()
    for prefix in _PREFIXES:
        key = key.removeprefix(prefix)
    key = _SHORT.get(key, key)
    return _BY_KEY.get(key) or Stall(key, key.replace("_", " ").title())


def is_reason(name: str) -> bool:
    """Tell whether a tool's column ``name`` counts samples of a stall reason, not-issued or all."""
    return name.startswith(_PREFIXES)


def is_not_issued(name: str) -> bool:
    """Tell whether ``name`` counts samples in cycles in which the scheduler issued no warp.

    They are a part of the samples counted under the name without this ending: never add both.
    """
    return name.endswith(("_not_issued", " (Not Issued)"))
