"""Why a warp did not go on: the stall reasons of PC samples, by the names that tools give them."""

from __future__ import annotations

from typing import NamedTuple


class Stall(NamedTuple):
    """A stall reason. ``key`` is one for all spellings, ``title`` is what it is shown as.

    ``meaning`` says in one line what the warp waited for, empty for a reason not known here.
    """

    key: str
    title: str
    meaning: str = ""


def stall_of(name: str) -> Stall:
    """The reason that a tool calls ``name``.

    CUPTI writes ``smsp__pcsamp_warps_issue_stalled_long_scoreboard``, the source page of Nsight
    Compute ``stall_long_sb``.
    """
    key = name.removeprefix("smsp__pcsamp_warps_issue_stalled_").removeprefix("stall_")
    return Stall(key, key.replace("_", " "))


def is_not_issued(name: str) -> bool:
    """Whether ``name`` counts samples in cycles in which the scheduler issued no warp at all.

    These are a part of those without the ending, and must not be added to them.
    """
    return name.endswith(("_not_issued", " (Not Issued)"))
