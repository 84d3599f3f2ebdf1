"""List all keys of the main screen: one table behind bindings, footer and help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from textual.binding import Binding

from flame.core.projection.levels import LEVELS
from flame.core.projection.named_levels import ARRANGEMENT_KEYS, NAMED_LEVELS
from flame.tui.shell.actions import Action, Move, QuickFilter
from flame.tui.shell.command import SUSPEND, Command, id_of
from flame.tui.shell.diff_commands import DIFF, compared
from flame.tui.shell.live_commands import LIVE
from flame.tui.shell.ranks_commands import COMMANDS_OF_VIEW, RANKS, of_ranks
from flame.tui.shell.view_commands import (
    FRAMES,
    REPORT,
    TABLE,
    TIMELINE,
    TIMELINE_ALONE,
    TOP,
    WIDE,
    ZOOMED,
)

_RARE = {
    "rank": "R",
    "phase": "U",
    "stack": "F",
    "nested": "J",
    "module": "Q",
    "category": "T",
    "cause": "W",
    "sass": "I",
    "stall": "r",
}
_USUAL = [level for level in LEVELS if level not in {*_RARE, "wait", "pool"}]
LEVEL_KEYS = {**dict(zip(_USUAL, "1234567890", strict=True)), **_RARE}
"""The key that switches each level of a trace: digits in their order, letters for the rare ones."""


_ENTER_HELP = (
    "zoom to the frame, or to its run of narrow ones; table, timeline: to a step alone; "
    "report: show it in the picture"
)
_ESCAPE_HELP = "leave the search, then zoom out to everything; back to the report"
_EXPORT_HELP = "export: folded, speedscope, SVG; the report: Markdown, CSV, JSON"
_COPY_HELP = "copy the frame's name, its stack; of the report the row, with titles"
_BRUSH_HELP = "begin a window of time; enter filters by it"
_LEVEL_HELP = "a level on or off: " + " ".join(
    f"{key} {level}" for level, key in LEVEL_KEYS.items()
)
VIEWS = (
    Command(
        "tab",
        "tab",
        Action.VIEW(1),
        "view",
        "next view: icicle, sandwich, top, timeline, report",
        1,
    ),
    Command("shift+tab", "", Action.VIEW(-1), "", ""),
    Command(
        "exclamation_mark", "!", Action.FINDINGS, "findings", "the report: what to do first", 10
    ),
    Command(
        "x",
        "x",
        Action.SANDWICH,
        "sandwich",
        "callers and callees of the selected frame",
        8,
        FRAMES,
    ),
    Command(
        "a",
        "a",
        Action.SASS,
        "SASS",
        "instructions of the selected kernel, and their stalls",
        6,
        FRAMES,
    ),
)

MOVING = (
    Command("left,h", "← →  h l", Move.ACROSS(-1), "", "previous, next frame on the row"),
    Command("right,l", "", Move.ACROSS(1), "", ""),
    Command("up,k", "↑ ↓  k j", Move.UP(), "", "frame above, widest frame below; row"),
    Command("down,j", "", Move.DOWN(), "", ""),
    Command(
        "home,g",
        "home end  g G",
        Move.HOME(),
        "",
        "the zoomed frame, its widest leaf; first, last row",
    ),
    Command("end,G", "", Move.END(), "", ""),
    Command(
        "space",
        "space",
        Move.FORK(),
        "",
        "down past frames with a single heavy child",
        0,
        ("icicle", "sandwich"),
    ),
    Command(
        "E",
        "E",
        Move.CHAIN(),
        "open",
        "open or close the row of joined frames; elsewhere all of them",
        9,
        ("icicle", "sandwich"),
    ),
    Command("pageup", "pgup pgdn", Move.PAGE(-1), "", "scroll a deep tree, a long table"),
    Command("pagedown", "", Move.PAGE(1), "", ""),
)

ZOOMING = (
    Command(
        "enter",
        "enter",
        Move.ENTER(),
        "zoom",
        _ENTER_HELP,
        2,
        ZOOMED,
    ),
    Command("", "enter", Move.ENTER(), "sandwich", "", 2, TOP),
    Command("", "enter", Move.ENTER(), "open", "", 2, REPORT),
    Command(
        "u,backspace",
        "u",
        Move.OUT(),
        "out",
        "zoom out by one frame (also backspace)",
        3,
        FRAMES,
    ),
    Command("escape", "esc", Action.ESCAPE, "reset", _ESCAPE_HELP, 4, FRAMES),
    Command("", "esc", Action.ESCAPE, "back", "", 4, REPORT),
    Command("plus,equals_sign", "+ -", Move.CLOSER(1), "", "closer, farther", 0, WIDE),
    Command("minus", "", Move.CLOSER(-1), "", "", 0, WIDE),
    Command("comma,shift+left", ", .", Move.PAN(-1), "", "pan (also shift+← →)", 0, WIDE),
    Command("full_stop,shift+right", "", Move.PAN(1), "", "", 0, WIDE),
    Command(
        "b",
        "b",
        Move.MARK(),
        "brush",
        _BRUSH_HELP,
        5,
        TIMELINE_ALONE,
    ),
    Command("z", "z Z", Action.UNDO, "undo", "undo, redo: zoom, open, filter, names, …", 12),
    Command("Z", "", Action.REDO, "", ""),
)

SEARCHING = (
    Command("slash", "/", Action.SEARCH, "search", "search names: a regular expression", 5),
    Command("n", "n N", Action.MATCH(1), "", "next, previous match"),
    Command("N", "", Action.MATCH(-1), "", ""),
    Command(
        "asterisk", "*", Action.SAME, "same name", "search the selected frame's name", 13, FRAMES
    ),
)

FILTERING = (
    Command(
        "f", "f", Action.FILTERS, "filter", "filters: frames, time, steps, ranges, devices, …", 7
    ),
    Command("p", "p", Action.STEPS, "steps", "steps: how long, how busy; choose which to show", 7),
    Command(
        "A",
        "A",
        Action.QUICK(QuickFilter.ONLY),
        "",
        "only stacks with the selected frame",
        0,
        FRAMES,
    ),
    Command("X", "X", Action.QUICK(QuickFilter.WITHOUT), "", "only stacks without it", 0, FRAMES),
    Command(
        "greater_than_sign",
        ">",
        Action.QUICK(QuickFilter.FROM),
        "",
        "stacks from it on",
        0,
        FRAMES,
    ),
    Command("H", "H", Action.QUICK(QuickFilter.HIDE), "", "hide it, keep what is below", 0, FRAMES),
    Command("P", "P", Action.FRAMEWORK, "", "hide the frames of frameworks, or show them"),
)

SHOWING = (
    Command(
        "m", "m", Action.METRICS, "metric", "metrics: GPU time, idle, …, and what each means", 10
    ),
    Command("ctrl+n", "ctrl+n M", Action.METRIC(1), "", "next, previous metric"),
    Command("M", "", Action.METRIC(-1), "", ""),
    Command("L", "L", Action.LEVELS, "levels", "arrangements, levels and their order, folding", 9),
    *(
        Command("", f"L {key}", Action.ARRANGE(named.name), "", f"{named.name}: {named.about}")
        for key, named in zip(ARRANGEMENT_KEYS, NAMED_LEVELS, strict=True)
    ),
    Command("B", "B", Action.FORWARD, "", "backward work below its forward operator, or not"),
    *(
        Command(
            key,
            "" if place else "1 … 0 R F …",
            Action.LEVEL(level),
            "",
            "" if place else _LEVEL_HELP,
        )
        for place, (level, key) in enumerate(LEVEL_KEYS.items())
    ),
    Command(
        "i", "i", Action.INVERT, "invert", "invert: leaves first, callers below", 11, ("icicle",)
    ),
    Command("c", "c", Action.COLLAPSE, "", "collapse frames directly below themselves", 0, FRAMES),
    Command(
        "number_sign",
        "#",
        Action.NUMBERS,
        "",
        "names that differ only in numbers as one (step *), or all of them",
    ),
    Command(
        "s", "s", Action.SORT(1), "sort", "order: weight, name, start; columns of the table", 14
    ),
    Command("K", "K", Action.KERNEL_NAMES(1), "names", "kernel names: short, base, demangled", 19),
    Command(
        "O",
        "O",
        Action.COLOURS,
        "colours",
        "colours: by level, by category, by efficiency",
        20,
        FRAMES,
    ),
    Command("d", "d", Action.DETAILS, "details", "details pane on or off", 16, FRAMES),
    Command(
        "left_square_bracket",
        "[ ]",
        Action.SCROLL_DETAILS(-1),
        "",
        "scroll the details",
        0,
        FRAMES,
    ),
    Command("right_square_bracket", "", Action.SCROLL_DETAILS(1), "", "", 0, FRAMES),
    Command("w", "w", Action.COVERAGE, "notes", "what the trace covers, and its warnings", 17),
    Command(
        "t", "t", Action.THEME(1), "theme", "next theme: dark, light, high contrast, 16 colours"
    ),
    Command("", "ctrl+p forget", Action.FORGET, "", "forget what is remembered between starts"),
)

HANDING = (
    Command("y", "y Y", Action.COPY("name"), "copy", _COPY_HELP, 18),
    Command("Y", "", Action.COPY("stack"), "", ""),
    Command("C", "C", Action.COPY("command"), "", "copy the command line that shows this view"),
    Command("o", "o", Action.SOURCE, "source", "open the source line in the editor", 0, FRAMES),
    Command("e", "e", Action.EXPORT, "export", _EXPORT_HELP, 15),
    Command("S", "S", Action.SCREENSHOT, "", "save the screen as SVG"),
)

ALWAYS = (
    Command(
        "ctrl+p", "ctrl+p", Action.PALETTE, "", "every command by name (ctrl+l draws all anew)"
    ),
    SUSPEND,
    Command("question_mark,f1", "?", Action.HELP, "help", "this help", 98),
    Command("", "? w", Action.WORDS, "", "what every word on the screen means"),
    Command("q", "q", Action.QUIT, "quit", "quit (also ctrl+c)", 99),
)

_LIVE_INSTEAD = {
    Action.METRIC(1): SHOWING[1]._replace(shown="ctrl+n", help="next metric"),
    Action.QUIT: ALWAYS[-1]._replace(label="leave", help="leave; what is recorded goes on"),
}
_NOT_LIVE = (Action.METRIC(-1), Action.LEVEL("cause"), Action.SCREENSHOT, Action.STEPS)
"""Their keys are others' where a recording goes on."""

