"""List what keys mean on a summary of ranks, besides or instead of what they mean on a trace."""

from __future__ import annotations

from flame.tui.shell.actions import Action, Move
from flame.tui.shell.command import Command
from flame.tui.shell.view_commands import (
    FRAMES,
    RANKS_VIEW,
    REPORT,
    TIMELINE_ALONE,
    TOP,
    TREES,
    ZOOMED,
)

_WORST = "the rank that is farthest off in this frame, alone; then all ranks again"
_OPEN = "open the rank's own trace at this frame; leaving it leads back here"
_WAIT = "level wait: collectives are split into waiting and transfer, or not"
_STEPS = "the ranks side by side, step by step"
_MEASURE = "the measure of ranks: own work, time or wait by step; sums of the run"
_SORT = "order: weight, name; columns of the table; ranks: who made others wait, number, worst"

RANKS = (
    Command("r", "r", Action.WORST_RANK, "worst rank", _WORST, 2, TREES),
    Command("a", "a", Action.OPEN_RANK, "its trace", _OPEN, 3, (*TREES, *RANKS_VIEW)),
    Command("p", "p", Action.SHOW_VIEW("ranks"), "", _STEPS),
    Command("W", "W", Action.LEVEL("wait"), "", _WAIT),
)
"""What there is besides on a summary of ranks."""

_HELP = {
    (Action.VIEW(1), ()): "next view: icicle, sandwich, top, ranks",
    (Move.ENTER(), ZOOMED): "zoom to the frame, or its run of narrow ones; ranks: this one alone",
    (Action.ESCAPE, FRAMES): "leave the search, zoom out to everything, then show all ranks",
    (Action.COPY("name"), ()): "copy the frame's name, its stack",
    (Action.COLOURS, FRAMES): "colours: by level, by imbalance of ranks, by category of kernels",
    (Action.FILTERS, ()): "filters: frames, ranks, ranges, kernels, …",
    (Action.SEARCH, ()): "search names: a regular expression; ranks: a number, a part of a name",
    (Action.EXPORT, ()): "export: folded, speedscope, SVG",
    (Action.LEVEL("process"), ()): "a level on or off, as the levels dialog (L) lists them",
}
"""What is said of commands there, by action and views."""

_INSTEAD = {
    (Move.KINDS(1), TOP): (
        Command("v", "v", Move.KINDS(1), "rows", "which frames the table has", 6, TOP),
        Command("", "v", Move.KINDS(1), "measure", _MEASURE, 3, RANKS_VIEW),
    ),
    (Action.SORT(1), ()): (Command("s", "s", Action.SORT(1), "sort", _SORT, 4),),
    (Move.ENTER(), REPORT): (Command("", "enter", Move.ENTER(), "this rank", "", 2, RANKS_VIEW),),
    (Action.ESCAPE, REPORT): (Command("", "esc", Action.ESCAPE, "back", "", 5, RANKS_VIEW),),
}
"""What stands in place of a command, by its action and views."""

_NOT_OF_RANKS = (
    *(Action.FINDINGS, Action.SASS, Action.STEPS, Action.LEVEL("sass"), Action.LEVEL("stall")),
    *(Action.LEVEL("cause"), Move.PARTS(1), Move.MARK()),
)
"""What needs the rows of one trace, and those whose keys are others' on a summary."""


def of_ranks(group: tuple[Command, ...]) -> tuple[Command, ...]:
    """Return the commands of a ``group`` as they are on a summary."""
    return tuple(kept for command in group for kept in _on_summary(command))


def _on_summary(command: Command) -> tuple[Command, ...]:
    key = command.action, command.views
    if key in _INSTEAD:
        return _INSTEAD[key]
    if command.action in _NOT_OF_RANKS or command.views in (REPORT, TIMELINE_ALONE):
        return ()
    return (command._replace(help=_HELP.get(key, command.help)),)


COMMANDS_OF_VIEW = tuple(command for group in _INSTEAD.values() for command in group)
"""Commands of other screens that mean something in the view of ranks, too."""
