"""Write the completion for bash, 3.2 and newer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from flame.cli.completion.table import CommandSyntax, Takes, Value

_START = """\
# Completion of flame for bash; written by: flame completion bash

# Offer files beside the words that are offered.
_flame_files() {
    local file
    while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
}

_flame_folders() {
    local file
    while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -d -- "$cur")
    compopt -o filenames 2>/dev/null
}

_flame_words() {
    COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

# Complete the last of several words with commas between them.
_flame_list() {
    local before=""
    [[ $cur == *,* ]] && before="${cur%,*},"
    COMPREPLY=($(compgen -P "$before" -W "$1" -- "${cur##*,}"))
    compopt -o nospace 2>/dev/null
}

_flame() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=1
    COMPREPLY=()
    # "=" is a word of its own: --levels = nvtx
    if [[ $cur == "=" ]]; then
        cur="" prev=${COMP_WORDS[COMP_CWORD-1]}
    elif [[ $prev == "=" ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
"""

_END = """\
}

complete -F _flame flame
"""


def bash_script(commands: Sequence[CommandSyntax]) -> str:
    """Write the script."""
    return "".join([_START, *(f"    {line}\n".rstrip(" ") for line in _body(commands)), _END])


def _body(commands: Sequence[CommandSyntax]) -> Iterator[str]:
    names = " ".join(command.name for command in commands)
    yield "if ((COMP_CWORD == 1)) && [[ $cur != -* ]]; then"
    yield f'    _flame_words "{names}"'
    yield "    _flame_files"
    yield "    return"
    yield "fi"
    yield "local command=${COMP_WORDS[1]}"
    yield f"[[ $command =~ ^({names.replace(' ', '|')})$ ]] || command=view"
    yield 'case "$command $prev" in'
    for action, places in _grouped(commands).items():
        yield f"    {'|'.join(places)}) {action}; return ;;"
    yield "esac"
    yield "if [[ $cur == -* ]]; then"
    yield "    case $command in"
    for command in commands:
        words = [name for option in command.options for name in option.names]
        yield f'        {command.name}) _flame_words "{" ".join(words)}" ;;'
    yield "    esac"
    yield "    return"
    yield "fi"
    yield "case $command in"
    for command in commands:
        yield f"    {command.name}) {_action(command.value)} ;;"
    yield "esac"


def _grouped(commands: Iterable[CommandSyntax]) -> dict[str, list[str]]:
    """What is to be done after which option of which command."""
    found = defaultdict[str, list[str]](list)
    for command in commands:
        for option in command.options:
            if option.value.takes != Takes.NOTHING:
                places = (f'"{command.name} {name}"' for name in option.names)
                found[_action(option.value)].extend(places)
    return found


def _action(value: Value) -> str:
    words = " ".join(value.words)
    return {
        Takes.NOTHING: ":",
        Takes.FREE: ":",
        Takes.FILE: "_flame_files",
        Takes.FOLDER: "_flame_folders",
        Takes.WORD: f'_flame_words "{words}"',
        Takes.LIST: f'_flame_list "{words}"',
        Takes.COMMAND: 'COMPREPLY=($(compgen -c -- "$cur")); _flame_files',
    }[value.takes]
