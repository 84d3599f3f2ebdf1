"""Open files of Nsight Compute beside a trace, into whose kernels their samples go."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from flame.core.errors import InputError, UsageError
from flame.core.load_progress import LoadPart
from flame.core.options import LoadOptions, Progress
from flame.core.readers.formats import NCU_PAGE, NCU_REPORT, FileHead
from flame.core.readers.ncu.result import NcuFile


def read_ncu(path: Path, progress: Progress, options: LoadOptions) -> NcuFile:
    """Read the results in a report of Nsight Compute, or in its source page as CSV; InputError."""
    head = FileHead(path)
    if not head.packed:
        raise InputError(f"{path}: the file is empty")
    # What is no report is read as a page: its reader says best what else the file is.
    format_ = NCU_REPORT if NCU_REPORT.matches(head) else NCU_PAGE
    try:
        return format_.decode(path, options, progress)
    except MemoryError:
        raise InputError(f"{path}: there is not enough memory to read it") from None


def refuse_ncu_files(paths: Sequence[Path]) -> None:
    """Raise UsageError for a file of Nsight Compute among several traces: it is of one of them."""
    for path in paths:
        others = [str(other) for other in paths if other != path]
        if _is_ncu(path):
            words = ["flame", "view", *others, "--ncu", str(path)]
            reason = "a file of Nsight Compute: its samples go into the kernels of a trace"
            raise UsageError(f"{path}: {reason}: {shlex.join(words)}")


def _is_ncu(path: Path) -> bool:
    """Return whether `read_ncu` reads the file at ``path``; False where it cannot be read."""
    head = FileHead(path)
    try:
        return any(format_.matches(head) for format_ in (NCU_REPORT, NCU_PAGE))
    except InputError:
        return False  # Its reader says why.


def read_ncu_files(options: LoadOptions, progress: Progress) -> list[NcuFile]:
    """Read the files that ``options`` name.

    Raises UsageError for one that is named twice: it would count twice.
    """
    size = len(options.ncu)
    files = [
        read_ncu(Path(path), LoadPart(progress, at / size, (at + 1) / size), options)
        for at, path in enumerate(options.ncu)
    ]
    for at, file in enumerate(files):
        if any(file.path.samefile(other.path) for other in files[:at]):
            raise UsageError(f"--ncu {file.path}: is named twice")
    return files
