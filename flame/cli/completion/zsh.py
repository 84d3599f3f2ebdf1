"""Write the completion for zsh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flame.cli.completion.table import CommandSyntax, OptionSyntax, Takes, Value

_START = """\
#compdef flame
# Completion of flame for zsh; written by: flame completion zsh

_flame() {
    local curcontext="$curcontext" command
    local -a commands
"""

_END = """\
}

if [[ $funcstack[1] == _flame ]]; then
    _flame "$@"
else
    compdef _flame flame
fi
"""


def zsh_script(commands: Sequence[CommandSyntax]) -> str:
    """Write the script."""
    return "".join([_START, *(f"    {line}\n" for line in _body(commands)), _END])


def _body(commands: Sequence[CommandSyntax]) -> Iterator[str]:
    yield "commands=("
    for command in commands:
        yield f"    {_quoted(f'{command.name}:{command.about}')}"
    yield ")"
    yield "if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then"
    yield "    _alternative 'commands:command:(( ${commands} ))' 'files:trace:_files'"
    yield "    return"
    yield "fi"
    yield "command=$words[2]"
    yield "if (( ${commands[(I)$command:*]} )); then"
    yield "    shift words"
    yield "    (( CURRENT-- ))"
    yield "else"
    yield "    command=view"
    yield "fi"
    yield "case $command in"
    for command in commands:
        yield f"    {command.name})"
        yield "        _arguments -S : \\"
        for option in command.options:
            for name in option.names:
                yield f"            {_option(name, option)} \\"
        yield f"            {_rest(command.value)}"
        yield "        ;;"
    yield "esac"


def _option(name: str, option: OptionSyntax) -> str:
    takes = option.value.takes
    about = f"[{option.about}]"
    if takes == Takes.NOTHING:
        return _quoted(f"{name}{about}")
    sign = "=" if name.startswith("--") else "+"
    colons = "::" if option.value.is_optional else ":"
    return _quoted(
        f"*{name}{sign}{about}{colons}{option.names[-1].lstrip('-')}:{_action(option.value)}"
    )


def _rest(value: Value) -> str:
    if value.takes == Takes.NOTHING:
        return "'*: :'"
    if value.takes == Takes.COMMAND:
        return "'(-):command:_command_names' '*::arguments:_normal'"
    return _quoted(f"*:{value.takes.value}:{_action(value)}")


def _action(value: Value) -> str:
    words = " ".join(value.words)
    return {
        Takes.NOTHING: " ",
        Takes.FREE: " ",
        Takes.FILE: "_files",
        Takes.FOLDER: "_files -/",
        Takes.WORD: f"({words})",
        Takes.LIST: f"_sequence compadd - {words}",
        Takes.COMMAND: "_normal",
    }[value.takes]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
