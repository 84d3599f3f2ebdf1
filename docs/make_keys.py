"""Writes the table of keys and the list of commands into README.md, from the bindings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flame.tui.shell.commands import COMMANDS, LIVE, LIVE_COMMANDS, Command
from flame.tui.shell.keymap import short_id
from flame.tui.shell.sass_commands import SASS_COMMANDS

README = Path(__file__).parents[1] / "README.md"


def table(commands: Sequence[Command]) -> str:
    """The keys of ``commands`` as a Markdown table."""
    rows = [f"| `{command.shown}` | {command.help} |" for command in commands if command.help]
    return "\n".join(["| key | |", "|---|---|", *rows, ""])


def names() -> str:
    """What the configuration calls every command."""
    known = dict.fromkeys(
        short_id(command) for command in (*COMMANDS, *LIVE_COMMANDS, *SASS_COMMANDS)
    )
    return ", ".join(f"`{name}`" for name in known) + "\n"


def with_keys(text: str) -> str:
    """``text`` with its table of keys and its list of commands as they should be."""
    parts = {
        "keys": table(COMMANDS),
        "live keys": table(LIVE),
        "sass keys": table(SASS_COMMANDS),
        "commands": names(),
    }
    for mark, part in parts.items():
        begin, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + part + end + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    README.write_text(with_keys(README.read_text(encoding="utf-8")), encoding="utf-8")
