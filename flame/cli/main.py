"""The command line: arguments in, an exit code and at most one line of complaint out."""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from flame._version import __version__
from flame.attach.options import add_options as add_attach_options
from flame.attach.options import check, window_of
from flame.console.terminal import cut, printable, say
from flame.core.errors import CancelledError, FlameError, InputError, UsageError
from flame.exporters import SUFFIXES
from flame.options.selection import (
    Parser,
    add_ncu,
    add_selection,
    load_options_of,
    parse,
    selection_of,
)
from flame.record.options import add_options, plan_of

if TYPE_CHECKING:
    from flame.core.loading.inputs import Inputs
    from flame.core.model.profile import Profile
    from flame.core.options import LoadOptions
    from flame.core.projection.selection import Selection

INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h."""

_EPILOG = """\
'flame PATH' alone is 'flame view PATH'. 'flame COMMAND --help' shows a command's options.

exit codes: 0 ok, 2 usage, 3 input cannot be read, 4 nothing matches the selection,
            70 internal error (FLAME_DEBUG=1 shows the traceback), 130 interrupted
"""
_VIEW_EPILOG = """\
The app reads $XDG_CONFIG_HOME/flame/config.toml (default: ~/.config/flame/config.toml; FLAME_CONFIG
names another file): theme, keys and more, see docs/configuration.md. NO_COLOR and FLAME_ASCII=1
are respected.
"""
_DOCTOR_EPILOG = "exit codes: 0 a GPU can be recorded here, 1 something for that is missing\n"
_PORT = 8000
_WIDEST_TEXT = 100


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on ``argv`` (by default the process's) and return the exit code."""
    code = _guarded(sys.argv[1:] if argv is None else argv)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _silence_stdout()
    return code


def _guarded(argv: Sequence[str]) -> int:
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
        return _internal_error(error)


