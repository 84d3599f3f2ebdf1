"""Name what keys and clicks may ask of a screen, and spell it as Textual's actions.

Tables of keys are made of these, so that a name that there is not fails at import and in mypy;
`check_actions` tells at import whether a screen has everything that its table asks for.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, StrEnum, auto
from inspect import signature

from textual.actions import parse
from textual.screen import Screen


class Action(StrEnum):
    """Name what can be asked of a screen: it has a method ``action_…`` for each of its commands."""

    ALL_CHANGES = auto()
    ARRANGE = auto()
    BASIS = auto()
    COLLAPSE = auto()
    COLOURS = auto()
    COPY = auto()
    COVERAGE = auto()
    DETAILS = auto()
    ESCAPE = auto()
    EXPORT = auto()
    FILTERS = auto()
    FINDINGS = auto()
    FOLD = auto()
    FORGET = auto()
    FORWARD = auto()
    FRAMEWORK = auto()
    HELP = auto()
    HOTTEST = auto()
    INVERT = auto()
    KERNEL_NAMES = auto()
    LEAVE = auto()
    LEVEL = auto()
    LEVELS = auto()
    LINES = auto()
    MATCH = auto()
    MEASURE = auto()
    METRIC = auto()
    METRICS = auto()
    MOVE = auto()
    NUMBERS = auto()
    ONE_RANK = auto()
    OPEN_RANK = auto()
    PALETTE = auto()
    PAUSE = auto()
    QUICK = auto()
    QUIT = auto()
    REDO = auto()
    SAME = auto()
    SANDWICH = auto()
    SASS = auto()
    SAVE = auto()
    SCREENSHOT = auto()
    SCROLL_DETAILS = auto()
    SEARCH = auto()
    SELECT = auto()
    SET_MARK = auto()
    SHOW_METRIC = auto()
    SHOW_MOMENT = auto()
    SHOW_SIDE = auto()
    SHOW_VIEW = auto()
    SORT = auto()
    SOURCE = auto()
    STEPS = auto()
    SUSPEND = auto()
    THEME = auto()
    UNDO = auto()
    UNFILTER = auto()
    UNIT = auto()
    VERSION = auto()
    VIEW = auto()
    WIDTH = auto()
    WINDOW = auto()
    WORDS = auto()
    WORST_RANK = auto()
    ZOOM_TO = auto()

    def __call__(self, *arguments: int | str) -> str:
        """Spell the action with its ``arguments``: ``metric(1)``."""
        plain = (value.value if isinstance(value, Enum) else value for value in arguments)
        return f"{self}({', '.join(map(repr, plain))})"

    def click(self, *arguments: int | str) -> str:
        """Spell the same for a click on a text, which belongs to a widget of the screen."""
        return f"screen.{self(*arguments) if arguments else self}"


class Move(StrEnum):
    """Name the moves within a view; each view has its own meaning of them, or none."""

    ACROSS = auto()
    CHAIN = auto()
    CLOSER = auto()
    COLUMN = auto()
    DOWN = auto()
    END = auto()
    ENTER = auto()
    FORK = auto()
    GAP = auto()
    HOME = auto()
    KINDS = auto()
    LONGEST_GAP = auto()
    MARK = auto()
    OUT = auto()
    PAGE = auto()
    PAN = auto()
    PARTS = auto()
    SORT_BY = auto()
    THREAD_ROWS = auto()
    UP = auto()

    def __call__(self, *step: int) -> str:
        """Spell the move as an action: ``move('across', -1)``."""
        return Action.MOVE(self, *step)


class QuickFilter(StrEnum):
    """Name the filters that a key makes of the selected frame's name."""

    ONLY = auto()
    WITHOUT = auto()
    FROM = auto()
    HIDE = auto()


def check_actions(screen: type[Screen[None]], actions: Iterable[str]) -> None:
    """Raise AttributeError or TypeError where ``screen`` has no method for one of ``actions``."""
    for action in actions:
        _, name, arguments = parse(action)
        signature(getattr(screen, f"action_{name}")).bind(screen, *arguments)
