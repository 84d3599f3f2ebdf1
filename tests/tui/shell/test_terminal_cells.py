"""What is sent of a picture makes the same screen as all of it, in fewer bytes."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.geometry import Size

from flame.tui.shell.terminal_cells import TerminalCells
from tests.tui.terminals import Terminal, start

SIZE = Size(30, 4)
RED, BLUE = "38;2;255;0;0", "34"
BOLD_RED, UNDERLINED = f"1;{RED}", "4"
ON_BLUE = "48;2;0;0;255"
STYLES = (
    *("", RED, BLUE, BOLD_RED, UNDERLINED, f"{RED};{ON_BLUE}", f"2;3;{ON_BLUE}", "97;41"),
    *(f"1;2;{RED}", f"2;{ON_BLUE}", f"7;{ON_BLUE}", "53", f"21;{BLUE}", f"3;4;9;{RED};{ON_BLUE}"),
)
OFF = {
    "39": ("foreground",),
    "49": ("background",),
    "22": ("1", "2"),
    "23": ("3",),
    "24": ("4", "21"),
    "25": ("5",),
    "27": ("7",),
    "28": ("8",),
    "29": ("9",),
}

Cell = tuple[str, frozenset[str]]
NOTHING: Cell = (" ", frozenset())


def attributes(codes: str) -> dict[str, str]:
    """The attributes that parameters of SGR set, told apart by hand."""
    found: dict[str, str] = {}
    for code in re.findall(r"[34]8;2;\d+;\d+;\d+|\d+", codes):
        colour = re.fullmatch(r"(38;.*|3\d|9\d)|(48;.*|4\d|10\d)", code)
        ground = colour and ("background" if colour[2] else "foreground")
        found[ground or code] = code
    return found


SEQUENCE = re.compile(
    r"\x1b\[([\d;]+)H|\x1b\[([\d;]*)m|\x1b\[(\d*)C|\x1b\[(\d*)X|\x1b\[(K)|([^\x1b])"
)


class Emulator:
    """A terminal, cell by cell, of moves, colours, text and erasures in the background set.

    A character of two cells takes only one where it is ``narrow``, as some terminals draw it.
    """

    def __init__(self, size: Size = SIZE, narrow: bool = False) -> None:
        self.size, self.narrow = size, narrow
        self.cells = [[NOTHING] * size.width for _ in range(size.height)]
        self.row = self.column = 0
        self.style: dict[str, str] = {}

    def feed(self, output: str) -> None:
        assert not SEQUENCE.sub("", output)
        for move, style, ahead, erased, tail, text in SEQUENCE.findall(output):
            if move:
                self.row, self.column = (int(part) - 1 for part in move.split(";"))
            elif ahead or (text == "" and not (style or erased or tail)):
                self.column += int(ahead or 1)
            elif erased or tail:
                self.erase(self.column + int(erased) if erased else self.size.width)
            elif text == "\n":
                self.row, self.column = self.row + 1, 0
            elif text:
                self.draw(text)
            else:
                self.colour(style)

    def colour(self, style: str) -> None:
        for what, code in attributes(style).items():
            if code == "0":
                self.style.clear()
            elif code in OFF:
                for one in OFF[code]:
                    self.style.pop(one, None)
            else:
                self.style[what] = code

    def erase(self, end: int) -> None:
        assert self.column < end <= self.size.width
        background = frozenset(code for what, code in self.style.items() if what == "background")
        for column in range(self.column, end):
            self.cells[self.row][column] = (" ", background)

    def draw(self, character: str) -> None:
        width = min(cell_len(character), 1) if self.narrow else cell_len(character)
        shown = (character, frozenset(self.style.values()))
        for place in range(width):
            self.cells[self.row][self.column + place] = shown if not place else ("", shown[1])
        self.column += width

    @property
    def seen(self) -> list[list[Cell]]:
        """The cells, without the colour of what is not drawn."""
        return [[visible(cell) for cell in row] for row in self.cells]


def visible(cell: Cell) -> Cell:
    character, style = cell
    if character != " " or style & {"4", "7", "9", "21", "53"}:
        return cell
    return " ", frozenset(code for code in style if re.match(r"48;|4\d$|10\d$", code))


def drawn(row: int, column: int, *pieces: tuple[str, str]) -> str:
    """Pieces (style, text) as Textual writes them."""
    text = "".join(f"\x1b[{style}m{text}\x1b[0m" if style else text for style, text in pieces)
    return f"\x1b[{row + 1};{column + 1}H{text}"


plain = st.text("ab █", min_size=1, max_size=5) | st.builds(
    lambda before, size: before + size * " ", st.text("ab", max_size=2), st.integers(1, 30)
)
texts = plain | st.sampled_from(["カ", "aカb", "カ    b", "a\u0301"])
pieces = st.lists(st.tuples(st.sampled_from(STYLES), texts), min_size=1, max_size=4)
spans = st.builds(
    lambda row, column, parts: (row, column, parts),
    st.integers(0, SIZE.height - 1),
    st.integers(0, SIZE.width),
    pieces,
).filter(lambda span: span[1] + sum(cell_len(text) for _, text in span[2]) <= SIZE.width)
updates = st.lists(spans, min_size=1, max_size=4)
Update = list[tuple[int, int, list[tuple[str, str]]]]
WIDE = re.compile("[カ\u0301]")


@given(st.lists(updates, min_size=1, max_size=6), st.booleans())
def test_the_screen_is_the_same(frames: list[Update], erases: bool) -> None:
    whole, part, cells = Emulator(), Emulator(), TerminalCells(erases)
    for update in frames:
        output = written(update)
        whole.feed(output)
        sent = cells.changes(output, SIZE)
        part.feed(sent)
        assert part.seen == whole.seen
        assert erases or not re.search(r"\x1b\[\d*[XK]", sent)
        assert cells.changes(output, SIZE) == "" or WIDE.search(output) or overlap(update)


sizes = st.builds(Size, st.integers(1, 40), st.integers(1, 6))


@given(st.lists(st.tuples(sizes, updates, st.booleans()), min_size=1, max_size=6))
def test_the_screen_is_the_same_after_resizes(
    frames: list[tuple[Size, Update, bool]],
) -> None:
    cells = TerminalCells(erases=True)
    whole, part = Emulator(), Emulator()
    for size, update, forgets in frames:
        if size != whole.size:
            whole, part = Emulator(size), Emulator(size)
        if forgets:
            cells.forget()
        output = written([span for span in update if fits(span, size)])
        whole.feed(output)
        part.feed(cells.changes(output, size))
        assert part.seen == whole.seen


@given(st.lists(updates, min_size=1, max_size=6))
def test_nothing_stands_elsewhere_where_a_wide_character_takes_one_cell(
    frames: list[Update],
) -> None:
    part, cells = Emulator(narrow=True), TerminalCells(erases=True)
    expected = [[NOTHING] * SIZE.width for _ in range(SIZE.height)]
    sure = [[True] * SIZE.width for _ in range(SIZE.height)]
    for update in frames:
        for row, column, parts in update:
            at = column
            for style, text in joined(parts):
                for character in text:
                    width = cell_len(character)
                    codes = frozenset(attributes(style).values())
                    for place in range(at, at + width):
                        expected[row][place] = (character, codes)
                        sure[row][place] = not WIDE.search(text)
                    at += width
        part.feed(cells.changes(written(update), SIZE))
        for row in range(SIZE.height):
            for place in range(SIZE.width):
                if sure[row][place]:
                    assert part.seen[row][place] == visible(expected[row][place])


def joined(parts: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The runs that are sent of ``parts``: between texts without a style there is no sequence."""
    for styled, group in groupby(parts, lambda part: part[0] != ""):
        if styled:
            yield from group
        else:
            yield "", "".join(text for _, text in group)


