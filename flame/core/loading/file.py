"""Open one file: detect its format, decode it, make a profile of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from flame.core.errors import InputError
from flame.core.load_progress import LoadPart
from flame.core.memory import MemoryShortError
from flame.core.model.meta import Source
from flame.core.model.profile import Profile
from flame.core.model.raw import RawStacks, RawTrace
from flame.core.options import LoadOptions, Progress, silent
from flame.core.readers.formats import Decoded, FileHead, detect_format

if TYPE_CHECKING:
    from flame.core.readers.flamesum import SummaryFile

_ATTRIBUTION = 0.75
"""Share of attribution in what follows decoding, measured by `benchmarks/load_stages.py`."""


def load_file(path: Path, options: LoadOptions, progress: Progress) -> Profile:
    """Read the trace at ``path`` and attribute its GPU time.

    The format is told by content; a wrong suffix is no obstacle. Nothing is ever written to or
    beside the file. Raises InputError (one line: what, where, what to do) when it cannot be read,
    CancelledError when ``progress`` does.
    """
    try:
        format_ = detect_format(FileHead(path))
        decoded = format_.decode(path, options, LoadPart(progress, 0, format_.share))
        try:
            return build_profile(decoded, LoadPart(progress, format_.share, 1))
        except InputError as error:
            raise InputError(f"{path}: {error}{format_.remedy}") from None
    except MemoryError:
        raise MemoryShortError(f"{path}: there is not enough memory to read it") from None


def build_profile(decoded: Decoded, progress: Progress = silent) -> Profile:
    """Make a profile of what a reader has decoded; InputError where its times make no sense."""
    if isinstance(decoded, RawTrace):
        return _attribute(decoded, progress)
    if isinstance(decoded, RawStacks):
        from flame.core.attribution.resolved import resolve_stacks

        progress("resolving stacks", 0, 1)
        return resolve_stacks(decoded)
    from flame.core.readers.ncu.result import NcuFile

    if isinstance(decoded, NcuFile):
        from flame.core.sampling.ncu_alone import build_ncu_profile

        return build_ncu_profile(decoded)
    from flame.core.readers.snapshot.reader import SnapshotFile

    if isinstance(decoded, SnapshotFile):
        from flame.core.allocator.snapshot_profile import build_snapshot_profile

        return build_snapshot_profile(decoded.history, decoded.meta)
    return _open_summary(decoded)


def _open_summary(file: SummaryFile) -> Profile:
    """Make a profile of a summary of ranks, called by its file."""
    from flame.core.rank_summary.opened import profile_of

    profile = profile_of(file.summary)
    meta = replace(profile.meta, path=str(file.path))
    return replace(profile, meta=meta, sources=(Source("", meta),))


def _attribute(raw: RawTrace, progress: Progress) -> Profile:
    from flame.core.analysis.waiting.measures import MEASURES
    from flame.core.attribution.attribute import attribute
    from flame.core.attribution.gaps import describe_gaps
    from flame.core.efficiency.measures import WORK

    made = attribute(raw, LoadPart(progress, 0, _ATTRIBUTION))
    profile = replace(made, **MEASURES, **WORK)
    notes: list[str] = []
    warnings = profile.warnings
    progress("placing samples", round(100 * _ATTRIBUTION), 100)
    if raw.pc_samples is not None:
        from flame.core.sampling.recorded import attach_recorded_samples

        profile, notes = attach_recorded_samples(profile, raw)
    return replace(profile, warnings=(*warnings, *notes, *describe_gaps(profile)))
