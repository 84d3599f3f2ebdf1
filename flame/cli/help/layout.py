"""Lay out the help of a command: its usage in a line, and no word broken."""

from __future__ import annotations

import argparse

from flame.cli.streams import terminal_width


class Help(argparse.RawDescriptionHelpFormatter):
    """Fit the terminal; argparse makes one for each argument, and imports shutil for that.

    It has no colours, as before 3.14, which imports dataclasses and inspect for them: 11 ms.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_width(80) - 2)

    def _split_lines(self, text: str, width: int) -> list[str]:
        from textwrap import wrap

        return wrap(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)

    def _set_color(self, _: object) -> None:
        self._theme, self._decolor = _Plain(), str


class _Plain:
    """The colours of a help that has none."""

    def __getattr__(self, _: str) -> str:
        return ""


def usage_of(name: str, command: argparse.ArgumentParser) -> str:
    """Name what stands behind the options; these are listed below."""
    places = [action for action in command._actions if not action.option_strings]
    words = (_place(str(action.metavar), action.nargs) for action in places)
    return " ".join(("flame", name, "[options]", *words))


def _place(name: str, nargs: object) -> str:
    several = {"*": f"[{name} ...]", "+": f"{name} [{name} ...]", "?": f"[{name}]"}
    return several.get(str(nargs), name)


def put_common_last(command: argparse.ArgumentParser) -> None:
    """List the options that are in no group, ``--help`` among them, below the groups."""
    command._positionals.title = "arguments"
    command._action_groups.sort(key=lambda group: group is command._optionals)
