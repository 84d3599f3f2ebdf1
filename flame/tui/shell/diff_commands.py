"""List what keys mean where two sides are compared, besides or instead of what they mean else."""

from __future__ import annotations

from flame.tui.shell.actions import Action, Move
from flame.tui.shell.command import Command
from flame.tui.shell.view_commands import TREES, ZOOMED

DIFF = (
    Command(
        "p", "p", Action.BASIS(1), "basis", "per step, second, activity, share, or in total", 1
    ),
    Command(
        "D",
        "D",
        Action.WIDTH(1),
        "width",
        "widths: of both sides, of NEW, of BASE; whose timeline it is",
        1,
    ),
    Command(
        "V",
        "V",
        Action.ALL_CHANGES,
        "all",
        "colour all changes, or only those beyond noise",
        3,
        TREES,
    ),
    Command(
        "O",
        "O",
        Action.MEASURE,
        "own",
        "colour by the change of the total, or of the frame itself",
        20,
        TREES,
    ),
)
"""What there is besides where two sides are compared."""

HELP = {
    (Action.FINDINGS, ()): "the report: what has changed",
    (Move.ENTER(), ZOOMED): (
        "zoom to the frame, or to its run of narrow ones; table: the sandwich; "
        "report: show it in the picture"
    ),
}
"""What is said of commands there, by action and views: there is no list of steps."""

LABELS: dict[str, str] = {Action.FINDINGS: "report"}
"""What the footer says there, by action."""

NOT_IN_DIFF = (
    *(Action.STEPS, Action.COLOURS, Action.EXPORT),
    *(Move.PARTS(1), Move.MARK()),
)
"""What needs the rows of one trace, and those whose keys are others' in a comparison."""


def compared(group: tuple[Command, ...]) -> tuple[Command, ...]:
    """Return the commands of ``group`` that a comparison has, with what they do there."""
    kept = (one for one in group if one.action not in NOT_IN_DIFF)
    return tuple(
        one._replace(
            help=HELP.get((one.action, one.views), one.help),
            label=LABELS.get(one.action, one.label),
        )
        for one in kept
    )