def written(update: Update) -> str:
    return "\n".join(drawn(row, column, *parts) for row, column, parts in update)


def fits(span: tuple[int, int, list[tuple[str, str]]], size: Size) -> bool:
    row, column, parts = span
    return row < size.height and column + sum(cell_len(text) for _, text in parts) <= size.width


def overlap(update: Update) -> bool:
    """Whether two spans of an update are of the same row."""
    rows = [row for row, _, _ in update]
    return len({*rows}) < len(rows)


@pytest.mark.parametrize(
    ("second", "sent"),
    [
        (drawn(0, 0, (RED, "total 1 ms")), ""),
        (drawn(0, 0, (RED, "total 2 ms")), f"\x1b[1;7H\x1b[{RED}m2\x1b[0m"),
        (drawn(0, 0, (BLUE, "total 1 ms")), f"\x1b[1;1H\x1b[{BLUE}mtotal 1 ms\x1b[0m"),
        (drawn(0, 0, (RED, "tot"), (RED, "als: 7")), f"\x1b[1;6H\x1b[{RED}ms: 7\x1b[0m"),
        (drawn(1, 0, (RED, "a"), (RED, "b")), f"\x1b[2;1H\x1b[{RED}mab\x1b[0m"),
        (drawn(1, 0, (RED, "a"), (BOLD_RED, "b")), f"\x1b[2;1H\x1b[{RED}ma\x1b[1mb\x1b[0m"),
        (
            drawn(1, 0, (BOLD_RED, "a"), (RED, "b"), ("", "c")),
            f"\x1b[2;1H\x1b[{BOLD_RED}ma\x1b[22mb\x1b[0mc",
        ),
        (
            drawn(1, 0, (f"1;2;{RED}", "a"), (f"2;{RED}", "b"), (BLUE, "c")),
            f"\x1b[2;1H\x1b[1;2;{RED}ma\x1b[22;2mb\x1b[0;{BLUE}mc\x1b[0m",
        ),
        (drawn(1, 0, ("97;41", "a"), ("41", "b")), "\x1b[2;1H\x1b[97;41ma\x1b[39mb\x1b[0m"),
        (drawn(0, 0, (RED, "xotal 2 ms")), f"\x1b[1;1H\x1b[{RED}mx\x1b[5C2\x1b[0m"),
        (drawn(0, 0, (RED, "toxal 2 ms")), f"\x1b[1;3H\x1b[{RED}mxal 2\x1b[0m"),
        (drawn(1, 0, ("97;41", "a"), ("97;44", "b")), "\x1b[2;1H\x1b[97;41ma\x1b[44mb\x1b[0m"),
        (drawn(0, 5, (BLUE, " ")), ""),
        (drawn(0, 5, (UNDERLINED, " ")), f"\x1b[1;6H\x1b[{UNDERLINED}m \x1b[0m"),
        (drawn(0, 5, (ON_BLUE, " ")), f"\x1b[1;6H\x1b[{ON_BLUE}m \x1b[0m"),
    ],
)
def test_what_is_sent(second: str, sent: str) -> None:
    cells = TerminalCells()
    cells.changes(drawn(0, 0, (RED, "total 1 ms")), SIZE)
    assert cells.changes(second, SIZE) == sent


