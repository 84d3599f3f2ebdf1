"""List the keys that mean something in one view, or two, and something else in others."""

from __future__ import annotations

from flame.tui.shell.actions import Move
from flame.tui.shell.command import Command

TOP = ("top",)
REPORT = ("report",)
TABLES = (*TOP, *REPORT)
TIMELINE_ALONE = ("timeline",)
WIDE = ("icicle", "timeline")
RANKS_VIEW = ("ranks",)
TREES = ("icicle", "sandwich", "top")
ZOOMED = ("icicle", "sandwich", "timeline")
FRAMES = ("icicle", "sandwich", "top", "timeline")
"""Views in which a frame is selected, and described beside them."""

TABLE = (
    Command(
        "less_than_sign",
        "< >",
        Move.COLUMN(-1),
        "",
        "sort by the previous, the next column",
        0,
        TABLES,
    ),
    Command("greater_than_sign", "", Move.COLUMN(1), "", "", 0, TABLES),
    *(
        Command(
            str(number),
            "" if number else "1 … 0",
            Move.SORT_BY(number),
            "",
            "" if number else "sort by the column of this number; 0: by name",
            0,
            TABLES,
        )
        for number in range(10)
    ),
    Command("v", "v", Move.KINDS(1), "rows", "which frames the table has", 6, TOP),
    Command("D", "D", Move.PARTS(1), "", "columns per GPU, per file, or percentiles", 0, TOP),
)
"""What keys mean in the table; elsewhere some mean something else, so these come first."""

TIMELINE = (
    Command(
        "V",
        "V",
        Move.THREAD_ROWS(),
        "rows",
        "rows of the thread: folded, with API calls, with all functions; on a GPU's row of all",
        6,
        TIMELINE_ALONE,
    ),
    Command(
        "T",
        "T U",
        Move.LONGEST_GAP(1),
        "idle gap",
        "the longest idle gap of the GPU, the next; the longer one before; of memory the peak",
        4,
        TIMELINE_ALONE,
    ),
    Command("U", "", Move.LONGEST_GAP(-1), "", "", 0, TIMELINE_ALONE),
    Command(
        "right_parenthesis",
        "( )",
        Move.GAP(1),
        "",
        "previous, next idle gap that is wide enough to see; memory: request that failed",
        0,
        TIMELINE_ALONE,
    ),
    Command("left_parenthesis", "", Move.GAP(-1), "", "", 0, TIMELINE_ALONE),
)
