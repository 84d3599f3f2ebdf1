"""All keys of the main screen: one table behind bindings, footer and help."""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding

from flame.core.project import LEVELS

DIGITS = "1234567890"
"""The keys that switch a level, in the order of `LEVELS`."""


class Command(NamedTuple):
    """``keys`` as Textual names them, ``shown`` in the help, its first word in the footer.

    ``label`` is the footer's word; ``footer`` its place there, 0 keeps it out. ``help`` is a line
    of the help, empty where the line of a neighbour says it.
    """

    keys: str
    shown: str
    action: str
    label: str
    help: str
    footer: int = 0


_LEVEL_HELP = "a level on or off: " + " ".join(
    f"{key} {level}" for key, level in zip(DIGITS, LEVELS, strict=True)
)

MOVING = (
    Command("left,h", "← →  h l", "across(-1)", "", "previous, next frame on the row"),
    Command("right,l", "", "across(1)", "", ""),
    Command("up,k", "↑ ↓  k j", "up", "", "frame above, widest frame below"),
    Command("down,j", "", "down", "", ""),
    Command("home,g", "home g", "home", "", "the zoomed frame"),
    Command("pageup", "pgup pgdn", "page(-1)", "", "scroll a deep tree"),
    Command("pagedown", "", "page(1)", "", ""),
)

ZOOMING = (
    Command("enter", "enter", "zoom", "zoom", "zoom to the frame, or to its run of narrow ones", 2),
    Command("u,backspace", "u", "out", "out", "zoom out by one frame (also backspace)", 3),
    Command("z", "z", "undo", "undo", "undo the last zoom", 9),
    Command("escape", "esc", "escape", "reset", "leave the search, then zoom out to everything", 4),
)

SEARCHING = (
    Command("slash", "/", "search", "", "search names: a regular expression"),
    Command("n", "n N", "match(1)", "", "next, previous match"),
    Command("N", "", "match(-1)", "", ""),
    Command("asterisk", "*", "same", "same name", "search the selected frame's name", 8),
)

SHOWING = (
    Command("m", "m M", "metric(1)", "metric", "next, previous metric: GPU time, idle, …", 5),
    Command("M", "", "metric(-1)", "", ""),
    Command("L", "L", "levels", "levels", "choose and order the levels", 6),
    *(
        Command(
            key, "" if place else "1 … 0", f"level('{level}')", "", "" if place else _LEVEL_HELP
        )
        for place, (key, level) in enumerate(zip(DIGITS, LEVELS, strict=True))
    ),
    Command("d", "d", "details", "details", "details pane on or off", 7),
    Command("left_square_bracket", "[ ]", "scroll_details(-1)", "", "scroll the details"),
    Command("right_square_bracket", "", "scroll_details(1)", "", ""),
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