BLANKS = 12 * " "


@pytest.mark.parametrize(
    ("picture", "sent"),
    [
        (drawn(0, 0, (ON_BLUE, BLANKS)), f"\x1b[1;1H\x1b[{ON_BLUE}m\x1b[12X\x1b[0m"),
        (
            drawn(0, 0, (ON_BLUE, BLANKS), (RED, "a")),
            f"\x1b[1;1H\x1b[{ON_BLUE}m\x1b[12X\x1b[12C\x1b[0;{RED}ma\x1b[0m",
        ),
        (
            drawn(0, 0, (ON_BLUE, BLANKS[:10]), (RED, "a")),
            f"\x1b[1;1H\x1b[{ON_BLUE}m{BLANKS[:10]}\x1b[0;{RED}ma\x1b[0m",
        ),
        (
            drawn(0, 0, (f"{RED};{ON_BLUE}", f"a{BLANKS}"), (f"{BLUE};{ON_BLUE}", BLANKS)),
            f"\x1b[1;1H\x1b[{RED};{ON_BLUE}ma\x1b[24X\x1b[0m",
        ),
        (drawn(0, 18, (ON_BLUE, BLANKS)), f"\x1b[1;19H\x1b[{ON_BLUE}m\x1b[K\x1b[0m"),
        (
            drawn(0, 0, (UNDERLINED, BLANKS)),
            f"\x1b[1;1H\x1b[{UNDERLINED}m{BLANKS}\x1b[0m",
        ),
        (
            drawn(0, 0, (f"7;{ON_BLUE}", BLANKS)),
            f"\x1b[1;1H\x1b[7;{ON_BLUE}m{BLANKS}\x1b[0m",
        ),
    ],
)
def test_blanks_are_erased(picture: str, sent: str) -> None:
    assert TerminalCells(erases=True).changes(picture, SIZE) == sent


