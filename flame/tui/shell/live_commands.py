"""List what keys mean besides where a recording goes on."""

from __future__ import annotations

from flame.tui.shell.actions import Action
from flame.tui.shell.command import Command

LIVE = (
    Command(
        "p", "p", Action.PAUSE, "pause", "stand still, and go on: nothing is lost meanwhile", 1
    ),
    Command(
        "W", "W", Action.WINDOW(1), "window", "the last 10 s, the last 60 s, all, since the mark", 1
    ),
    Command(
        "M", "M", Action.SET_MARK, "mark", "mark this moment, and show what runs from now on", 1
    ),
    Command("S", "S", Action.SAVE, "save", "save what has been recorded, or what is shown", 1),
)
"""What there is besides where a recording goes on."""
