"""Hold what is listed of a kernel: of the one side that a trace is, or of each side compared."""

from __future__ import annotations

from typing import NamedTuple

from flame.tui.sampling.subject import Spot, Subject


class ListedSide(NamedTuple):
    """Name the kernel of a side, and the instruction to begin with.

    ``report`` says whose samples these are, where that is a report of Nsight Compute; ``name`` is
    that of a side of a comparison.
    """

    subject: Subject
    spot: Spot
    report: str = ""
    name: str = ""
