"""Themes in the app and on real terminals: what is sent, and what is told apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.color import Color as TextualColor
from textual.widget import Widget

from flame.core.model.frames import Kind
from flame.options.config import Config
from flame.tui.toolkit.ansi_palette import NoColours, SixteenColours
from flame.tui.toolkit.dialog.page import Page
from flame.tui.toolkit.lines import Lines, RowView, palette_of
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.themes import CONTRAST, DARK, LIGHT, NAMES, SIXTEEN, WithoutColours, cycle
from tests.support.tiers import deep_except
from tests.tui.conftest import User, open_app
from tests.tui.terminals import Terminal, start
from tests.tui.toolkit.test_palette import contrast, rgb

RGB_THEMES = [theme.name for theme in (DARK, LIGHT, CONTRAST)]

ATTRIBUTES = {"0", "1", "2", "3", "4", "7"} | {"22", "23", "24", "27"}
"""What sets attributes, and takes them away again."""

USUAL_COLOURS = {"39", "49"}
SIXTEEN_COLOURS = {str(code) for base in (30, 40, 90, 100) for code in range(base, base + 8)}
SIXTEEN_COLOURS |= USUAL_COLOURS

COLOUR = r"[34]8;(?:2;\d+;\d+;\d+|5;\d+)"

# Search, help, a dialog, another view: whatever has colours of its own.
TOUR = ("j", "j", "/", "gemm\r", "\x1b", "?", "q", "L", "\x1b", "w", "q", "\t", "j", "\t", "\t")


def styles_of(user: User) -> list[Style]:
    strips = user.app.screen._compositor.render_strips()
    return [segment.style for strip in strips for segment in strip if segment.style]


def system_colours(styles: list[Style]) -> set[Color]:
    return {color for style in styles for color in (style.color, style.bgcolor) if color}


# Turning from theme to theme


async def test_the_themes_follow_one_another(decode: Path) -> None:
    async with open_app(decode) as user:
        assert user.app.theme == "flame-dark"
        told = [cycle(user.app, 1) for _ in NAMES]
        assert told == ["flame-light", "flame-contrast", "flame-ansi", "flame-dark"]
        assert cycle(user.app, -1) == user.app.theme == "flame-ansi"


async def test_from_a_theme_of_textual_the_first_or_last_of_ours_follows(decode: Path) -> None:
    async with open_app(decode) as user:
        for step, expected in ((1, NAMES[0]), (-1, NAMES[-1])):
            user.app.theme = "nord"
            assert cycle(user.app, step) == expected


@pytest.mark.deep
async def test_every_theme_repaints_everything(decode: Path) -> None:
    async with open_app(decode) as user:
        looks, texts = set(), set()
        for _ in NAMES:
            await user.press("t")
            pictures = [picture(user.screen.query_one(name)) for name in ("Icicle", "#crumbs")]
            texts.add(tuple(text for text, _ in pictures))
            looks.add(tuple(look for _, look in pictures))
            for rows in user.screen.query(RowView):
                assert rows.look.palette == palette_of(rows)
        assert len(texts) == 1
        assert len(looks) == len(NAMES)


async def test_the_names_of_the_levels_have_the_colours_of_the_theme(decode: Path) -> None:
    async with open_app(decode) as user:
        for theme in ("flame-ansi", "flame-light", "flame-contrast", "flame-dark"):
            user.app.theme = theme
            await user.settle()
            strip = user.screen.query_one("#header", Lines).render_line(0)
            drawn = next(part.style for part in strip if part.text == " kernel ")
            wanted = palette_of(user.screen).kind(Kind.KERNEL)
            assert drawn is not None
            assert (drawn.color, drawn.bgcolor) == (wanted.color, wanted.bgcolor)


def picture(widget: Widget) -> tuple[str, str]:
    """Text and styles of all lines."""
    strips = [widget.render_line(y) for y in range(widget.size.height)]
    return "\n".join(strip.text for strip in strips), str([list(strip) for strip in strips])


async def test_the_palette_is_that_of_the_theme(decode: Path) -> None:
    async with open_app(decode) as user:
        found = {}
        for name in NAMES:
            user.app.theme = name
            await user.settle()
            found[name] = palette_of(user.screen)
        assert found[DARK.name] == Palette((18, 18, 18), (228, 228, 228))
        assert found[LIGHT.name] == Palette((250, 250, 250), (28, 28, 28))
        assert found[CONTRAST.name] == Palette((0, 0, 0), (255, 255, 255), strong=True)
        assert found[SIXTEEN.name] == SixteenColours()


@pytest.mark.parametrize("theme", deep_except(["flame-dark"], RGB_THEMES))
async def test_all_tones_are_readable_wherever_lines_are(decode: Path, theme: str) -> None:
    async with open_app(decode, config=Config(theme=theme)) as user:
        assert user.app.theme == theme
        for lines in user.screen.query(Lines):
            for tone in ("", *Lines.TONES):
                style = lines._toned(tone)
                found = contrast(rgb(style.color), rgb(style.bgcolor))
                assert found >= 4.5, (lines.id, tone, found)


async def test_a_tone_that_does_not_exist_is_refused(decode: Path) -> None:
    async with open_app(decode) as user:
        with pytest.raises(KeyError, match="loud"):
            user.screen.query(Lines).first()._toned("loud")


# Terminals that show less


async def test_a_terminal_of_sixteen_colours_gets_no_other_theme(
    decode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLORTERM")
    monkeypatch.setenv("TERM", "xterm")
    async with open_app(decode, config=Config(theme="flame-light")) as user:
        assert user.app.theme == "flame-ansi"
        assert cycle(user.app, 1) == "flame-ansi: all that this terminal shows"
        assert user.app.theme == "flame-ansi"


async def test_sixteen_colours_are_the_terminals_own(decode: Path) -> None:
    async with open_app(decode, config=Config(theme="flame-ansi")) as user:
        for keys in ((), ("slash", "g", "e"), ("escape", "escape", "question_mark"), ("q", "L")):
            await user.press(*keys)
            assert all(color.triplet is None for color in system_colours(styles_of(user)))


async def test_without_colours_frames_cursor_and_matches_are_told_apart(
    decode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_app(decode) as user:
        assert palette_of(user.screen) == NoColours()
        assert not system_colours(styles_of(user))
        assert {(style.underline, style.reverse) for style in styles_of(user)} >= {
            (True, None),
            (None, True),
        }
        await user.press("slash", *"mlp", "enter", "down")
        assert not system_colours(styles_of(user))
        looks = {(style.bold, style.dim, style.underline) for style in styles_of(user)}
        assert looks >= {(True, None, True), (None, True, True)}


@pytest.mark.parametrize("variable", ["NO_COLOR", "FLAME_ASCII"])
async def test_however_it_is_drawn_words_can_be_clicked(
    decode: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    async with open_app(decode) as user:
        await user.pilot.click("#keys", offset=(user.read("keys").index("help"), 0))
        await user.settle()
        assert isinstance(user.app.screen, Page)


def test_what_stood_on_a_colour_is_reversed_without_colours() -> None:
    segments = [
        Segment("cursor", Style(bold=True, bgcolor="white", color="black")),
        Segment("reversed already", Style(reverse=True, bgcolor="white")),
        Segment("plain", Style(color="red", bgcolor="default", underline=True)),
        Segment("bare"),
    ]
    assert WithoutColours().apply(segments, TextualColor(0, 0, 0)) == [
        Segment("cursor", Style(bold=True, reverse=True)),
        Segment("reversed already", Style(reverse=True)),
        Segment("plain", Style(underline=True)),
        Segment("bare"),
    ]


# What arrives at the terminal


def sent(terminal: Terminal) -> tuple[set[str], set[str]]:
    """SGR codes after a tour through the app: plain ones, and the first two parts of colours."""
    terminal.read_until("model.layers.1.mlp")
    terminal.settle()
    output = terminal.output
    for key in TOUR:
        terminal.press(key)
        terminal.settle(0.15)
        output += terminal.output
    plain: set[str] = set()
    colours: set[str] = set()
    for sequence in re.findall(rb"\x1b\[([0-9;:]*)m", output):
        text = sequence.decode()
        colours.update(found[:4] for found in re.findall(COLOUR, text))
        plain.update(re.sub(COLOUR, "", text).split(";"))
    return plain - {""}, colours


@pytest.mark.deep
def test_a_terminal_with_all_colours_gets_them(terminals: list[Terminal], decode: Path) -> None:
    plain, colours = sent(start(terminals, decode))
    assert plain <= ATTRIBUTES | USUAL_COLOURS
    assert colours == {"38;2", "48;2"}


@pytest.mark.deep
def test_256_colours(terminals: list[Terminal], decode: Path) -> None:
    _, colours = sent(start(terminals, decode, COLORTERM=""))
    assert colours == {"38;5", "48;5"}


@pytest.mark.deep
@pytest.mark.parametrize("term", ["xterm", "linux"])
def test_a_terminal_of_sixteen_colours_gets_nothing_else(
    terminals: list[Terminal], decode: Path, term: str
) -> None:
    plain, colours = sent(start(terminals, decode, TERM=term, COLORTERM=""))
    assert not colours
    assert plain <= ATTRIBUTES | SIXTEEN_COLOURS
    assert len(plain & SIXTEEN_COLOURS) > 10


@pytest.mark.deep
def test_no_color(terminals: list[Terminal], decode: Path) -> None:
    plain, colours = sent(start(terminals, decode, NO_COLOR="1"))
    assert not colours
    assert plain <= ATTRIBUTES
    assert plain >= {"1", "2", "4", "7"}