def test_blanks_are_erased_to_the_end_where_nothing_else_follows() -> None:
    cells = TerminalCells(erases=True)
    cells.changes(drawn(0, 0, ("", 20 * "a"), (ON_BLUE, 10 * " ")), SIZE)
    cells.changes(drawn(1, 0, ("", 20 * "a"), (ON_BLUE, 10 * " ")), SIZE)
    same = cells.changes(drawn(0, 5, (ON_BLUE, 15 * " ")), SIZE)
    assert same == f"\x1b[1;6H\x1b[{ON_BLUE}m\x1b[K\x1b[0m"
    assert cells.changes(drawn(1, 5, ("", 15 * " ")), SIZE) == "\x1b[2;6H\x1b[15X"


def test_what_a_wide_character_may_have_shifted_is_sent_again() -> None:
    cells = TerminalCells()
    cells.changes(drawn(0, 0, ("", "abcdef")), SIZE)
    cells.changes(drawn(0, 0, ("", "カ")), SIZE)
    assert cells.changes(drawn(0, 2, ("", "cdef")), SIZE) == drawn(0, 2, ("", "cdef"))


def test_what_follows_such_a_character_is_put_where_it_belongs() -> None:
    picture = drawn(0, 0, ("", "a\u0301"), (RED, "b")) + "\n" + drawn(0, 2, ("", "c"))
    expected = f"\x1b[1;1Ha\u0301\x1b[1;2H\x1b[{RED}mb\x1b[0mc"
    assert TerminalCells().changes(picture, SIZE) == expected


@pytest.mark.parametrize("other", ["\x1b[2J", "\x1b]8;;file:x\x1b\\", "\x1b[4:3mx"])
def test_other_sequences_are_left_as_they_are(other: str) -> None:
    cells, picture = TerminalCells(), drawn(0, 0, (RED, "a"))
    cells.changes(picture, SIZE)
    assert cells.changes(f"{picture}{other}", SIZE) == f"{picture}{other}"
    assert cells.changes(picture, SIZE) == picture


def resized(cells: TerminalCells) -> Size:
    return Size(SIZE.width + 1, SIZE.height)


def forgotten(cells: TerminalCells) -> Size:
    cells.forget()
    return SIZE


@pytest.mark.parametrize("happened", [resized, forgotten])
def test_all_is_sent_again(happened: Callable[[TerminalCells], Size]) -> None:
    cells, picture = TerminalCells(), drawn(0, 0, (RED, "a"))
    cells.changes(picture, SIZE)
    assert cells.changes(picture, happened(cells)) == picture


def test_what_does_not_fit_the_screen_is_sent() -> None:
    cells = TerminalCells()
    for outside in (drawn(SIZE.height, 0, ("", "a")), drawn(0, SIZE.width - 1, ("", "ab"))):
        assert cells.changes(outside, SIZE) == cells.changes(outside, SIZE) == outside


def test_a_resize_draws_every_cell_anew_even_back_to_the_same_size(
    terminals: list[Terminal], decode: Path
) -> None:
    terminal = start(terminals, decode)
    terminal.read_until("model.layers.1.mlp")
    terminal.settle()
    terminal.output = b""
    terminal.process.send_signal(signal.SIGWINCH)
    terminal.answered()
    assert "model.layers.1.mlp" in terminal.output.decode()


def test_a_key_draws_every_cell_anew(terminals: list[Terminal], decode: Path) -> None:
    terminal = start(terminals, decode)
    terminal.read_until("model.layers.1.mlp")
    terminal.settle()
    terminal.press("\x0c")
    terminal.answered()
    assert "model.layers.1.mlp" in terminal.output.decode()
    terminal.press("j")
    terminal.answered()
    assert "model.layers.1.mlp" not in terminal.output.decode()
