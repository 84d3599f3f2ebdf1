"""Read summaries of ranks, which flame itself has written."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from flame.core.errors import InputError
from flame.core.options import LoadOptions, Progress
from flame.core.rank_summary.summary import RankSummary
from flame.core.rank_summary.summary_file import unpack_summary


class SummaryFile(NamedTuple):
    """Hold the summary of ranks that was read from ``path``."""

    path: Path
    summary: RankSummary


def read_summary(path: Path, options: LoadOptions, progress: Progress) -> SummaryFile:
    """Read the summary at ``path``; InputError where that is none, or cannot be read."""
    if options.ncu:
        raise InputError(f"{path}: a summary of ranks has no kernels to join samples with")
    progress("reading", 0, 1)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    return SummaryFile(path, unpack_summary(data, str(path)))
