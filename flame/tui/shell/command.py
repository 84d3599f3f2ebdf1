"""Define what a command of a screen is, and the id under which its keys can be changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeGuard

from flame.tui.shell.actions import Action


class Command(NamedTuple):
    """Bind ``keys``, as Textual names them, to an ``action``, and say so in help and footer.

    ``label`` is the footer's word; ``footer`` its place there, 0 keeps it out. ``help`` is a line
    of the help, empty where the line of a neighbour says it. ``views`` are the views in which it
    means something, all if empty.
    """

    keys: str
    shown: str
    action: str
    label: str
    help: str
    footer: int = 0
    views: tuple[str, ...] = ()


class Offer(NamedTuple):
    """Offer in the palette what belongs to the trace on screen: ``title``, help and ``action``."""

    title: str
    about: str
    action: str


class CommandScreen(Protocol):
    """Say what the palette takes from a screen."""

    @property
    def commands(self) -> Sequence[Command]:
        """What can be asked of it."""
        ...

    @property
    def pane_name(self) -> str:
        """How commands call the view that is shown."""
        ...

    @property
    def offered(self) -> Mapping[str, Sequence[Offer]]:
        """What the palette has besides keys, by the command that it follows."""
        ...

    def said(self, text: str) -> str:
        """Say ``text``, which speaks of ranges in general, in the words of what is shown."""
        ...


def has_commands(screen: object) -> TypeGuard[CommandScreen]:
    """Tell whether ``screen`` has commands: dialogs, pages and the palette have none."""
    return hasattr(screen, "commands")


_STEPS = {"1": "next", "-1": "previous"}
_ORDINALS = ["second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
_IDS = {
    "across_previous": "left",
    "across_next": "right",
    "page_previous": "page_up",
    "page_next": "page_down",
    "enter": "zoom",
    "closer_next": "closer",
    "closer_previous": "farther",
    "pan_previous": "pan_left",
    "pan_next": "pan_right",
    "mark": "brush",
    "match_next": "next_match",
    "match_previous": "previous_match",
    "same": "same_name",
    "sort_next": "sort",
    "kinds_next": "rows",
    "gap_next": "next_gap",
    "gap_previous": "previous_gap",
    "longest_gap_next": "longest_gap",
    "longest_gap_previous": "longer_gap",
    "scroll_details_previous": "details_up",
    "scroll_details_next": "details_down",
    "coverage": "notes",
    "theme_next": "theme",
    "kernel_names_next": "kernel_names",
    "window_next": "window",
    "basis_next": "basis",
    "width_next": "width",
    "set_mark": "mark",
    "parts_next": "parts",
    "sort_by_0": "sort_by_name",
    "sort_by_next": "sort_by_first",
    **{f"sort_by_{place}": f"sort_by_{word}" for place, word in enumerate(_ORDINALS, 2)},
}
"""What people would call a command, where its action is called otherwise."""


def id_of(command: Command) -> str:
    """``flame.metric_next`` of ``metric(1)``, ``flame.zoom`` of the move ``enter``."""
    words = re.findall(r"-?\w+", command.action)
    named = "_".join(_STEPS.get(word, word) for word in words if word != "move")
    return "flame." + _IDS.get(named, named)


SUSPEND = Command("ctrl+z", "ctrl+z", Action.SUSPEND, "", "stop, back to the shell: fg goes on")
"""The command that every screen has on a terminal; there is no shell behind a browser."""


def stops_no_more(keymap: Mapping[str, str]) -> bool:
    """Tell whether the key that stops the app has been given to another command."""
    taken = (SUSPEND.keys in keys.split(",") for keys in keymap.values())
    return id_of(SUSPEND) not in keymap and any(taken)
