"""Give commands the keys that the user has configured in place of their own."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from textual.binding import Binding, Keymap
from textual.keys import Keys, format_key

from flame.core.errors import UsageError
from flame.options.config import config_path, refuse_unknown
from flame.tui.shell.command import SUSPEND, Command, id_of, stops_no_more
from flame.tui.shell.commands import COMMANDS, DIFF_COMMANDS, LIVE_COMMANDS, RANKS_COMMANDS
from flame.tui.shell.sass_commands import SASS_COMMANDS

_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_NAMED = sorted({key.value.rpartition("+")[2] for key in Keys if key.value.isascii()})
_ALWAYS_QUITS = "ctrl+c"


def keymap_of(wanted: Mapping[str, str], commands: Sequence[Command] = COMMANDS) -> Keymap:
    """Keys by binding id, of what the configuration says by command (`short_id`).

    Raises UsageError for commands and keys that there are not, and for a key of two ``commands``,
    or of two in the view of instructions; those of others are left out. The key that stops the app
    may be given to another.
    """
    try:
        keymap = _keymap_of(wanted)
        here = {id_of(command) for command in (*commands, *SASS_COMMANDS)}
        keymap = {name: keys for name, keys in keymap.items() if name in here}
        for screen in (commands, SASS_COMMANDS):
            _refuse_shared(keymap, screen)
    except UsageError as error:
        raise UsageError(f"{config_path()}: {error}") from None
    return keymap


def _keymap_of(wanted: Mapping[str, str]) -> Keymap:
    every = (*COMMANDS, *LIVE_COMMANDS, *DIFF_COMMANDS, *RANKS_COMMANDS, *SASS_COMMANDS)
    known = list(dict.fromkeys(map(short_id, every)))
    keymap: dict[str, str] = {}
    for name, keys in wanted.items():
        refuse_unknown(name, known, "[keys]: unknown command")
        named = dict.fromkeys(_named(key, f"[keys] {name}") for key in _split(keys))
        if not named:
            raise UsageError(f"[keys] {name}: no key")
        keymap[f"flame.{name}"] = ",".join(named)
    return keymap


def short_id(command: Command) -> str:
    """Tell how the configuration calls ``command``."""
    return id_of(command).removeprefix("flame.")


def remapped(commands: Iterable[Command], keymap: Keymap) -> list[Command]:
    """``commands`` as ``keymap`` has them, for the footer and the help.

    The first of several commands that share a line of help shows the keys of all of them. The
    command that stops the app is missing where its key is another's.
    """
    own = [command for command in commands if command != SUSPEND or not stops_no_more(keymap)]
    changed = [c._replace(keys=keymap.get(id_of(c), c.keys)) for c in own]
    for place, group in _sharing_help(changed).items():
        if any(id_of(command) in keymap for command in group):
            keys = [key for command in group for key in _split(command.keys)]
            shown = " ".join(_shown(key) for key in dict.fromkeys(keys))
            changed[place] = changed[place]._replace(shown=shown)
    return changed


def _sharing_help(commands: list[Command]) -> dict[int, list[Command]]:
    """By place of the one that has the line of help: it and those behind that have none."""
    groups: dict[int, list[Command]] = {}
    first = 0
    for place, command in enumerate(commands):
        # What has no keys of its own is a word for the footer of another view.
        if command.help or not command.keys or (command.shown and not command.help):
            first = place
        groups.setdefault(first, []).append(command)
    return groups


def _split(keys: str) -> list[str]:
    return ["comma"] if keys.strip() == "," else [key.strip() for key in keys.split(",") if key]


def _named(key: str, where: str) -> str:
    """``question_mark`` of ``?``; UsageError if no key is called so."""
    *modifiers, base = key.split("+") if len(key) > 1 else [key]
    modifiers = [modifier.lower() for modifier in modifiers]
    base = base.lower() if len(base) > 1 else base
    if not ((len(base) == 1 and base.isprintable()) or base in _NAMED or _is_character(base)):
        refuse_unknown(base, _NAMED, f"{where}: unknown key")
    for modifier in modifiers:
        refuse_unknown(modifier, _MODIFIERS, f"{where}: unknown key")
    return "+".join(
        [*modifiers, *(binding.key for binding in Binding.make_bindings([Binding(base, "")]))]
    )


def _is_character(name: str) -> bool:
    """Whether ``name`` is how Textual calls a character that is neither letter nor digit."""
    try:
        return not unicodedata.lookup(name.replace("_", " ")).isalnum()
    except KeyError:
        return False


def _refuse_shared(keymap: Keymap, commands: Sequence[Command]) -> None:
    bound = [c for c in commands if c.keys and (c != SUSPEND or not stops_no_more(keymap))]
    keys = {id_of(c): keymap.get(id_of(c), c.keys).split(",") for c in bound}
    users = Counter(key for own in keys.values() for key in own)
    for name in filter(keys.__contains__, keymap):
        for key in keys[name]:
            others = [other for other in keys if other != name and key in keys[other]]
            if key == _ALWAYS_QUITS or users[key] > 1:
                what = others[0].removeprefix("flame.") if others else "quit"
                command = name.removeprefix("flame.")
                raise UsageError(f"[keys] has {_shown(key)} for both {command} and {what}")


def _shown(key: str) -> str:
    """A key as the help writes it."""
    return {"enter": "enter", "backspace": "backspace"}.get(key) or format_key(key)