Groups = tuple[tuple[str, tuple[Command, ...]], ...]

GROUPS: Groups = (
    ("Views", VIEWS),
    ("Table", TABLE),
    ("Timeline", TIMELINE),
    ("Move", MOVING),
    ("Zoom", ZOOMING),
    ("Search", SEARCHING),
    ("Filter", FILTERING),
    ("Show", SHOWING),
    ("Hand over", HANDING),
    ("", ALWAYS),
)

COMMANDS = tuple(command for _, group in GROUPS for command in group)


def _live(group: tuple[Command, ...]) -> tuple[Command, ...]:
    kept = (command for command in group if command.action not in _NOT_LIVE)
    return tuple(_LIVE_INSTEAD.get(command.action, command) for command in kept)


LIVE_GROUPS: Groups = (
    GROUPS[0],
    ("Live", LIVE),
    *((title, _live(group)) for title, group in GROUPS[1:]),
)
LIVE_COMMANDS = tuple(command for _, group in LIVE_GROUPS for command in group)


DIFF_GROUPS: Groups = (
    (GROUPS[0][0], compared(GROUPS[0][1])),
    ("Compare", DIFF),
    *((title, compared(group)) for title, group in GROUPS[1:]),
)
DIFF_COMMANDS = tuple(command for _, group in DIFF_GROUPS for command in group)

