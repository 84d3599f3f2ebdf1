"""Find the dumps of a recording: every process writes one into the same folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from flame.core.errors import InputError
from flame.core.units import format_counted

SUFFIX = ".fdump"


class Recording(NamedTuple):
    """The dumps in a folder that are worth reading, and notes on those that are left out."""

    dumps: tuple[Path, ...]
    notes: tuple[str, ...]


def is_folder(path: Path) -> bool:
    """Return whether ``path`` is a folder; False where it cannot be looked at."""
    try:
        return path.is_dir()
    except OSError:
        return False


def list_dumps(folder: Path) -> Iterator[Path]:
    """Yield the dumps that lie in ``folder`` itself, in the order in which their processes began.

    Raises OSError where it cannot be read.
    """
    dumps = [entry for entry in folder.iterdir() if entry.suffix == SUFFIX and entry.is_file()]
    yield from sorted(dumps, key=lambda dump: (_start_in_name(dump), dump.name))


def is_recording(folder: Path) -> bool:
    """Return whether a dump lies in ``folder`` itself; True where that cannot be seen."""
    try:
        return any(True for _ in list_dumps(folder))
    except OSError:
        return True


def _start_in_name(dump: Path) -> int:
    """Parse the start in ``<pid>-<start in hexadecimal>.fdump``; 0 for dumps of other names."""
    try:
        return int(dump.stem.rpartition("-")[2], 16)
    except ValueError:
        return 0


def read_folder(folder: Path) -> Recording:
    """List the dumps of a recording, without empty and unreadable ones if there are others.

    Raises InputError where there is no dump that can be read.
    """
    try:
        dumps = list(list_dumps(folder))
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from None
    if not dumps:
        raise InputError(f"{folder}: is a folder with no dump (*{SUFFIX}) in it: name a trace file")
    return _leave_out_empty(dumps)


def _leave_out_empty(dumps: list[Path]) -> Recording:
    from flame.core.readers.fdump.tally import is_empty_dump

    full: list[Path] = []
    empty: list[Path] = []
    errors: list[InputError] = []
    for dump in dumps:
        try:
            (empty if is_empty_dump(dump) else full).append(dump)
        except InputError as error:
            errors.append(error)
    if errors and not full and not empty:
        raise errors[0]
    kept = full or empty[:1]
    notes = [f"{error}: left out" for error in errors]
    left = len(empty) - len(kept if not full else ())
    if left:
        what = format_counted(left, "process", "processes")
        notes.append(f"{what} of this recording did nothing that is recorded: left out")
    return Recording(tuple(kept), tuple(notes))
