"""List the keys of the instruction screen: one table behind bindings, footer and help."""

from __future__ import annotations

from flame.tui.shell.actions import Action, Move
from flame.tui.shell.command import SUSPEND, Command

SASS_MOVING = (
    Command("up,k", "↑ ↓  k j", Move.UP(), "", "previous, next row"),
    Command("down,j", "", Move.DOWN(), "", ""),
    Command("pageup", "pgup pgdn", Move.PAGE(-1), "", "a page up, down"),
    Command("pagedown", "", Move.PAGE(1), "", ""),
    Command("home,g", "home end  g G", Move.HOME(), "", "first, last row"),
    Command("end,G", "", Move.END(), "", ""),
    Command(
        "h", "h H", Action.HOTTEST(1), "hottest", "the hottest instruction, the next hottest", 1
    ),
    Command("H", "", Action.HOTTEST(-1), "", ""),
)

SASS_SEARCHING = (
    Command("slash", "/", Action.SEARCH, "search", "search instructions and source lines", 2),
    Command("n", "n N", Action.MATCH(1), "", "next, previous match"),
    Command("N", "", Action.MATCH(-1), "", ""),
)

SASS_SHOWING = (
    Command("s", "s", Action.LINES, "source", "source lines above their instructions, or not", 3),
    Command("f", "f", Action.FOLD, "fold", "fold instructions without samples, or not", 4),
    Command("m,v", "m v", Action.UNIT(1), "numbers", "the number shown: samples, metric, share", 5),
    Command("M", "", Action.UNIT(-1), "", ""),
    Command(
        "left_square_bracket",
        "[ ]",
        Action.VERSION(-1),
        "code",
        "previous, next code where the kernel has several",
        8,
    ),
    Command("right_square_bracket", "", Action.VERSION(1), "", ""),
    Command("D", "D", Action.SHOW_SIDE, "side", "the other side, in a comparison", 4),
    Command("d", "d", Action.DETAILS, "details", "reasons on or off", 9),
    Command("t", "t", Action.THEME(1), "theme", "next theme"),
)

SASS_HANDING = (
    Command("y", "y Y", Action.COPY("line"), "copy", "copy the row, the listing", 7),
    Command("Y", "", Action.COPY("listing"), "", ""),
    Command("o", "o", Action.SOURCE, "open", "open the source line in the editor", 6),
    Command("S", "S", Action.SCREENSHOT, "", "save the screen as SVG"),
)

SASS_ALWAYS = (
    Command(
        "ctrl+p", "ctrl+p", Action.PALETTE, "", "every command by name (ctrl+l draws all anew)"
    ),
    SUSPEND,
    Command("question_mark,f1", "?", Action.HELP, "help", "this help", 98),
    Command("escape", "", Action.ESCAPE, "", ""),
    Command("q,a", "q", Action.LEAVE, "back", "back to where one was (also a, esc)", 99),
)

SASS_GROUPS = (
    ("Move", SASS_MOVING),
    ("Search", SASS_SEARCHING),
    ("Show", SASS_SHOWING),
    ("Hand over", SASS_HANDING),
    ("", SASS_ALWAYS),
)

SASS_COMMANDS = tuple(command for _, group in SASS_GROUPS for command in group)
