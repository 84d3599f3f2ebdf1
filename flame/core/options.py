"""Define the options of loading a trace, and how a load reports progress."""

from __future__ import annotations

from collections.abc import Callable

from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass

Progress = Callable[[str, int, int], None]
"""Called as (stage, done, expected); expected 0 is unknown. May raise CancelledError to stop.

Readers count the rows or bytes of the stage. What `flame.load` calls is told one count for all
stages, which only grows (`flame.core.load_progress`).
"""

NVTX_NAMES = ("clean", "raw")


@dataclass(frozen=True)
class LoadOptions:
    """Choose how to read a trace.

    ``nvtx_names``: ``clean`` (volatile ids removed) or ``raw``. ``nvtx_start_end``: start/end
    ranges too. ``forward``: work of a backward pass below the forward operator that caused it.
    ``ncu``: reports of Nsight Compute, or their source pages as CSV, with PC samples of kernels.
    ``phases``: a file that names phases, which the level ``phase`` then has. ``launches``: read how
    activities were launched with them, which else is read when somebody asks for it. ``peak``,
    ``dtype`` and ``model_flops`` are what the user says of GPUs, types and the model, as
    `flame.core.operators.work_options` reads it. Without ``cache`` nothing that is made of files on
    the way is looked for in the cache, nor kept there.
    """

    nvtx_names: str = "clean"
    nvtx_start_end: bool = False
    forward: bool = False
    ncu: tuple[str, ...] = ()
    phases: str | None = None
    launches: bool = False
    peak: str | None = None
    dtype: str | None = None
    model_flops: str | None = None
    cache: bool = True

    def __post_init__(self) -> None:
        if self.nvtx_names not in NVTX_NAMES:
            raise UsageError(f"unknown NVTX names '{self.nvtx_names}': choose clean or raw")
        if "" in self.ncu:
            raise UsageError("--ncu: no file given")
        if self.phases == "":
            raise UsageError("--phases: no file given")


def silent(stage: str, done: int, expected: int) -> None:
    """Report no progress."""
