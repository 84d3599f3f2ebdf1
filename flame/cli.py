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
from typing import TYPE_CHECKING, BinaryIO, NoReturn, TextIO

from flame._version import __version__
from flame.core.errors import CancelledError, FlameError, InputError, NoMatchError, UsageError
from flame.terminal import cut, printable

if TYPE_CHECKING:
    from flame.core.options import LoadOptions
    from flame.core.profile import Profile
    from flame.core.selection import Selection

INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h."""

_SUFFIX = {"folded": ".collapsedstack.txt", "speedscope": ".speedscope.json"}
_EPILOG = """\
'flame PATH' alone is 'flame view PATH'. 'flame COMMAND --help' shows a command's options.

exit codes: 0 ok, 2 usage, 3 input cannot be read, 4 nothing matches the selection,
            70 internal error (FLAME_DEBUG=1 shows the traceback), 130 interrupted
"""


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
        _say(str(error))
        return error.exit_code
    except Exception as error:
        return _internal_error(error)


def _run(argv: Sequence[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names may hold what the locale's encoding, or even UTF-8, cannot.
        sys.stdout.reconfigure(errors="replace")
    try:
        args, unknown = _parser().parse_known_args(_completed(argv))
    except SystemExit:  # --help or --version has been answered
        return 0
    if unknown:
        raise UsageError(f"unknown: {' '.join(unknown)} (see flame {args.command} --help)")
    command: Callable[[argparse.Namespace], int] = args.run
    return command(args)


def _completed(argv: Sequence[str]) -> list[str]:
    """``argv`` with the command ``view`` where none is named, and windows bound to their option."""
    if not argv:
        raise UsageError("name a trace to open: flame PATH (see flame --help)")
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


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
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
    _add_path(parser)
    text = "print a static view instead; so does view without a terminal"
    parser.add_argument("--print", action="store_true", help=text)
    _add_selection(parser)
    parser.set_defaults(run=_view)


def _add_export(parser: argparse.ArgumentParser) -> None:
    _add_path(parser)
    add = parser.add_argument
    add("-f", "--format", required=True, choices=list(_SUFFIX), help="what to write")
    text = "where to write; - is standard output (default: the trace's name with "
    text += f"{' or '.join(_SUFFIX.values())}, in this folder, never over an existing file)"
    add("-o", "--output", metavar="FILE", help=text)
    _add_selection(parser)
    parser.set_defaults(run=_export)


def _add_info(parser: argparse.ArgumentParser) -> None:
    _add_path(parser)
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.set_defaults(run=_info)


_COMMANDS = {
    "view": ("open a trace in the app", _add_view),
    "export": ("write the stacks of a trace for other tools", _add_export),
    "info": ("say what a trace holds and what it lacks", _add_info),
}


def _add_path(parser: argparse.ArgumentParser) -> None:
    text = "an Nsight Systems SQLite export, or a report (.nsys-rep) where nsys is installed"
    parser.add_argument("path", metavar="PATH", help=text)


def _add_selection(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("selection").add_argument
    levels = "process,thread,device,stream,python,native,launch,nvtx,shapes,kernel"
    add("--levels", metavar="L,L,…", help=f"the stack, root first: any of {levels}, in any order")
    add("--metric", metavar="M", help="gpu, count, launch, queue, idle or host")
    text = "what starts in this window, such as 5s/7s, 500ms/ or -20ms/1s2ms"
    add("--time", metavar="A/B", help=text)
    text = "what was launched in such an NVTX range: NAME or NAME@DOMAIN, both may hold * and ?"
    add("--nvtx-range", metavar="R", help=text)
    for name, text in _NUMBERED.items():
        add(f"--{name}", metavar="N", type=_numbers, action="extend", help=f"{text}; also N,N,…")
    add("--kernel", metavar="RE", help="kernels whose name matches this regular expression")
    add("--include", metavar="K,…", help="only these: kernel, memcpy, memset, graph")
    text = "base (default), demangled or mangled"
    add("--kernel-names", metavar="NAMES", default="base", help=text)
    text = "clean (default: without volatile ids) or raw (as recorded)"
    add("--nvtx-names", metavar="NAMES", default="clean", help=text)
    add("--shapes", action="store_true", help="tensor shapes of NVTX ranges as a level")
    text = r"replace in names, as in 'layers\.\d+=layers.*'; may be repeated"
    add("--rename", metavar="RE=REPL", action="append", default=[], help=text)
    text = "NVTX start/end ranges too, not just push/pop"
    add("--nvtx-start-end", action="store_true", help=text)


_NUMBERED = {
    "device": "what ran on this GPU",
    "stream": "what ran on this CUDA stream",
    "pid": "what this process launched",
    "tid": "what this thread launched",
}


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,18}", part) for part in parts):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number or a list such as 0,1")
    return [int(part) for part in parts]


def _view(args: argparse.Namespace) -> int:
    options, selection = _load_options(args), _selection(args)
    if args.print or not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        return _print_view(args.path, options, selection)
    from flame.tui.app import run

    return run(Path(args.path), options, selection)


def _print_view(path: str, options: LoadOptions, selection: Selection) -> int:
    from flame.static import view

    profile = _load(path, options)
    width = shutil.get_terminal_size((120, 24)).columns
    _print(view(profile, selection, path, width))
    return 0


def _export(args: argparse.Namespace) -> int:
    from flame.core.units import format_count, format_value
    from flame.exporters.atomic import STDOUT, atomic_output

    options, selection = _load_options(args), _selection(args)
    target = _output(args)
    profile = _load(args.path, options)
    tree = selection.tree(profile)
    total = int(tree.total[0])
    if not total:
        raise NoMatchError(f"{args.path}: nothing to export: {tree.metric.title} is zero")
    with atomic_output(target) as file:
        warnings = _WRITERS[args.format](profile, selection, file, Path(args.path).name)
    for warning in (*profile.warnings, *warnings):
        _say(f"note: {warning}")
    stacks = format_count(int((tree.own > 0).sum()))
    written = "standard output" if target == STDOUT else target
    amount = f"{tree.metric.title} {format_value(total, tree.metric.unit)}"
    _say(f"wrote {written}: {stacks} stacks, {amount}")
    return 0


def _write_folded(profile: Profile, selection: Selection, file: BinaryIO, name: str) -> list[str]:
    from flame.exporters import folded

    folded.write(selection.tree(profile), file)
    return []


def _write_speedscope(
    profile: Profile, selection: Selection, file: BinaryIO, name: str
) -> list[str]:
    from flame.exporters import speedscope

    return speedscope.write(profile, selection, file, name=name)


_WRITERS = {"folded": _write_folded, "speedscope": _write_speedscope}


def _output(args: argparse.Namespace) -> str:
    """Where to export to; UsageError rather than lose a file that was not named with ``-o``."""
    if args.output is None:
        name = Path(args.path).stem + _SUFFIX[args.format]
        if os.path.lexists(name):
            raise UsageError(f"{name}: is there already; name the file to write with -o")
        return name
    with suppress(OSError):
        if Path(args.output).samefile(args.path):
            raise UsageError(f"-o {args.output}: is the trace itself")
    return str(args.output)


def _info(args: argparse.Namespace) -> int:
    from flame.core.options import LoadOptions
    from flame.report import as_json, as_text

    profile = _load(args.path, LoadOptions())
    _print((as_json if args.json else as_text)(profile, args.path))
    return 0


def _load(path: str, options: LoadOptions) -> Profile:
    from flame.core.load import load
    from flame.progress import progress_on_stderr

    with progress_on_stderr() as progress:
        return load(path, options, progress)


def _load_options(args: argparse.Namespace) -> LoadOptions:
    from flame.core.options import LoadOptions

    return LoadOptions(args.nvtx_names, args.nvtx_start_end)


def _selection(args: argparse.Namespace) -> Selection:
    from flame.core.labels import Naming
    from flame.core.metrics import metric_of
    from flame.core.names import parse_rename
    from flame.core.project import parse_levels, with_shapes
    from flame.core.selection import Selection
    from flame.core.where import where

    ids = {name: tuple(found) for name in _NUMBERED if (found := getattr(args, name))}
    levels = None if args.levels is None else parse_levels(args.levels)
    return Selection(
        levels=with_shapes(levels) if levels and args.shapes else levels,
        where=where(
            time=args.time,
            nvtx=args.nvtx_range,
            kernel=args.kernel,
            include=args.include,
            **ids,
        ),
        metric=None if args.metric is None else metric_of(args.metric).key,
        naming=Naming(args.kernel_names, args.shapes, tuple(map(parse_rename, args.rename))),
    )


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


def _say(text: str) -> None:
    """Narrate: one line on stderr, whatever ``text`` holds."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"flame: {printable(text)}", file=sys.stderr)


def _internal_error(error: Exception) -> int:
    if os.environ.get("FLAME_DEBUG"):
        traceback.print_exception(error)
    else:
        what = cut(printable(f"{type(error).__name__}: {error}"), 200)
        _say(f"internal error: {what} (FLAME_DEBUG=1 shows the traceback)")
    return INTERNAL_ERROR


def _silence_stdout() -> None:
    """Let what is still buffered go nowhere: Python would try again at exit, and complain."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
