"""Copy to files what a command's paths name that is none, and see to it that these go."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from flame.core.errors import InputError, UsageError
from flame.core.fetching.given_names import NAMES_OF_STDIN

if TYPE_CHECKING:
    from flame.core.options import Progress

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_TERMINAL = "/dev/tty"


def is_foreign(path: str) -> bool:
    """Tell whether ``path`` names no file: standard input, a pipe, something elsewhere."""
    return path in NAMES_OF_STDIN or "://" in path or _is_pipe(path)


def _is_pipe(path: str) -> bool:
    """Whether ``path`` names a pipe, as the shell's ``<(command)`` does."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)  # noqa: PTH116 (of thousands, quickly)
    except (OSError, ValueError):
        return False


def fetch_paths(
    runs: list[list[str]], given: dict[str, str], stack: ExitStack, *, cache: bool
) -> None:
    """Put into ``runs`` files in place of what is none; note in ``given`` what these were.

    The ``cache`` keeps what is fetched.
    """
    from flame.console.progress import progress_on_stderr
    from flame.core.files.temporary import scratch_folder

    _refuse_twice(runs)
    try:
        folder = stack.enter_context(scratch_folder())
    except OSError as error:
        raise InputError(f"no temporary file can be made: {error.strerror or error}") from None
    stack.enter_context(_removed_when_ended(folder))
    with _left_in_order(), progress_on_stderr() as progress:
        for run in runs:
            for place, path in enumerate(run):
                if is_foreign(path):
                    room = folder / str(len(given))
                    room.mkdir(0o700)
                    run[place] = str(_bring(path, room, progress, cache))
                    given[run[place]] = path
    if any(path in NAMES_OF_STDIN for path in given.values()):
        _read_keys_from_terminal()


def _refuse_twice(runs: list[list[str]]) -> None:
    """Raise UsageError for a stream that is named twice: to open a pipe again may wait for ever."""
    streams = [path for run in runs for path in run if is_foreign(path) and "://" not in path]
    for path, times in Counter(map(_stream, streams)).items():
        if times > 1:
            raise UsageError(f"{path} is named twice, and can be read once")


def _stream(path: str) -> str:
    """Name the stream at ``path``, which may have several names."""
    return "standard input" if path in NAMES_OF_STDIN else str(Path(path).resolve())


def _bring(path: str, room: Path, progress: Progress, cache: bool) -> Path:
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

    found = fetch(path, room, progress, cache=cache)
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
    with _handled(usual, end):
        yield


@contextmanager
def _left_in_order() -> Iterator[None]:
    """Leave the block before a signal ends the process: what is half fetched goes, too.

    That lies in the cache. Handlers around the block do the rest.
    """

    def leave(number: int, _: FrameType | None) -> None:
        raise _Ended(number)

    ours = [number for number in _ENDING if callable(signal.getsignal(number))]
    number = 0
    try:
        with _handled(ours, leave):
            yield
    except _Ended as ended:
        number = ended.number
    if number:  # The blocks that the exception held on to are left by now.
        os.kill(os.getpid(), number)


class _Ended(BaseException):
    """Tell that a signal of this number ends the process."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextmanager
def _handled(
    numbers: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Have ``handler`` take the signals of these ``numbers`` while the block runs."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, known in before.items():
            with suppress(ValueError):
                signal.signal(number, known)
