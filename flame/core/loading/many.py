"""Open traces: one, a folder of dumps, or several together as one profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from flame.core.errors import FlameError, InputError, UsageError
from flame.core.fetching.given_names import is_pattern
from flame.core.load_progress import LoadPart, WholeLoad
from flame.core.loading.file import load_file
from flame.core.memory import PER_BYTE, bytes_to_use, within_memory
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress, silent
from flame.core.rank_summary.signs import SUFFIX, is_summary
from flame.core.readers.fdump.folder import SUFFIX as DUMP
from flame.core.readers.fdump.folder import Recording, is_folder, is_recording, read_folder
from flame.core.readers.shared.heads import read_head
from flame.core.starting import resume_collection
from flame.core.units import format_bytes

if TYPE_CHECKING:
    from flame.core.loading.inputs import Inputs
    from flame.core.reopening.profile_cache import ProfileCache

_MERGING = 0.9
"""Share of several files in a load, before they are merged."""

_NCU, _JOINING = 0.3, 0.95
"""Shares of a load at which files of Nsight Compute have been read, and the trace has been."""


_MANY = 16
"""Files that are loaded together without a word on what is made for more of them."""

_RANKS = "flame ranks FILES -o run.flamesum"


def load(
    path: str | Path, options: LoadOptions | None = None, progress: Progress = silent
) -> Profile:
    """Read the trace at ``path`` and attribute its GPU time; of a folder the dumps in it.

    The format is told by content; a wrong suffix is no obstacle. Nothing is ever written to or
    beside the file. Raises InputError (one line: what, where, what to do) when it cannot be read,
    CancelledError when ``progress`` does.
    """
    return load_all([path], options, progress)


def load_all(
    paths: Sequence[str | Path],
    options: LoadOptions | None = None,
    progress: Progress = silent,
    cache: ProfileCache | None = None,
) -> Profile:
    """Read the traces at ``paths``, several at a time, as one profile; one as `load` does.

    A folder stands for the dumps in it. Raises what `load` raises for the first that cannot be
    read, UsageError for a file named twice, CancelledError when ``progress`` does, which is always
    called from here.

    It is told one count for all stages of all files, which only grows, up to
    `flame.core.load_progress.WHOLE`; where it is unknown how far a stage is, of 0.

    What ``cache`` has is not read again; `ProfileCache.write` keeps a single trace that it has not.
    Of several those are kept at once.
    """
    resume_collection()
    whole = WholeLoad(progress)
    recordings = [_list_files(Path(path)) for path in paths]
    files = _without_kept([file for recording in recordings for file in recording.dumps])
    notes = [note for recording in recordings for note in recording.notes]
    profile = _load_with_work(files, options or LoadOptions(), whole, cache)
    whole.end()
    return replace(profile, warnings=(*notes, *profile.warnings)) if notes else profile


def load_inputs(
    inputs: Inputs,
    options: LoadOptions | None = None,
    progress: Progress = silent,
    cache: ProfileCache | None = None,
) -> Profile:
    """Load ``inputs`` as `load_all` does; profile and errors name them as they were given."""
    if inputs.is_local:
        return load_all(inputs.paths, options, progress, cache)
    try:
        return inputs.respell_profile(load_all(inputs.paths, options, progress, cache))
    except FlameError as error:
        raise type(error)(inputs.respell(str(error))) from None


def _list_files(path: Path) -> Recording:
    """List the dumps of a folder; a file stands for itself."""
    if not is_folder(path):
        return Recording((path,), ())
    if not is_recording(path):
        from flame.core.loading.search import describe_folder

        raise InputError(f"{path}: {describe_folder(path)}")
    return read_folder(path)


def _without_kept(files: Sequence[Path]) -> list[Path]:
    """Leave out what is kept beside a dump, where the dump is one of ``files``, too."""
    dumps = {file for file in files if file.suffix == DUMP}
    return [file for file in files if file.suffix != SUFFIX or file.with_suffix(DUMP) not in dumps]


def _load_with_work(
    files: Sequence[Path], options: LoadOptions, progress: Progress, cache: ProfileCache | None
) -> Profile:
    """Load files, and let the profile know what the user says of the work; mistakes come first."""
    plain = replace(options, peak=None, dtype=None, model_flops=None)
    if plain == options:
        return _load_with_phases(files, options, progress, cache)
    from flame.core.operators.work_options import read_work_options

    given = read_work_options(options.peak, options.dtype, options.model_flops)
    return replace(_load_with_phases(files, plain, progress, cache), work_options=given)


def _load_with_phases(
    files: Sequence[Path], options: LoadOptions, progress: Progress, cache: ProfileCache | None
) -> Profile:
    """Load files, and name the phases that a file of these has, else those that ranges tell.

    That file is read first.
    """
    from flame.core.projection.phases import name_phases, tell_phases

    if options.phases is None:
        return tell_phases(_load_files(files, options, progress, cache))
    from flame.core.names.phases import read_phases

    rules = read_phases(options.phases)
    return name_phases(_load_files(files, replace(options, phases=None), progress, cache), rules)


def _load_files(
    files: Sequence[Path], options: LoadOptions, progress: Progress, cache: ProfileCache | None
) -> Profile:
    if len(files) == 1:
        _refuse_pattern(files[0])
    else:
        _check_files(files)
    if not options.ncu:
        return _load_checked(files, options, progress, cache)
    from flame.core.loading.ncu import read_ncu_files
    from flame.core.sampling.ncu_join import join_samples

    samples = read_ncu_files(options, LoadPart(progress, 0, _NCU))
    without = replace(options, ncu=())
    profile = _load_checked(files, without, LoadPart(progress, _NCU, _JOINING), cache)
    progress("placing samples", round(100 * _JOINING), 100)
    return join_samples(profile, samples)


def _load_checked(
    files: Sequence[Path], options: LoadOptions, progress: Progress, cache: ProfileCache | None
) -> Profile:
    """Load files that are there, each once: one here, several side by side."""
    if len(files) > 1 and any(map(_is_summary, files)):
        return _merge_summaries(files, options, progress)
    if len(files) > 1:
        return _load_together(files, options, progress, cache)
    if cache is None:
        return load_file(files[0], options, progress)
    return cache.open(files[0], options, load_file, progress)


def _is_summary(file: Path) -> bool:
    try:
        return is_summary(read_head(file))
    except InputError:  # whoever reads it says why
        return False


def _merge_summaries(files: Sequence[Path], options: LoadOptions, progress: Progress) -> Profile:
    """Merge the ranks of summaries; InputError where other traces are among them."""
    from flame.core.rank_summary.merge import merge_summaries
    from flame.core.rank_summary.opened import profile_of, summary_of

    if other := next((file for file in files if not _is_summary(file)), None):
        raise InputError(f"{other}: a summary of ranks opens with no trace: add it by flame ranks")
    found = [summary_of(load_file(file, options, progress)) for file in files]
    return profile_of(merge_summaries([one for one in found if one is not None]))


def _load_together(
    files: Sequence[Path], options: LoadOptions, progress: Progress, cache: ProfileCache | None
) -> Profile:
    """Load several files side by side; merge them, by rank where their labels are ranks."""
    from flame.core.loading.merge.profiles import merge_profiles
    from flame.core.loading.parallel import load_in_processes
    from flame.core.loading.source_labels import label_sources, order_sources

    progress, notes = _offer_ranks(files, progress)
    profiles = load_in_processes(files, options, LoadPart(progress, 0, _MERGING), cache)
    progress("merging", round(100 * _MERGING), 100)
    metas = [profile.meta for profile in profiles]
    labels, order = label_sources(metas), order_sources(metas)
    merged = merge_profiles([profiles[at] for at in order], [labels[at] for at in order])
    return replace(merged, warnings=(*notes, *merged.warnings))


def _offer_ranks(files: Sequence[Path], progress: Progress) -> tuple[Progress, list[str]]:
    """Return a progress and notes that say what many files are better served by.

    Raises MemoryShortError where they cannot fit together.
    """
    need = PER_BYTE * sum(map(_size, files))
    what = f"{len(files)} traces together"
    progress = within_memory(what, need, progress, f"sum them up, which takes little: {_RANKS}")
    free = bytes_to_use()
    if len(files) <= _MANY and (free is None or 2 * need <= free):
        return progress, []
    note = f"{len(files)} traces: {_RANKS} sums them up; together they may take"
    return progress, [f"{note} {format_bytes(need)} of memory"]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except (OSError, ValueError):
        return 0  # Its reader says why.


def _refuse_pattern(file: Path) -> None:
    """Raise InputError for a pattern that the shell has left as it was."""
    if is_pattern(str(file)) and not file.exists():
        raise InputError(f"{file}: no file here matches that pattern")


def _check_files(files: Sequence[Path]) -> None:
    """Check, before anything is read, that all files are there, each once, and are traces."""
    from flame.core.loading.ncu import refuse_ncu_files

    first: dict[tuple[int, int], Path] = {}
    for file in files:
        try:
            state = file.stat()
        except FileNotFoundError:
            _refuse_pattern(file)
            raise InputError(f"{file}: no such file") from None
        except (OSError, ValueError):
            continue  # Its reader says why.
        known = first.setdefault((state.st_dev, state.st_ino), file)
        if known is not file:
            same = "is named twice" if str(known) == str(file) else f"is the same file as {known}"
            raise UsageError(f"{file}: {same}")
    refuse_ncu_files(files)
