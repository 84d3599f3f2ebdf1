"""Opening files of Nsight Compute: beside a trace, into whose kernels they look, or alone."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from flame.core.errors import InputError, UsageError
from flame.core.options import Progress
from flame.core.readers.formats import HEAD
from flame.core.readers.ncu import report, source_csv
from flame.core.readers.ncu.result import NcuFile
from flame.core.readers.shared.heads import head_of, unpacked_head


def read_ncu(path: Path, progress: Progress) -> NcuFile:
    """The results in a report of Nsight Compute, or in its source page as CSV; InputError."""
    head = head_of(path)
    if not head:
        raise InputError(f"{path}: the file is empty")
    is_report = report.looks_like_report(path, head)
    read = report.read_report if is_report else source_csv.read_source_csv
    return NcuFile(path, read(path, progress))


def check_traces(paths: Sequence[Path]) -> None:
    """UsageError for a file of Nsight Compute among several traces: it is of one of their runs."""
    for path in paths:
        others = [str(other) for other in paths if other != path]
        if _is_ncu(path):
            words = ["flame", "view", *others, "--ncu", str(path)]
            said = "a file of Nsight Compute: its samples go into the kernels of a trace"
            raise UsageError(f"{path}: {said}: {shlex.join(words)}")


def _is_ncu(path: Path) -> bool:
    """Whether `read_ncu` reads the file at ``path``; False where it cannot be read."""
    try:
        head = head_of(path)
        return report.looks_like_report(path, head) or (
            source_csv.looks_like(unpacked_head(path, HEAD))
        )
    except InputError:
        return False  # Its reader says why.


def read_all(paths: Sequence[str], progress: Progress) -> list[NcuFile]:
    """The files at ``paths``; UsageError for one that is named twice, which would count twice."""
    files = [read_ncu(Path(path), progress) for path in paths]
    for at, one in enumerate(files):
        if any(one.path.samefile(other.path) for other in files[:at]):
            raise UsageError(f"--ncu {one.path}: is named twice")
    return files
