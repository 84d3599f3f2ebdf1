"""What is sent of a picture makes the same screen as all of it, in fewer bytes."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.geometry import Size

from flame.tui.shell.terminal_cells import TerminalCells
from tests.tui.terminals import Terminal, start

SIZE = Size(12, 4)
RED, BLUE = "38;2;255;0;0", "34"
BOLD_RED, UNDERLINED = f"1;{RED}", "4"
ON_BLUE = "48;2;0;0;255"
STYLES = ("", RED, BLUE, BOLD_RED, UNDERLINED, f"{RED};{ON_BLUE}", f"2;3;{ON_BLUE}", "97;41")

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


class Emulator:
    """A terminal, cell by cell, of moves, colours and text."""

    def __init__(self, size: Size = SIZE) -> None:
        self.cells = [[NOTHING] * size.width for _ in range(size.height)]
        self.row = self.column = 0
        self.style: dict[str, str] = {}

    def feed(self, output: str) -> None:
        for move, style, text in re.findall(r"\x1b\[([\d;]+)H|\x1b\[([\d;]*)m|([^\x1b])", output):
            if move:
                self.row, self.column = (int(part) - 1 for part in move.split(";"))
            elif text == "\n":
                self.row, self.column = self.row + 1, 0
            elif text:
                self.draw(text)
            else:
                self.colour(style)

    def colour(self, style: str) -> None:
        reset, rest = (True, style[2:]) if style.startswith("0;") else (style in ("", "0"), style)
        if reset:
            self.style.clear()
        if style not in ("", "0"):
            self.style.update(attributes(rest))

    def draw(self, character: str) -> None:
        width = cell_len(character)
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
    if character != " " or style & {"4", "7", "9"}:
        return cell
    return " ", frozenset(code for code in style if re.match(r"48;|4\d$|10\d$", code))


def drawn(row: int, column: int, *pieces: tuple[str, str]) -> str:
    """Pieces (style, text) as Textual writes them."""
    text = "".join(f"\x1b[{style}m{text}\x1b[0m" if style else text for style, text in pieces)
    return f"\x1b[{row + 1};{column + 1}H{text}"


texts = st.text("ab █", min_size=1, max_size=5) | st.sampled_from(["カ", "aカb", "a\u0301"])
pieces = st.lists(st.tuples(st.sampled_from(STYLES), texts), min_size=1, max_size=4)
spans = st.builds(
    lambda row, column, parts: (row, column, parts),
    st.integers(0, SIZE.height - 1),
    st.integers(0, SIZE.width),
    pieces,
).filter(lambda span: span[1] + sum(cell_len(text) for _, text in span[2]) <= SIZE.width)
updates = st.lists(spans, min_size=1, max_size=4)
WIDE = re.compile("[カ\u0301]")


@given(st.lists(updates, min_size=1, max_size=6))
def test_the_screen_is_the_same(frames: list[list[tuple[int, int, list[tuple[str, str]]]]]) -> None:
    whole, part, cells = Emulator(), Emulator(), TerminalCells()
    for update in frames:
        output = "\n".join(drawn(row, column, *parts) for row, column, parts in update)
        whole.feed(output)
        part.feed(cells.changes(output, SIZE))
        assert part.seen == whole.seen
        assert cells.changes(output, SIZE) == "" or WIDE.search(output) or overlap(update)


def overlap(update: list[tuple[int, int, list[tuple[str, str]]]]) -> bool:
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
            f"\x1b[2;1H\x1b[{BOLD_RED}ma\x1b[0;{RED}mb\x1b[0mc",
        ),
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


def test_what_a_wide_character_may_have_shifted_is_sent_again() -> None:
    cells = TerminalCells()
    cells.changes(drawn(0, 0, ("", "abcdef")), SIZE)
    cells.changes(drawn(0, 0, ("", "カ")), SIZE)
    assert cells.changes(drawn(0, 2, ("", "cdef")), SIZE) == drawn(0, 2, ("", "cdef"))


def test_a_character_without_a_cell_moves_nothing() -> None:
    picture = drawn(0, 0, ("", "a\u0301")) + "\n" + drawn(0, 2, ("", "b"))
    assert TerminalCells().changes(picture, SIZE) == picture.replace("\n", "")


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
