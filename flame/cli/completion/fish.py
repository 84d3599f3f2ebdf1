"""Write the completion for fish, 3.0 and newer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flame.cli.completion.table import CommandSyntax, OptionSyntax, Takes, Value

_START = """\
# Completion of flame for fish; written by: flame completion fish

# Name the command of the line: view where none is named.
function __flame_command
    set -l words (commandline -opc)
    set -q words[2]; or return
    if contains -- $words[2] {names}
        echo $words[2]
    else
        echo view
    end
end

function __flame_is
    set -l command (__flame_command)
    test "$command" = $argv[1]
end

function __flame_starts
    set -l words (commandline -opc)
    not set -q words[2]
end

# Complete the last of several words with commas between them.
function __flame_list
    set -l before (commandline -ct | string replace -r '^--[^=]*=' '' | string match -r '.*,')
    set -q before[1]; or set before ''
    printf '%s\\n' $before$argv
end

complete -c flame -e
complete -c flame -f
complete -c flame -n __flame_starts -F
"""


def fish_script(commands: Sequence[CommandSyntax]) -> str:
    """Write the script."""
    start = _START.replace("{names}", " ".join(command.name for command in commands))
    return "".join([start, *(f"{line}\n" for line in _body(commands))])


def _body(commands: Sequence[CommandSyntax]) -> Iterator[str]:
    for command in commands:
        yield f"complete -c flame -n __flame_starts -a {command.name} -d {_quoted(command.about)}"
    for command in commands:
        at = f"complete -c flame -n '__flame_is {command.name}'"
        if rest := _rest(command.value):
            yield f"{at} {rest}"
        yield from (f"{at} {_option(option)}" for option in command.options)


def _option(option: OptionSyntax) -> str:
    names = " ".join(
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
    )
    return f"{names} {_action(option.value)} -d {_quoted(option.about)}".replace("  ", " ")


def _rest(value: Value) -> str:
    if value.takes == Takes.COMMAND:
        return "-a '(__fish_complete_subcommand --fcs-skip=2)'"
    return (
        "" if value.takes == Takes.NOTHING else _action(value).replace("-r ", "").replace("-x ", "")
    )


def _action(value: Value) -> str:
    words = " ".join(value.words)
    return {
        Takes.NOTHING: "",
        Takes.FREE: "-x",
        Takes.FILE: "-F" if value.is_optional else "-r -F",
        Takes.FOLDER: "-x -a '(__fish_complete_directories (commandline -ct))'",
        Takes.WORD: f"-x -a {_quoted(words)}",
        Takes.LIST: f"-x -a {_quoted(f'(__flame_list {words})')}",
        Takes.COMMAND: "-x",
    }[value.takes]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
