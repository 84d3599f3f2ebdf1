"""What terminals answer about their background, in whatever pieces it comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.console.background_colour import (
    TerminalBackground,
    is_light,
    light_by_environment,
    may_ask,
)

ENDS = ("\x07", "\x1b\\", "\x9c")
ATTRIBUTES = "\x1b[?62;4;22c"


def asked() -> TerminalBackground:
    background = TerminalBackground()
    background.pending = True
    return background


@pytest.mark.parametrize(
    ("colour", "light"),
    [
        ("rgb:1e1e/1e1e/1e1e", False),
        ("rgb:ffff/ffff/ffff", True),
        ("rgb:fd/f6/e3", True),
        ("rgb:f/f/f", True),
        ("rgb:0/0/f", False),
        ("rgb:00/ff/00", True),
        ("rgba:FFFF/FFFF/FFFF/8000", True),
        ("#fdf6e3", True),
        ("#002b36", False),
        ("", None),
        ("?", None),
        ("white", None),
        ("rgb:fffff/0/0", None),
        ("rgb:ff/ff", None),
        ("rgb:gg/gg/gg", None),
        ("rgb:ff/ff/ff\n", None),
        ("rgb:٣/٣/٣", None),
    ],
)
def test_a_colour_is_light_or_dark_or_none(colour: str, light: bool | None) -> None:
    assert is_light(colour) is light


@pytest.mark.parametrize(
    ("value", "light"),
    [
        ("0;15", True),
        ("0;7", True),
        ("0;default;15", True),
        ("15;0", False),
        ("7;8", False),
        ("0;11", True),
        ("0;default", False),
        ("15", False),
        ("0;15;", False),
        ("", False),
        ("0;999", False),
    ],
)
def test_the_environment_says_it_in_colours_of_sixteen(value: str, light: bool) -> None:
    assert light_by_environment({"COLORFGBG": value}) is light
    assert light_by_environment({}) is False


@pytest.mark.parametrize(
    ("environment", "may"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-kitty", "SSH_TTY": "/dev/pts/1"}, True),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/tmux"}, True),
        ({"TERM": "screen-256color", "TMUX": "/tmp/tmux"}, True),
        ({"TERM": "screen.xterm-256color", "STY": "1.pts"}, False),
        ({"TERM": "screen-256color"}, False),
        ({"TERM": "xterm-256color", "STY": "1.pts"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "TMUX": "/tmp/tmux"}, False),
        ({"TERM": "unknown"}, False),
        ({}, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True),
    ],
)
def test_what_might_draw_the_question_is_not_asked(environment: dict[str, str], may: bool) -> None:
    assert may_ask(environment) is may


@pytest.mark.parametrize("end", ENDS)
def test_the_answer_is_taken_and_what_was_typed_is_left(end: str) -> None:
    background = asked()
    text = f"j\x1b]11;rgb:ffff/ffff/ffff{end}k{ATTRIBUTES}\x1b[A"
    assert background.take(text) == "jk\x1b[A"
    assert background.light is True
    assert not background.pending


def test_who_does_not_know_the_question_answers_the_second() -> None:
    background = asked()
    assert background.take(ATTRIBUTES) == ""
    assert (background.light, background.pending) == (None, False)


def test_answers_nobody_asked_for_are_left() -> None:
    background = TerminalBackground()
    text = f"\x1b]11;rgb:ffff/ffff/ffff\x07{ATTRIBUTES}"
    assert background.take(text) == text
    assert background.light is None


def test_what_is_no_colour_is_taken_all_the_same() -> None:
    background = asked()
    assert background.take(f"\x1b]11;{'x' * 1_000}\x07{ATTRIBUTES}j") == "j"
    assert background.light is None


def test_what_never_ends_is_not_kept_for_ever() -> None:
    background = asked()
    text = "\x1b]11;" + "x" * 5_000
    assert background.take(text) == text


typed = st.text("jk/\x1b[A?1;]\\", max_size=6).filter(lambda text: not text.endswith("\x1b"))
colours = st.sampled_from(["rgb:ffff/ffff/ffff", "rgb:0/0/0", "nothing", ""])


@given(typed, colours, st.sampled_from(ENDS), st.lists(st.integers(1, 80), max_size=6))
def test_however_an_answer_is_cut_nothing_of_it_is_left_over(
    before: str, colour: str, end: str, cuts: list[int]
) -> None:
    whole = f"{before}\x1b]11;{colour}{end}{ATTRIBUTES}j"
    # Escape alone is a key: it is not held back for what might follow.
    places = sorted({cut for cut in cuts if whole[cut - 1 : cut] != "\x1b"})
    pieces = [whole[a:b] for a, b in zip([0, *places], [*places, None], strict=True)]
    background = asked()
    rest = "".join(map(background.take, pieces))
    assert rest == f"{before}j"
    assert background.light is is_light(colour)
    assert not background.pending
