"""Find out whether the terminal erases cells in the background that is set."""

from __future__ import annotations

from collections.abc import Mapping

_SEQUENCES = {"ech": b"\x1b[%p1%dX", "el": b"\x1b[K"}
"""What the app would send, as terminfo has it."""


def erases_in_background(environment: Mapping[str, str]) -> bool:
    """Tell whether the terminal of ``environment`` erases in the background that is set.

    That is BCE (background colour erase). Of GNU screen nobody knows: it depends on its settings.
    tmux does since 2.4, and says its name since 3.2; its terminfo does not say so. What is inside
    of an unknown one is not what TERM says.
    """
    if "STY" in environment:
        return False
    if "TMUX" in environment:
        return environment.get("TERM_PROGRAM") == "tmux"
    return _says_so(environment.get("TERM", ""))


def _says_so(terminal: str) -> bool:
    """Whether terminfo knows ``terminal``, and that it erases so."""
    try:
        import curses
    except ImportError:  # a Python built without it
        return False
    try:
        curses.setupterm(terminal, 1)
    except curses.error:
        return False
    known = all(curses.tigetstr(name) == sent for name, sent in _SEQUENCES.items())
    return known and curses.tigetflag("bce") > 0
