"""Write a summary of ranks: the whole at the end, and what there is by and by beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from flame.console.terminal import say
from flame.core.errors import InputError, UsageError
from flame.core.files.atomic import OccupiedError, atomic_output, is_stream
from flame.core.loading.inputs import Inputs
from flame.core.rank_summary.summary import RankSummary
from flame.core.rank_summary.summary_file import pack_summary
from flame.core.ranks.inputs import RankInputs

PARTIAL = ".partial"
"""What is added to the name of a summary that is not yet whole."""

_BYTES_OF_RANK = 4096
"""Bytes that a rank takes in a summary, at least."""


class SummaryOutput:
    """Knows where a summary is written: at ``path``, and beside it until it is whole.

    Both may be among the summaries of ``inputs``. Raises, before anything is read: UsageError
    where a file would be lost, InputError where the file cannot be written.
    """

    def __init__(self, path: str, inputs: RankInputs, *, force: bool) -> None:
        self.path = path
        self.kept = ""
        self._is_stream = is_stream(path)
        self._partial = path + PARTIAL
        self._replace = self._is_stream or force or _is_among(path, inputs.merged)
        self._is_resumed = _is_among(self._partial, inputs.merged)
        self._forced = force
        self._made_partial = False
        if not self._is_stream:
            self._check(inputs, force)

    def _check(self, inputs: RankInputs, force: bool) -> None:
        others = [file.path for file in inputs.files]
        others += [lost.path for one in inputs.summaries for lost in one.lost]
        if not _is_among(self.path, inputs.merged) and _is_among(self.path, others):
            raise UsageError(f"-o {self.path}: is a file that is read")
        if Path(self.path).is_dir():
            raise UsageError(f"-o {self.path}: is a folder: name a file in it")
        if os.path.lexists(self.path) and not self._replace:
            raise UsageError(f"{self.path}: is there already; --force replaces it")
        if not force and not self._is_resumed and os.path.lexists(self._partial):
            what = "is there, from a run that was stopped: name it, too, to go on from there"
            raise UsageError(f"{self._partial}: {what}, or --force")
        _try_out(Path(self.path), len(inputs.files) * _BYTES_OF_RANK)

    def keep(self, summary: RankSummary) -> None:
        """Write what there is beside the file; where that fails, say so and go on.

        What has appeared there meanwhile is another run's, and stays.
        """
        if self._is_stream or not len(summary):
            return
        replace = self._forced or self._is_resumed or self._made_partial
        try:
            with atomic_output(self._partial, replace=replace) as file:
                file.write(pack_summary(summary))
        except InputError as error:
            if not replace and not isinstance(error, OccupiedError):
                # It may have its name all the same, which has not reached the disk.
                self._made_partial = Path(self._partial).is_file()
            say(f"what has been read is not kept: {error}")
        else:
            self._made_partial = True
            self.kept = self._partial

    def write(self, summary: RankSummary) -> None:
        """Write the summary; what was kept beside it goes."""
        try:
            with atomic_output(self.path, replace=self._replace) as file:
                file.write(pack_summary(summary))
        except OccupiedError as error:  # It has appeared meanwhile.
            self.keep(summary)
            where = f"; what has been read is in {self.kept}" if self.kept else ""
            raise UsageError(f"{error}{where}") from None
        except InputError as error:
            if not self.kept:
                raise
            raise InputError(f"{error}; part of what has been read is in {self.kept}") from None
        if self._made_partial or self._is_resumed:
            with suppress(OSError):
                Path(self._partial).unlink()


def _is_among(path: str, paths: Sequence[str]) -> bool:
    return Inputs(tuple(map(Path, paths))).hold(Path(path))


def _try_out(path: Path, size: int) -> None:
    """Raise InputError where ``size`` bytes cannot be written beside ``path``, or not to it."""
    try:
        with TemporaryFile(dir=path.parent) as file:
            file.write(bytes(size))
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
