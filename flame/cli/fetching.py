"""Bring here what a command is to read that is no file: standard input, pipes, remote traces."""

from __future__ import annotations

import argparse
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from flame.core.errors import FlameError, InputError, UsageError

if TYPE_CHECKING:
    from flame.core.options import Progress

from flame.core.fetching.given_names import NAMES_OF_STDIN, shown_name

_PATTERN = frozenset("*?[")
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_TERMINAL = "/dev/tty"


Command = Callable[[argparse.Namespace], int]


def run_with_local_paths(command: Command, args: argparse.Namespace) -> int:
    """Run ``command`` on ``args``, whose traces are files of this machine by then.

    Patterns that the shell has left are those files that they match. What else is no file is
    copied to one, which is gone when the command ends. Errors name it as it was given.
    """
    runs = list(_runs(args))
    if args.command == "ranks":
        return _run_on_files(command, args, runs)
    if not any(_is_special(path) for run in runs for path in run):
        return command(args)
    for run in runs:
        run[:] = [file for path in run for file in _matching(path)]
    if not any(_is_foreign(path) for run in runs for path in run):
        return command(args)
    if getattr(args, "web", False):
        return _run_in_browser(command, args, runs)
    with ExitStack() as stack:
        given = args.given = {}
        try:
            _fetch(runs, given, stack)
            return command(args)
        except FlameError as error:
            raise type(error)(_respelled(str(error), given)) from None


def _run_on_files(command: Command, args: argparse.Namespace, runs: list[list[str]]) -> int:
    """Run ``flame ranks``: its summaries say where the trace of each rank lies."""
    for path in (path for run in runs for path in run):
        if _is_foreign(path):
            name = shown_name(path)
            raise UsageError(f"{name}: flame ranks keeps where traces lie: copy it to a file first")
    return command(args)


def _runs(args: argparse.Namespace) -> Iterator[list[str]]:
    """The lists of ``args`` that name traces."""
    if isinstance(paths := getattr(args, "paths", None), list):
        yield paths
    for side in ("base", "new"):
        yield from getattr(args, side, None) or ()


def _is_special(path: str) -> bool:
    return _is_foreign(path) or bool(_PATTERN & set(path))


def _is_foreign(path: str) -> bool:
    return path in NAMES_OF_STDIN or "://" in path or _is_pipe(path)


def _is_pipe(path: str) -> bool:
    """Whether ``path`` names a pipe, as the shell's ``<(command)`` does."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)  # noqa: PTH116 (of thousands, quickly)
    except (OSError, ValueError):
        return False


def _matching(path: str) -> list[str]:
    """The files that match a quoted pattern, in order; itself where it is none, or none match."""
    if "://" in path or not _PATTERN & set(path) or os.path.lexists(path):
        return [path]
    from glob import glob

    return sorted(glob(path, recursive=True)) or [path]  # noqa: PTH207 (absolute ones, too)


def _run_in_browser(command: Command, args: argparse.Namespace, runs: list[list[str]]) -> int:
    """Every page opens the traces anew: what is remote is kept for that, a pipe cannot be."""
    for path in (path for run in runs for path in run if "://" not in path):
        if _is_foreign(path):
            raise UsageError(f"--web opens {path} for every page: write it to a file first")
    return command(args)


def _fetch(runs: list[list[str]], given: dict[str, str], stack: ExitStack) -> None:
    """Put into ``runs`` files in place of what is none; note in ``given`` what these were."""
    from flame.console.progress import progress_on_stderr
    from flame.core.files.temporary import scratch_folder

    _refuse_twice(runs)
    try:
        folder = stack.enter_context(scratch_folder())
    except OSError as error:
        raise InputError(f"no temporary file can be made: {error.strerror or error}") from None
    stack.enter_context(_removed_when_ended(folder))
    with progress_on_stderr() as progress:
        for run in runs:
            for place, path in enumerate(run):
                if _is_foreign(path):
                    room = folder / str(len(given))
                    room.mkdir(0o700)
                    run[place] = str(_bring(path, room, progress))
                    given[run[place]] = path
    if any(path in NAMES_OF_STDIN for path in given.values()):
        _read_keys_from_terminal()


def _refuse_twice(runs: list[list[str]]) -> None:
    used = [path for run in runs for path in run if path in NAMES_OF_STDIN]
    if len(used) > 1:
        raise UsageError("standard input is named twice, and can be read once")


def _bring(path: str, room: Path, progress: Progress) -> Path:
    """Return a file in the folder ``room`` with what ``path`` names, called like that."""
    if path in NAMES_OF_STDIN:
        from flame.core.fetching.streams import spool_standard_input

        spool_standard_input(target := room / "stdin", progress)
        return target
    if "://" not in path:
        from flame.core.fetching.streams import spool_pipe

        name = Path(path).name
        target = room / (f"pipe{name}" if name.isdigit() else name)
        spool_pipe(Path(path), target, progress)
        return target
    from flame.core.fetching.given_names import name_in
    from flame.core.fetching.remote import fetch

    found = fetch(path, room, progress)
    link = room / name_in(path)
    link.symlink_to(found)
    return link


def _read_keys_from_terminal() -> None:
    """Have the terminal as standard input, where a person looks at what is written there."""
    if sys.stdin is None or sys.stdout is None or not sys.stdout.isatty():
        return
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        from flame.console.terminal import say

        say(f"note: no {_TERMINAL} to read keys from: the app cannot be shown")
        return
    os.dup2(terminal, 0)
    os.close(terminal)


@contextmanager
def _removed_when_ended(folder: Path) -> Iterator[None]:
    """Remove ``folder`` where a signal ends the process, too."""
    from shutil import rmtree

    def end(number: int, _: FrameType | None) -> None:
        rmtree(folder, ignore_errors=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    usual = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in usual:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in usual:
            with suppress(ValueError):
                signal.signal(number, signal.SIG_DFL)


def _respelled(text: str, given: dict[str, str]) -> str:
    for path, name in given.items():
        text = text.replace(path, shown_name(name))
    return text
