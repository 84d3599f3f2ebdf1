"""Run the command line: the command that it names, and what is left to do where that fails.

What a command needs is imported when it runs, and nothing at all here that `flame --version` does
not need.
"""

from __future__ import annotations

import io
import os
import sys

from flame._version import __version__
from flame.cli.streams import print_text
from flame.core.errors import CancelledError, FlameError, InputError
from flame.core.starting import delay_collection, end_collection, end_process

TYPE_CHECKING = False  # The module typing takes a third of the time of `flame --version`.
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on ``argv`` and return the exit code; without it, be the program."""
    if argv is not None:
        return _run_flushed(argv)
    delay_collection()
    code = _run_flushed(sys.argv[1:])
    end_collection()
    return end_process(code)


def _run_flushed(argv: Sequence[str]) -> int:
    code = _run_guarded(argv)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _silence_stdout()
        if not code and not isinstance(error, BrokenPipeError):
            _say(f"cannot write to standard output: {error.strerror}")
            return InputError.exit_code
    return code


def _run_guarded(argv: Sequence[str]) -> int:
    try:
        return _run(argv)
    except BrokenPipeError:
        # Whoever read the other end (``flame info x | head``) has what it wanted.
        return 0
    except (KeyboardInterrupt, CancelledError):
        return CancelledError.exit_code
    except FlameError as error:
        _say(str(error))
        return error.exit_code
    except Exception as error:
        return _report_internal_error(error)


def _run(argv: Sequence[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names may hold what the locale's encoding, or even UTF-8, cannot.
        sys.stdout.reconfigure(errors="replace")
    if argv and argv[0] == "--version":
        return _say_version()
    from flame.cli.parser import parse_command_line

    try:
        args = parse_command_line(argv)
    except SystemExit:  # --help has been answered
        return 0
    from flame.cli.fetching.local_paths import run_with_local_paths

    return run_with_local_paths(args.run, args)


def _say_version() -> int:
    """Answer before argparse is imported, which takes as long as all the rest."""
    text = f"flame {__version__}\n"
    if sys.stdout is not None:
        print_text(text)
    elif sys.stderr is not None:
        sys.stderr.write(text)
    return 0


def _report_internal_error(error: Exception) -> int:
    if os.environ.get("FLAME_DEBUG"):
        from flame.console.terminal import print_traceback

        print_traceback(error)
        return INTERNAL_ERROR
    from flame.core.shown_text import cut, printable

    what = cut(printable(f"{type(error).__name__}: {error}"), 200)
    _say(f"internal error: {what} (FLAME_DEBUG=1 shows the traceback)")
    return INTERNAL_ERROR


def _say(text: str) -> None:
    from flame.console.terminal import say

    say(text)


def _silence_stdout() -> None:
    """Let what is still buffered go nowhere: Python would try again at exit, and complain."""
    from contextlib import suppress

    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
