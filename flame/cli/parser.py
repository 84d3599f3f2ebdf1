"""Parse the command line: the options of the command that it names, or the names of all."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module

from flame._version import __version__
from flame.cli.help.examples import examples_of
from flame.cli.help.layout import Help, put_common_last, usage_of
from flame.core.errors import UsageError
from flame.core.nearest import nearest
from flame.options.parser import Parser

_EPILOG = """\
'flame PATH' alone is 'flame view PATH'; 'flame' alone lists traces to open.
'flame COMMAND --help' shows a command's options.

exit codes: 0 ok, 2 usage, 3 input cannot be read, 4 nothing matches the selection,
            5 and 6 report and diff --fail-on: the condition holds, cannot be decided,
            7 ranks: written, but some ranks are missing in it,
            70 internal error (FLAME_DEBUG=1 shows the traceback), 130 interrupted
"""
COMMANDS = {
    "record": "run a command and record what it does on the GPU",
    "view": "open a trace in the app",
    "attach": "watch what a running program does on the GPU",
    "export": "write the stacks of a trace for other tools",
    "report": "print where the time went and what is wrong, in numbers that add up",
    "diff": "compare two runs, before and after",
    "ranks": "sum up the traces of many ranks in one small file, and compare the ranks",
    "top": "list the frames that weigh most",
    "info": "print what a trace contains and what it lacks",
    "cache": "show what is kept of traces and reports to open them quickly, or remove it",
    "mcp": "let an assistant ask about traces, over the Model Context Protocol",
    "doctor": "check what works on this machine, and how to fix what does not",
    "completion": "print what bash, zsh or fish need to complete command lines",
}
"""What each command does, as help. In the module beside this one that is called like it,
`add_options` adds its options to its parser, and `run` does what they ask for."""


def parse_command_line(argv: Sequence[str]) -> argparse.Namespace:
    """Parse ``argv``, whose command is ``run`` of the result; SystemExit where it asks for help.

    Raises UsageError where it cannot be understood.
    """
    words = complete(argv)
    args = parse(words)
    if args.command == "view" and args.state is not None:
        return _restore(args, words)
    return args


def parse(words: list[str]) -> argparse.Namespace:
    """Parse ``words``, the first of which is a command, or an option that no command has."""
    args, unknown = build_parser(words[:1]).parse_known_args(words, argparse.Namespace(words=words))
    if "paths" in args:
        # argparse takes paths from one place only; others may stand behind an option.
        args.paths += [word for word in unknown if not word.startswith("-")]
        unknown = [word for word in unknown if word.startswith("-")]
    if unknown:
        options = [word.partition("=")[0] for word in unknown]
        known = _options_of(args.command) if options[0].startswith("--") else ()
        meant = nearest(options[0], known)
        hint = f"did you mean {meant}?" if meant else f"see flame {args.command} --help"
        raise UsageError(f"unknown: {' '.join(unknown)} ({hint})")
    return args


def _options_of(command: str) -> list[str]:
    return [
        option
        for action in command_parsers((command,))[command]._actions
        for option in action.option_strings
        if option.startswith("--")
    ]


def _restore(args: argparse.Namespace, words: list[str]) -> argparse.Namespace:
    """Parse ``words`` after the options of the state that they name, as if both had been given."""
    from flame.options import selection
    from flame.options.state import decode

    state = decode(args.state)
    selection.parse(state.options)  # These may say what to show, and no more.
    restored = parse([words[0], *state.options, *words[1:]])
    restored.paths = args.paths or state.traces
    restored.state = state
    restored.words = words
    return restored


def complete(argv: Sequence[str]) -> list[str]:
    """Put the command ``view`` before ``argv`` where none is named, and bind windows to --time.

    ``help`` is what people type for ``--help``, of a command, too.
    """
    if not argv:
        return ["view"]
    if argv[0] == "record":
        return list(argv)
    if argv[0] == "help" and not os.path.lexists("help"):
        return [*(word for word in argv[1:2] if word in COMMANDS), "--help"]
    has_command = argv[0] in (*COMMANDS, "-h", "--help", "--version")
    if not has_command:
        _refuse_mistyped(argv[0])
    return _bind_negative_times(argv if has_command else ["view", *argv])


def _refuse_mistyped(word: str) -> None:
    """Raise UsageError for what is nearly a command, and no file."""
    if not word.isalpha() or os.path.lexists(word):
        return
    if meant := nearest(word.lower(), COMMANDS):
        raise UsageError(f"{word}: no command and no file: did you mean flame {meant}?")


def _bind_negative_times(argv: Sequence[str]) -> list[str]:
    """Write ``--time -20ms/1s`` as ``--time=-20ms/1s``: argparse takes the window for an option."""
    bound: list[str] = []
    for word in argv:
        if bound and bound[-1] == "--time" and re.match(r"-[\d.]", word):
            bound[-1] = f"--time={word}"
        else:
            bound.append(word)
    return bound


def build_parser(wanted: Collection[str] = COMMANDS.keys()) -> argparse.ArgumentParser:
    """Build the parser of the commands ``wanted``; where that is none of all, without options."""
    parser = Parser(
        prog="flame",
        description="The GPU flame graph in your terminal.",
        epilog=_EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"flame {__version__}")
    commands = parser.add_subparsers(
        prog="flame", dest="command", metavar=f"{{{','.join(COMMANDS)}}}", required=True
    )
    for name in [each for each in COMMANDS if each in wanted] or COMMANDS:
        text = COMMANDS[name]
        command = commands.add_parser(
            name,
            help=text,
            description=f"{text}\n\n{examples_of(name)}",
            allow_abbrev=False,
            formatter_class=Help,
        )
        if name in wanted:
            import_module(f"flame.cli.{name}").add_options(command)
            command.usage = command.usage or usage_of(name, command)
            put_common_last(command)
    return parser


def command_parsers(
    wanted: Collection[str] = COMMANDS.keys(),
) -> Mapping[str, argparse.ArgumentParser]:
    """Build the parsers of the commands ``wanted``, by name."""
    parser = build_parser(wanted)
    found: Mapping[str, argparse.ArgumentParser] = next(
        action.choices
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return found
