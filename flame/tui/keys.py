"""All keys of the main screen: one table behind bindings, footer and help."""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding

from flame.core.project import LEVELS

DIGITS = "1234567890"
"""The keys that switch a level, in the order of `LEVELS`."""


class Command(NamedTuple):
    """``keys`` as Textual names them, ``shown`` to people; ``footer`` 0 keeps it out of the footer.

    ``label`` is the footer's word, ``help`` a line of the help.
    """

    keys: str
    shown: str
    action: str
    label: str
    help: str
    footer: int = 0


MOVING = (
    Command("left,h", "← h", "across(-1)", "", "previous frame on the row"),
    Command("right,l", "→ l", "across(1)", "", "next frame on the row"),
    Command("down,j", "↓ j", "down", "", "widest frame below"),
    Command("up,k", "↑ k", "up", "", "frame above"),
    Command("home,g", "home g", "home", "", "the zoomed frame"),
    Command("pageup", "pgup", "page(-1)", "", "scroll up, in deep trees"),
    Command("pagedown", "pgdn", "page(1)", "", "scroll down"),
)

ZOOMING = (
    Command("enter", "enter", "zoom", "zoom", "zoom to the frame, or to its run of narrow ones", 2),
    Command("u,backspace", "u", "out", "out", "zoom out by one frame (also backspace)", 3),
    Command("z", "z", "undo", "undo", "undo the last zoom", 9),
    Command("escape", "esc", "escape", "reset", "leave the search, then zoom out to everything", 4),
)

SEARCHING = (
    Command("slash", "/", "search", "search", "search names: a regular expression", 1),
    Command("n", "n", "match(1)", "", "next match"),
    Command("N", "N", "match(-1)", "", "previous match"),
    Command("asterisk", "*", "same", "same name", "search the selected frame's name", 8),
)

SHOWING = (
    Command("m", "m", "metric(1)", "metric", "next metric: GPU time, launch time, idle, …", 5),
    Command("M", "M", "metric(-1)", "", "previous metric"),
    Command("L", "L", "levels", "levels", "choose and order the levels", 6),
    *(
        Command(key, key, f"level('{level}')", "", f"{level} level on or off")
        for key, level in zip(DIGITS, LEVELS, strict=True)
    ),
    Command("d", "d", "details", "details", "details pane on or off", 7),
    Command("w", "w", "coverage", "notes", "what the trace covers, and its warnings", 10),
)

ALWAYS = (
    Command("question_mark,f1", "?", "help", "help", "this help", 98),
    Command("q", "q", "quit", "quit", "quit (also ctrl+c)", 99),
)

GROUPS: tuple[tuple[str, tuple[Command, ...]], ...] = (
    ("Move", MOVING),
    ("Zoom", ZOOMING),
    ("Search", SEARCHING),
    ("Show", SHOWING),
    ("", ALWAYS),
)

COMMANDS = tuple(command for _, group in GROUPS for command in group)

FOOTER = tuple(sorted((c for c in COMMANDS if c.footer), key=lambda command: command.footer))

MOUSE = (
    ("click", "select a frame, zoom to a part of the path above, run a key below"),
    ("double click", "zoom"),
    ("wheel", "scroll"),
)


def bindings() -> list[Binding]:
    """Every command as a binding, by an id under which it can be remapped."""
    return [
        Binding(command.keys, command.action, command.help, show=False, id=_id(command))
        for command in COMMANDS
    ]


def _id(command: Command) -> str:
    return "flame." + "".join(char if char.isalnum() else "_" for char in command.action)
