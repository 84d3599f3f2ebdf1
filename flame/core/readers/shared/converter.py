"""Convert a report with a program of the user's, once: run it, stop it, and cache the result."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from flame.core.errors import InputError
from flame.core.external import cache_folder, find_reason, read_head, start_group
from flame.core.options import Progress
from flame.core.programs import find_program

_POLL = 0.1


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

    def convert(self, path: Path, progress: Progress) -> Path:
        """Convert the report at ``path``; the result is kept in the cache folder.

        A later call for the same report (path, size and modification time) finds the first one's
        file. ``progress`` is called ten times a second and may raise to stop the program. Raises
        InputError with the command to run where it is not installed, and with what it said where it
        fails.
        """
        try:
            kept = cache_folder() / f"{_cache_name(path)}{self.suffix}"
            if not kept.is_file():
                self._convert(self._find_tool(path), path, kept, progress)
        except (OSError, RuntimeError) as error:  # RuntimeError: nobody's home folder is known
            raise InputError(f"{path}: cannot be converted: {error}") from None
        return kept

    def _find_tool(self, path: Path) -> str:
        program = find_program(self.tool)
        if program is None:
            raise InputError(
                f"{path}: {self.report}, and {self.tool}, which reads it, is not on PATH; "
                f"where {self.tool} is installed, run: {self.by_hand(path)}"
            )
        return program

    def _convert(self, program: str, path: Path, kept: Path, progress: Progress) -> None:
        """Convert into a folder of its own, so that ``kept`` appears whole or not at all."""
        # An export holds the traced processes' environment: for the user's eyes only.
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, ignore_cleanup_errors=True) as folder:
            made = Path(folder) / f"export{self.suffix}"
            command = [program, *self.command(path.absolute(), made)]
            self._run(command, path, made, progress)
            if not made.is_file() or (self.prints and not made.stat().st_size):
                raise InputError(f"{path}: {self.tool} wrote no export; try: {self.by_hand(path)}")
            made.replace(kept)
        _remove_older(kept, self.suffix)

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


def _cache_name(path: Path) -> str:
    """Name this state of the report: a part for its place, a part for size and time."""
    state = path.stat()
    changed = f"{state.st_size} {state.st_mtime_ns}"
    return f"{_digest(os.path.realpath(path))}-{_digest(changed)}"


def _digest(text: str) -> str:
    return sha256(os.fsencode(text)).hexdigest()[:16]


def _remove_older(kept: Path, suffix: str) -> None:
    """Remove conversions of earlier states of the same report, or the cache would only grow."""
    place = kept.name.partition("-")[0]
    for older in kept.parent.glob(f"{place}-*{suffix}"):
        if older != kept:
            older.unlink(missing_ok=True)
