"""Copy dumps, also those that still grow, into a folder of their own."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from flame.core.errors import InputError
from flame.core.files.publish import open_folder, sync_folder
from flame.core.files.temporary import temporary_folder
from flame.core.readers.fdump.folder import SUFFIX
from flame.core.readers.fdump.layout import DumpHeader
from flame.core.sass.disassembly import CUBINS, open_code_files

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class DumpSource(Protocol):
    """Copy a dump whatever its writer does; know its header, and where it was found."""

    path: str

    @property
    def header(self) -> DumpHeader: ...

    def copy_to(self, file: BinaryIO) -> None: ...


def copy_dumps(sources: Sequence[DumpSource], folder: str, report: Callable[[int], None]) -> int:
    """Copy ``sources`` into a new ``folder``, there whole or not at all; return their bytes.

    The code of their kernels comes with them: PC samples are of no use without.
    ``report`` hears how many bytes are written so far; what it raises ends the copying. Raises
    InputError, in one line, where ``folder`` is there already or cannot be written.
    """
    target = Path(folder)
    try:
        if os.path.lexists(target):
            raise FileExistsError
        with temporary_folder(target.parent) as beside:
            total = _copy_all(sources, beside, report)
            _copy_code({Path(source.path).parent for source in sources}, beside)
            _publish(beside, target)
    except FileExistsError:
        raise InputError(f"{folder}: is there already: name a new folder") from None
    except OSError as error:
        raise _failed(folder, error) from None
    except _UnwritableError as error:
        raise _failed(folder, error.reason) from None
    return total


def _publish(beside: Path, target: Path) -> None:
    """Name a finished folder ``target``; FileExistsError where anything has got that name."""
    for part in (beside / CUBINS, beside):
        if part.exists():
            with open_folder(part) as opened:
                sync_folder(opened)
    with open_folder(target.parent) as parent:
        target.mkdir(0o700)
        try:
            beside.rename(target)
        except BaseException:
            target.rmdir()
            raise
        sync_folder(parent)


def _failed(folder: str, reason: OSError) -> InputError:
    return InputError(f"{folder}: cannot be written: {reason.strerror or reason}")


def _copy_all(sources: Iterable[DumpSource], folder: Path, report: Callable[[int], None]) -> int:
    total = 0
    for source in sources:
        path = _path_of(source, folder)
        with io.BufferedWriter(_Counted(path, report, total)) as file:
            source.copy_to(file)
            file.flush()
            os.fsync(file.fileno())
        total += path.stat().st_size
    return total


def _copy_code(recordings: Iterable[Path], folder: Path) -> None:
    """Copy what ``recordings`` have of the code of kernels; what is there already is the same."""
    target = folder / CUBINS
    for recording in recordings:
        for name, code in open_code_files(recording):
            target.mkdir(0o700, exist_ok=True)
            if not (target / name).exists():
                with open(target / name, "xb", opener=_private) as file:
                    shutil.copyfileobj(code, file)
                    file.flush()
                    os.fsync(file.fileno())


def _path_of(source: DumpSource, folder: Path) -> Path:
    """As the library calls its dump: readers order them by the end of their names."""
    pid, start = source.header.pid, f"{source.header.start_unix:x}{SUFFIX}"
    path, number = folder / f"{pid}-{start}", 1
    while path.exists():
        number += 1
        path = folder / f"{pid}-{number}-{start}"
    return path


class _UnwritableError(Exception):
    """The copy cannot be written; a source would take an OSError for one of its own file."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _Counted(io.FileIO):
    """A new file, for its owner only, that tells how much has been written to it."""

    def __init__(self, path: Path, report: Callable[[int], None], before: int) -> None:
        super().__init__(path, "xb", opener=_private)
        self._report = report
        self._written = before

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            written = super().write(data)
        except OSError as error:
            raise _UnwritableError(error) from None
        self._written += written
        self._report(self._written)
        return written


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