def _run(argv: Sequence[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names may hold what the locale's encoding, or even UTF-8, cannot.
        sys.stdout.reconfigure(errors="replace")
    try:
        words = _completed(argv)
        args = _parsed(words)
        if args.command == "view" and args.state is not None:
            args = _restored(args, words)
    except SystemExit:  # --help or --version has been answered
        return 0
    command: Callable[[argparse.Namespace], int] = args.run
    return command(args)


def _parsed(words: list[str]) -> argparse.Namespace:
    args, unknown = _parser().parse_known_args(words, argparse.Namespace(words=words))
    if "paths" in args:
        # argparse takes paths from one place only; others may stand behind an option.
        args.paths += [word for word in unknown if not word.startswith("-")]
        unknown = [word for word in unknown if word.startswith("-")]
    if unknown:
        raise UsageError(f"unknown: {' '.join(unknown)} (see flame {args.command} --help)")
    return args


def _restored(args: argparse.Namespace, words: list[str]) -> argparse.Namespace:
    """``words`` after the options of the state that they name, as if both had been given."""
    from flame.options.state import decode

    state = decode(args.state)
    parse(state.options)  # These may say what to show, and no more.
    restored = _parsed([words[0], *state.options, *words[1:]])
    restored.paths = args.paths or state.traces
    restored.state = state
    restored.words = words
    return restored


def _completed(argv: Sequence[str]) -> list[str]:
    """``argv`` with the command ``view`` where none is named, and windows bound to their option."""
    if not argv:
        raise UsageError("name a trace to open: flame PATH (see flame --help)")
    if argv[0] == "record":
        return list(argv)
    asked = argv[0] in (*_COMMANDS, "-h", "--help", "--version")
    return _bind_negative_times(argv if asked else ["view", *argv])


def _bind_negative_times(argv: Sequence[str]) -> list[str]:
    """``--time -20ms/1s`` as ``--time=-20ms/1s``: argparse takes the window for an option."""
    bound: list[str] = []
    for word in argv:
        if bound and bound[-1] == "--time" and re.match(r"-[\d.]", word):
            bound[-1] = f"--time={word}"
        else:
            bound.append(word)
    return bound


def _parser() -> argparse.ArgumentParser:
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
    for name, (text, add_arguments) in _COMMANDS.items():
        add_arguments(commands.add_parser(name, help=text, description=text, allow_abbrev=False))
    return parser


def _add_view(parser: argparse.ArgumentParser) -> None:
    text = f"{_TRACES}. With --state, if left out, those of the state"
    parser.add_argument("paths", metavar="PATH", nargs="*", help=text)
    text = "return to a place saved by the app: JSON, a file, or (default) the last one"
    parser.add_argument("--state", metavar="JSON|FILE", nargs="?", const="", help=text)
    text = "print a static view instead; this is the default without a terminal"
    parser.add_argument("--print", action="store_true", help=text)
    text = "show the app in a browser instead, on this machine's loopback address"
    parser.add_argument("--web", action="store_true", help=text)
    text = f"port of --web (default: {_PORT}; 0: any free port)"
    parser.add_argument("--port", metavar="N", type=_port, default=_PORT, help=text)
    add_selection(parser)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _VIEW_EPILOG
    parser.set_defaults(run=_view)


def _add_export(parser: argparse.ArgumentParser) -> None:
    _add_paths(parser)
    add = parser.add_argument
    add("-f", "--format", required=True, choices=list(SUFFIXES), help="format to write")
    text = "where to write; - is standard output (default: the trace's name with "
    text += f"{' or '.join(SUFFIXES.values())}, in this folder, never over an existing file)"
    add("-o", "--output", metavar="FILE", help=text)
    add_selection(parser)
    parser.set_defaults(run=_export)


def _add_info(parser: argparse.ArgumentParser) -> None:
    _add_paths(parser)
    add_ncu(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    parser.set_defaults(run=_info)


def _add_record(parser: argparse.ArgumentParser) -> None:
    add_options(parser)
    parser.set_defaults(run=_record)


def _add_attach(parser: argparse.ArgumentParser) -> None:
    add_attach_options(parser)
    parser.set_defaults(run=_attach)


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _DOCTOR_EPILOG
    parser.set_defaults(run=_doctor)


_COMMANDS = {
    "record": ("run a command and record what it does on the GPU", _add_record),
    "view": ("open a trace in the app", _add_view),
    "attach": ("watch what a running program does on the GPU", _add_attach),
    "export": ("write the stacks of a trace for other tools", _add_export),
    "info": ("print what a trace contains and what it lacks", _add_info),
    "doctor": ("check what works on this machine, and how to fix what does not", _add_doctor),
}


_TRACES = (
    "a recording (its folder, or one dump of it); an Nsight Systems SQLite export, or a report "
    "(.nsys-rep) where nsys is installed; a PyTorch profiler trace; folded stacks, speedscope or "
    "Triton Proton; an Nsight Compute report (see --ncu) without a trace. Several files are shown "
    "as one, each as a rank"
)


def _add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help=_TRACES)


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port from 0 to 65535")
    return int(text)


def _record(args: argparse.Namespace) -> int:
    from flame.record.command import record

    return record(plan_of(args))


def _attach(args: argparse.Namespace) -> int:
    check(args)
    from flame.attach.command import listing, stop, target_of
    from flame.attach.pc import switch
    from flame.options.config import is_in_browser

    if args.stop:
        return stop(args.target)
    if args.pc is not None:
        return switch(target_of(args.target), args.pc)
    on_terminal = is_in_browser() or (_is_terminal(sys.stdin) and _is_terminal(sys.stdout))
    if args.list or (args.target is None and not on_terminal):
        width = shutil.get_terminal_size((_WIDEST_TEXT, 24)).columns
        _print(listing(args.json, width, getattr(sys.stdout, "encoding", "") or ""))
    return 0 if args.list else _watch(args, on_terminal)


def _watch(args: argparse.Namespace, on_terminal: bool) -> int:
    """The app on a running program."""
    selection_of(args)  # What is wrong with it, is wrong without a terminal, too.
    options, window = load_options_of(args), window_of(args)
    if not on_terminal:
        raise UsageError(
            "attach shows the app, which needs a terminal: flame attach --list, or flame view PATH"
        )
    from flame.options.config import read_config
    from flame.tui.attach.run import run

    config = read_config()
    args.kernel_names = args.kernel_names or config.kernel_names
    return run(args.target, options, selection_of(args), window, config)


def _doctor(args: argparse.Namespace) -> int:
    from flame.doctor.report import as_json, as_text, examine, is_ready

    checks = examine()
    _print(as_json(checks) if args.json else as_text(checks))
    return 0 if is_ready(checks) else 1


def _view(args: argparse.Namespace) -> int:
    if not args.paths:
        raise UsageError("name a trace to open: flame PATH (see flame --help)")
    options, selection = load_options_of(args), selection_of(args)
    if args.web:
        return _serve(args)
    from flame.options.config import is_in_browser, read_config

    on_terminal = _is_terminal(sys.stdin) and _is_terminal(sys.stdout)
    if args.print or not (on_terminal or is_in_browser()):
        return _print_view(_inputs(args), options, selection)
    config = read_config()
    from flame.tui.main.app import run

    args.kernel_names = args.kernel_names or config.kernel_names
    return run(_inputs(args), options, selection_of(args), args.state, config)


def _serve(args: argparse.Namespace) -> int:
    from flame.options.config import read_config

    if args.print:
        raise UsageError("--web and --print exclude each other")
    try:
        from flame.cli.web import serve
    except ModuleNotFoundError as error:
        need = f"--web needs {error.name}, which is not installed"
        raise UsageError(f"{need}: pip install 'flame-view[web]'") from None
    if keys := read_config().keys:
        from flame.tui.shell.keymap import keymap_of

        keymap_of(keys)  # A mistake is better told here than by every page.
    return serve(args.words, _inputs(args).title, args.port)


def _print_view(inputs: Inputs, options: LoadOptions, selection: Selection) -> int:
    from flame.console.print_view import view

    profile = _load(inputs, options)
    width = shutil.get_terminal_size((120, 24)).columns
    _print(view(profile, selection, inputs.title, width))
    return 0


def _export(args: argparse.Namespace) -> int:
    from flame.cli.export import export

    return export(args)


def _info(args: argparse.Namespace) -> int:
    from flame.console.info import as_json, as_text
    from flame.core.options import LoadOptions

    inputs = _inputs(args)
    profile = _load(inputs, LoadOptions(ncu=tuple(args.ncu)))
    width = shutil.get_terminal_size((_WIDEST_TEXT, 24)).columns
    _print(
        as_json(profile, inputs)
        if args.json
        else as_text(profile, inputs, min(width, _WIDEST_TEXT))
    )
    return 0


def _inputs(args: argparse.Namespace) -> Inputs:
    from flame.core.loading.inputs import Inputs

    return Inputs(tuple(map(Path, args.paths)))


def _load(inputs: Inputs, options: LoadOptions) -> Profile:
    from flame.console.progress import load_with_progress

    return load_with_progress(inputs.paths, options)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _print(text: str) -> None:
    if sys.stdout is None:
        raise InputError("standard output is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write to standard output: {error.strerror}") from None


def _internal_error(error: Exception) -> int:
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
