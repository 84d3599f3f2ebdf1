"""The keys of the view of instructions: one table behind bindings, footer and help."""

from __future__ import annotations

from flame.tui.shell.commands import Command

SASS_MOVING = (
    Command("up,k", "↑ ↓  k j", "move('up')", "", "previous, next row"),
    Command("down,j", "", "move('down')", "", ""),
    Command("pageup", "pgup pgdn", "move('page', -1)", "", "a page up, down"),
    Command("pagedown", "", "move('page', 1)", "", ""),
    Command("home,g", "home end  g G", "move('home')", "", "first, last row"),
    Command("end,G", "", "move('end')", "", ""),
    Command("h", "h H", "hottest(1)", "hottest", "the hottest instruction, the next hottest", 1),
    Command("H", "", "hottest(-1)", "", ""),
)

SASS_SEARCHING = (
    Command("slash", "/", "search", "search", "search instructions and source lines", 2),
    Command("n", "n N", "match(1)", "", "next, previous match"),
    Command("N", "", "match(-1)", "", ""),
)

SASS_SHOWING = (
    Command("s", "s", "lines", "source", "source lines above their instructions, or not", 3),
    Command("f", "f", "fold", "fold", "fold instructions without samples, or not", 4),
    Command("m,v", "m v", "unit(1)", "numbers", "the number shown: samples, metric, share", 5),
    Command("M", "", "unit(-1)", "", ""),
    Command(
        "left_square_bracket",
        "[ ]",
        "version(-1)",
        "code",
        "previous, next code where the kernel has several",
        8,
    ),
    Command("right_square_bracket", "", "version(1)", "", ""),
    Command("d", "d", "details", "details", "reasons on or off", 9),
    Command("t", "t", "theme(1)", "theme", "next theme"),
)

SASS_HANDING = (
    Command("y", "y Y", "copy('line')", "copy", "copy the row, the listing", 7),
    Command("Y", "", "copy('listing')", "", ""),
    Command("o", "o", "source", "open", "open the source line in the editor", 6),
    Command("S", "S", "screenshot", "", "save the screen as SVG"),
)

SASS_ALWAYS = (
    Command("ctrl+p", "ctrl+p", "palette", "", "every command by name"),
    Command("question_mark,f1", "?", "help", "help", "this help", 98),
    Command("escape", "", "escape", "", ""),
    Command("q,a", "q", "leave", "back", "back to where one was (also a, esc)", 99),
)

SASS_GROUPS = (
    ("Move", SASS_MOVING),
    ("Search", SASS_SEARCHING),
    ("Show", SASS_SHOWING),
    ("Hand over", SASS_HANDING),
    ("", SASS_ALWAYS),
)

SASS_COMMANDS = tuple(command for _, group in SASS_GROUPS for command in group)
