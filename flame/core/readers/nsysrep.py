"""Nsight Systems reports (``.nsys-rep``, ``.qdrep``): converted by the user's own nsys."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from flame.core.errors import InputError
from flame.core.options import Progress

MAGIC = b"NVIDIA Tegra Profiler Report "
"""How ``.qdrep`` files of 2020 and ``.nsys-rep`` files up to today begin."""

SUFFIXES = (".nsys-rep", ".qdrep")
STAGE = "converting with nsys"

_POLL = 0.1
_LONGEST_REASON = 200
_TELLING = re.compile("error|fail|cannot|can't|could not|unable|denied|no space", re.IGNORECASE)


def looks_like_report(path: Path, head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a report: by content, else by its suffix."""
    return head.startswith(MAGIC) or bool(head and path.suffix.lower() in SUFFIXES)


def convert(path: Path, progress: Progress) -> Path:
    """The report at ``path`` as an SQLite file, made by ``nsys export``, kept in the cache folder.

    A later call for the same report (path, size and modification time) finds the first one's file.
    ``progress`` is called ten times a second and may raise to stop nsys. Raises InputError with the
    command to run where nsys is not installed, and with what nsys said where it fails.
    """
    try:
        kept = _cache_folder() / _cache_name(path)
        if not kept.is_file():
            _convert(_nsys(path), path, kept, progress)
    except (OSError, RuntimeError) as error:  # RuntimeError: nobody's home folder is known
        raise InputError(f"{path}: cannot be converted: {error}") from None
    return kept


def _nsys(path: Path) -> str:
    nsys = shutil.which("nsys")
    if nsys is None:
        raise InputError(
            f"{path}: an Nsight Systems report, and nsys, which reads it, is not on PATH; "
            f"where nsys is installed, run: {_by_hand(path)}"
        )
    return nsys


def _convert(nsys: str, path: Path, kept: Path, progress: Progress) -> None:
    """Convert into a folder of its own, so that ``kept`` appears whole or not at all."""
    # An export holds the traced processes' environment: for the user's eyes only.
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, ignore_cleanup_errors=True) as folder:
        made = Path(folder) / "export.sqlite"
        command = [nsys, "export", "--type=sqlite", "--force-overwrite=true", f"--output={made}"]
        _run([*command, str(path.absolute())], path, progress)
        if not made.is_file():
            raise InputError(f"{path}: nsys wrote no export; try: {_by_hand(path)}")
        made.replace(kept)
    _forget_older(kept)


def _run(command: list[str], path: Path, progress: Progress) -> None:
    with tempfile.TemporaryFile() as said:
        with _running(command, said) as nsys:
            while nsys.poll() is None:
                progress(STAGE, 0, 0)
                with suppress(subprocess.TimeoutExpired):
                    nsys.wait(_POLL)
        if nsys.returncode:
            said.seek(0)
            reason = _reason(said.read().decode("utf-8", "replace")) or "it does not say why"
            raise InputError(f"{path}: nsys cannot convert it (exit {nsys.returncode}): {reason}")


@contextmanager
def _running(command: list[str], said: BinaryIO) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a process group of its own: nsys is a launcher, and stopping stops all of it."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _reason(said: str) -> str:
    """The line of nsys's output that tells most: the first about a failure, or the last one."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", said) if line.strip()]
    telling = next(filter(_TELLING.search, lines), lines[-1] if lines else "")
    return telling[:_LONGEST_REASON]


def _by_hand(path: Path) -> str:
    """The command that does the same, for the user to run."""
    written = path.with_suffix(".sqlite") if path.suffix.lower() in SUFFIXES else f"{path}.sqlite"
    return shlex.join(["nsys", "export", "--type", "sqlite", "-o", str(written), str(path)])


def _cache_folder() -> Path:
    """Where conversions are kept: ``flame`` in XDG_CACHE_HOME, which counts only if absolute."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if Path(named).is_absolute() else Path("~/.cache").expanduser()
    return base / "flame"


def _cache_name(path: Path) -> str:
    """A name for this state of the report: a part for its place, a part for size and time."""
    state = path.stat()
    changed = f"{state.st_size} {state.st_mtime_ns}"
    return f"{_digest(os.path.realpath(path))}-{_digest(changed)}.sqlite"


def _digest(text: str) -> str:
    return sha256(os.fsencode(text)).hexdigest()[:16]


def _forget_older(kept: Path) -> None:
    """Remove conversions of earlier states of the same report, or the cache would only grow."""
    place = kept.name.partition("-")[0]
    for older in kept.parent.glob(f"{place}-*.sqlite"):
        if older != kept:
            older.unlink(missing_ok=True)