RANKS_GROUPS: Groups = (
    (GROUPS[0][0], of_ranks(GROUPS[0][1])),
    ("Ranks", RANKS),
    *((title, kept) for title, group in GROUPS[1:] if (kept := of_ranks(group))),
)
RANKS_COMMANDS = tuple(command for _, group in RANKS_GROUPS for command in group)
GROUPS_OF_ALL: Groups = (*GROUPS, *LIVE_GROUPS, *DIFF_GROUPS, *RANKS_GROUPS)

MOUSE = (
    ("click", "select a frame, zoom to a part of the path above, run a key below"),
    ("double click", "zoom; in the table the sandwich"),
    ("wheel", "scroll; with shift pan, with ctrl zoom in time"),
    ("drag", "in the timeline brush a window, in the overview move the zoomed part"),
    ("drag GPU busy", "show in all views what started in that time"),
)


_footer = attrgetter("footer")


def footer_of(commands: Sequence[Command], view: str) -> list[Command]:
    """Return those of ``commands`` that stand in the footer of ``view``, in order."""
    here = (command for command in commands if not command.views or view in command.views)
    return sorted(filter(_footer, here), key=_footer)


def grouped(commands: Sequence[Command], groups: Groups) -> Iterator[tuple[str, Sequence[Command]]]:
    """``commands``, with whatever keys, in the ``groups`` that have them, with the titles."""
    titles = {id_of(command): title for title, group in groups for command in group}
    for title, group in groupby(commands, lambda command: titles[id_of(command)]):
        yield title, list(group)


def means_something(action: str, parameters: tuple[object, ...], view: str) -> bool:
    """Tell whether the command of ``action`` belongs to ``view``."""
    name = str(parameters[0]) if action == Action.MOVE else action
    return view in _VIEWS_OF.get(name, (view,))


def bindings(commands: Sequence[Command] = COMMANDS) -> list[Binding]:
    """Return each of ``commands`` as a binding, by an id under which it can be remapped."""
    return [
        Binding(command.keys, command.action, command.help, show=False, id=id_of(command))
        for command in commands
        if command.keys
    ]


def _views_of() -> dict[str, tuple[str, ...]]:
    """The views of every command that does not belong to all."""
    views: dict[str, tuple[str, ...]] = {}
    for command in (*COMMANDS, *DIFF, *RANKS, *COMMANDS_OF_VIEW):
        name = re.findall(r"\w+", command.action.removeprefix("move"))[0]
        if command.views:
            views[name] = (*views.get(name, ()), *command.views)
    return views


_VIEWS_OF = _views_of()
