"""Build the command line's parser, run the command that it names, return the exit code."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress

from flame._version import __version__
from flame.cli import attach, cache, doctor, export, info, record, view
from flame.console.terminal import cut, printable, say
from flame.core.errors import CancelledError, FlameError, InputError, UsageError
from flame.options.selection import Parser, parse

INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h."""

_EPILOG = """\
'flame PATH' alone is 'flame view PATH'; 'flame' alone lists traces to open.
'flame COMMAND --help' shows a command's options.

exit codes: 0 ok, 2 usage, 3 input cannot be read, 4 nothing matches the selection,
            70 internal error (FLAME_DEBUG=1 shows the traceback), 130 interrupted
"""
_COMMANDS = {
    "record": record,
    "view": view,
    "attach": attach,
    "export": export,
    "info": info,
    "cache": cache,
    "doctor": doctor,
}
"""A module per command: `add_parser` adds its options, `run` does what they ask for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on ``argv`` (by default the process's) and return the exit code."""
    code = _run_guarded(sys.argv[1:] if argv is None else argv)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _silence_stdout()
        if not code and not isinstance(error, BrokenPipeError):
            say(f"cannot write to standard output: {error.strerror}")
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
        say(str(error))
        return error.exit_code
    except Exception as error:
        return _report_internal_error(error)


def _run(argv: Sequence[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names may hold what the locale's encoding, or even UTF-8, cannot.
        sys.stdout.reconfigure(errors="replace")
    try:
        words = _complete(argv)
        args = _parse(words)
        if args.command == "view" and args.state is not None:
            args = _restore(args, words)
    except SystemExit:  # --help or --version has been answered
        return 0
    command: Callable[[argparse.Namespace], int] = args.run
    return command(args)


def _parse(words: list[str]) -> argparse.Namespace:
    args, unknown = build_parser().parse_known_args(words, argparse.Namespace(words=words))
    if "paths" in args:
        # argparse takes paths from one place only; others may stand behind an option.
        args.paths += [word for word in unknown if not word.startswith("-")]
        unknown = [word for word in unknown if word.startswith("-")]
    if unknown:
        raise UsageError(f"unknown: {' '.join(unknown)} (see flame {args.command} --help)")
    return args


def _restore(args: argparse.Namespace, words: list[str]) -> argparse.Namespace:
    """Parse ``words`` after the options of the state that they name, as if both had been given."""
    from flame.options.state import decode

    state = decode(args.state)
    parse(state.options)  # These may say what to show, and no more.
    restored = _parse([words[0], *state.options, *words[1:]])
    restored.paths = args.paths or state.traces
    restored.state = state
    restored.words = words
    return restored


def _complete(argv: Sequence[str]) -> list[str]:
    """Put the command ``view`` before ``argv`` where none is named, and bind windows to --time."""
    if not argv:
        return ["view"]
    if argv[0] == "record":
        return list(argv)
    has_command = argv[0] in (*_COMMANDS, "-h", "--help", "--version")
    return _bind_negative_times(argv if has_command else ["view", *argv])


def _bind_negative_times(argv: Sequence[str]) -> list[str]:
    """Write ``--time -20ms/1s`` as ``--time=-20ms/1s``: argparse takes the window for an option."""
    bound: list[str] = []
    for word in argv:
        if bound and bound[-1] == "--time" and re.match(r"-[\d.]", word):
            bound[-1] = f"--time={word}"
        else:
            bound.append(word)
    return bound


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = Parser(
        prog="flame",
        description="The GPU flame graph in your terminal.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"flame {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar=f"{{{','.join(_COMMANDS)}}}", required=True
    )
    for command in _COMMANDS.values():
        command.add_parser(commands)
    return parser


def _report_internal_error(error: Exception) -> int:
    if os.environ.get("FLAME_DEBUG"):
        traceback.print_exception(error)
    else:
        what = cut(printable(f"{type(error).__name__}: {error}"), 200)
        say(f"internal error: {what} (FLAME_DEBUG=1 shows the traceback)")
    return INTERNAL_ERROR


def _silence_stdout() -> None:
    """Let what is still buffered go nowhere: Python would try again at exit, and complain."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
