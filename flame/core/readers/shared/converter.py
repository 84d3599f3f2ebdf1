"""Convert a report with a program of the user's, once: run it, stop it, and cache the result."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from flame.core.errors import InputError
from flame.core.external import find_reason, read_head, start_group
from flame.core.files.cache import Cache
from flame.core.files.cache_folder import NoCacheError
from flame.core.files.digest import file_digest
from flame.core.files.temporary import scratch_folder
from flame.core.lazy_dataclass import dataclass
from flame.core.options import Progress
from flame.core.programs import find_program

T = TypeVar("T")

Reading = Callable[[Path, bool], T]
"""Reads a converted file; hears whether that stays where it is afterwards."""

_POLL = 0.1
_CACHE = Cache()


@dataclass(frozen=True)
class Converted(Generic[T]):
    """What a conversion has been read as, and notes on the way there."""

    value: T
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Converter:
    """A program that converts reports, and what to tell the user of them.

    ``tool`` is looked up on PATH; ``report`` is what a file is called (``an Nsight Systems
    report``). ``command`` gives its arguments for a report and the file to make, ``by_hand`` the
    whole command for the user to run. ``suffix`` is that of the file made. With ``prints`` the
    program writes that file to its standard output.
    """

    tool: str
    report: str
    command: Callable[[Path, Path], Sequence[str]]
    by_hand: Callable[[Path], str]
    suffix: str
    prints: bool = False

    @property
    def stage(self) -> str:
        """The stage that progress is reported for."""
        return f"converting with {self.tool}"

    def read(self, path: Path, progress: Progress, read: Reading[T]) -> Converted[T]:
        """Convert the report at ``path`` and ``read`` the result, which the cache keeps.

        A later call for a report of the same content finds it there, as long as the same program
        would make it. A kept one that is damaged, or that ``read`` raises InputError for, is made
        anew. ``progress`` is called ten times a second and may raise to stop. ``read`` is also told
        whether the file stays: without a cache to be trusted it is gone afterwards. Raises
        InputError with the command to run where the program is not installed, and with what it said
        where it fails.
        """
        try:
            return self._read_cached(path, progress, read)
        except NoCacheError as error:
            note = f"{path.name}: its conversion is not kept for the next time: {error}"
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(scratch_folder())
            except OSError as error:
                raise _unconverted(path, error) from None
            made = self._make(path, folder, progress)
            return Converted(_read_new(path, made, read, stays=False), (note,))

    def _read_cached(self, path: Path, progress: Progress, read: Reading[T]) -> Converted[T]:
        kept = self._find_or_keep(path, progress)
        damaged = kept.replaces_damaged
        if not kept.is_new:
            try:
                return Converted(read(kept.path, True))
            except InputError:
                _CACHE.drop(kept.path)
            kept, damaged = self._find_or_keep(path, progress), True
        text = f"{path.name}: the conversion kept in the cache was damaged, and was made again"
        return Converted(_read_new(path, kept.path, read, stays=True), (text,) if damaged else ())

    def _find_or_keep(self, path: Path, progress: Progress) -> _Kept:
        """Find the conversion in the cache, or make it."""

        def tick() -> None:
            progress(self.stage, 0, 0)

        try:
            asked = f"{file_digest(path, tick)}-{self._way}"
            with _CACHE.lock(asked, tick):
                key = f"{asked}-{_identify(self.tool)}"
                found, damaged = _CACHE.find(key, self.suffix)
                if found:
                    return _Kept(found)
                with _CACHE.workspace() as folder:
                    made = self._make(path, folder, progress)
                    return _Kept(_CACHE.keep(made, key, self.suffix), True, damaged)
        except OSError as error:
            raise _unconverted(path, error) from None

    @property
    def _way(self) -> str:
        """What is asked of the program, as a name."""
        words = self.command(Path("report"), Path("made"))
        return sha256("\0".join(words).encode()).hexdigest()[:8]

    def _make(self, path: Path, folder: Path, progress: Progress) -> Path:
        """Convert into ``folder``; InputError."""
        made = folder / f"export{self.suffix}"
        try:
            command = [self._find_tool(path), *self.command(path.absolute(), made)]
            self._run(command, path, made, progress)
        except OSError as error:
            raise _unconverted(path, error) from None
        if not made.is_file() or (self.prints and not made.stat().st_size):
            raise InputError(f"{path}: {self.tool} wrote no export; try: {self.by_hand(path)}")
        return made

    def _find_tool(self, path: Path) -> str:
        program = find_program(self.tool)
        if program is None:
            raise InputError(
                f"{path}: {self.report}, and {self.tool}, which reads it, is not on PATH; "
                f"where {self.tool} is installed, run: {self.by_hand(path)}"
            )
        return program

    def _run(self, command: list[str], path: Path, made: Path, progress: Progress) -> None:
        with tempfile.TemporaryFile() as stderr, made.open("w+b") if self.prints else stderr as out:
            with start_group(command, out, stderr) as process:
                while process.poll() is None:
                    progress(self.stage, 0, 0)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_POLL)
            if process.returncode:
                text = read_head(stderr) or (read_head(out) if self.prints else "")
                reason = find_reason(text) or "it does not say why"
                problem = f"{self.tool} cannot convert it (exit {process.returncode})"
                raise InputError(f"{path}: {problem}: {reason}")


@dataclass(frozen=True)
class _Kept:
    path: Path
    is_new: bool = False
    replaces_damaged: bool = False


def _read_new(path: Path, made: Path, read: Reading[T], stays: bool) -> T:
    """Read a new conversion; one that cannot be read goes: another program may do better."""
    try:
        return read(made, stays)
    except InputError as error:
        _CACHE.drop(made)
        reason = str(error).removeprefix(f"{made}: ")
        raise InputError(f"{path}: {reason}") from None


def _unconverted(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: cannot be converted: {error.strerror or error}")


def _identify(tool: str) -> str:
    """Name the program on PATH, by its file; empty where there is none, as any kept result does."""
    program = find_program(tool)
    if program is None:
        return ""
    # Where it lies tells the version: /opt/nvidia/nsight-systems/2026.1.1/…
    place = os.path.realpath(program)
    known = Path(place).stat()
    text = f"{place} {known.st_size} {known.st_mtime_ns}"
    return sha256(os.fsencode(text)).hexdigest()[:8]
