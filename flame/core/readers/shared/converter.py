"""Convert a report with a program of the user's: run it, stop it, and say why it fails."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from shutil import disk_usage
from typing import NoReturn

from flame.core.errors import InputError
from flame.core.external import ResourceLimits, find_program, find_reason, read_head, run_limited
from flame.core.lazy_dataclass import dataclass
from flame.core.options import Progress
from flame.core.readers.shared.conversion import Conversion
from flame.core.units import format_bytes

_SIZE, _SIZE_PER_BYTE = 1 << 30, 1000
"""Bytes of what is made, by those of the report: ncu prints the instructions of a kernel, which are
in the report once, for each launch of it."""
_LEFT = 10
"""The part of the free disk that stays so."""
_SECONDS, _SECONDS_PER_BYTE = 3600.0, 3600.0 / 1e9
"""Seconds, by bytes of the report: an hour, and one more for each GB."""


@dataclass(frozen=True)
class Converter(Conversion):
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

    @property
    def way(self) -> str:
        """What is asked of the program, as a name."""
        words = self.command(Path("report"), Path("made"))
        return sha256("\0".join(words).encode()).hexdigest()[:8]

    @property
    def maker(self) -> str:
        """The program on PATH, by its file; empty where there is none, as any kept result does."""
        return _identify(self.tool)

    def make(self, path: Path, folder: Path, progress: Progress) -> Path:
        """Convert into ``folder``; InputError, OSError."""
        made = folder / f"export{self.suffix}"
        command = [self._find_tool(path), *self.command(path.absolute(), made)]
        self._run(command, path, made, progress)
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
            bounds = _Bounds(self, path, made)

            def look() -> None:
                progress(self.stage, 0, 0)
                bounds.check_time()
                bounds.check_size()

            code = run_limited(command, out, stderr, ResourceLimits(bounds.size), look)
            bounds.check_size()
            if code:
                text = read_head(stderr) or (read_head(out) if self.prints else "")
                reason = find_reason(text) or "it does not say why"
                problem = f"{self.tool} cannot convert it (exit {code})"
                raise InputError(f"{path}: {problem}: {reason}")


class _Bounds:
    """How long a conversion of the report at ``path`` may take, and how large ``made`` may be.

    A program that goes beyond is taken to be led astray by a damaged report.
    """

    def __init__(self, converter: Converter, path: Path, made: Path) -> None:
        self._converter, self._path, self._made = converter, path, made
        size = path.stat().st_size
        free = disk_usage(made.parent).free
        self.size = min(_SIZE + _SIZE_PER_BYTE * size, free - free // _LEFT)
        self._seconds = _SECONDS + _SECONDS_PER_BYTE * size
        self._due = time.monotonic() + self._seconds

    def check_time(self) -> None:
        """Raise InputError where it has taken too long."""
        if time.monotonic() > self._due:
            self._refuse(f"does not end within {self._seconds:,.0f} s")

    def check_size(self) -> None:
        """Raise InputError where too much has been written."""
        if self._made.exists() and self._made.stat().st_size >= self.size:
            self._refuse(f"writes more than {format_bytes(self.size)}")

    def _refuse(self, what: str) -> NoReturn:
        by_hand = self._converter.by_hand(self._path)
        raise InputError(f"{self._path}: {self._converter.tool} {what}; try: {by_hand}")


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
