"""The theme by the terminal's background, on terminals that answer, answer late or never."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import psutil
import pytest

from flame.console.background_colour import QUERY
from tests.support.paths import SAMPLES
from tests.support.waiting import wait_until
from tests.tui.terminals import COMMAND, Terminal, start
from tests.tui.test_first_minute import FLAME, Tmux, ended
from tests.tui.test_first_minute import pytestmark as needs_tmux
from tests.tui.test_first_minute import tmux as tmux

pytestmark = pytest.mark.deep

LIGHT_ANSWER = "\x1b]11;rgb:fafa/fafa/fcfc\x1b\\"
DARK_ANSWER = "\x1b]11;rgb:1e1e/1e1e/2e2e\x07"
ATTRIBUTES = "\x1b[?62;22c"

LIGHT = b"48;2;250;250;250"
DARK = b"48;2;18;18;18"
SHOWN = "model.layers.1.mlp"

UNANSWERED = """
from flame.console import background_colour
background_colour.TIMEOUT = 0.0
"""
"""The app goes on as soon as it has been loaded, however long the answer takes."""

WAITING = UNANSWERED.replace("0.0", "60.0")
"""The app waits for the answer, however slow this machine is."""


def asking(terminals: list[Terminal], path: Path, prepare: str, **environment: str) -> Terminal:
    """The app just after it has asked."""
    terminal = start(terminals, path, prepare, COMMAND, **environment)
    terminal.read_until(QUERY.decode())
    return terminal


def drawn(terminal: Terminal) -> bytes:
    """What the terminal was sent until the trace was there; it must be no echo of an answer."""
    terminal.read_until(SHOWN)
    assert b"rgb:" not in terminal.output.replace(QUERY, b"")
    return terminal.output


def leave(terminal: Terminal) -> None:
    terminal.press("q")
    assert terminal.wait() == 0


@pytest.mark.parametrize(
    ("answer", "sent"),
    [(LIGHT_ANSWER, LIGHT), pytest.param(DARK_ANSWER, DARK, marks=pytest.mark.deep)],
)
def test_a_terminal_that_answers(
    terminals: list[Terminal], decode: Path, answer: str, sent: bytes
) -> None:
    terminal = asking(terminals, decode, WAITING)
    terminal.press(answer + ATTRIBUTES)
    output = drawn(terminal)
    assert sent in output
    assert {LIGHT, DARK} - {sent} == {one for one in (LIGHT, DARK) if one not in output}
    leave(terminal)


@pytest.mark.parametrize(
    ("answer", "known", "sent"),
    [
        ("\x1b]11;garbage;48;2\x07", "0;15", LIGHT),
        pytest.param("\x1b]11;rgb:f/f\x1b\\", "15;0", DARK, marks=pytest.mark.deep),
        pytest.param("", "15;0", DARK, marks=pytest.mark.deep),
        pytest.param("", "0;15", LIGHT, marks=pytest.mark.deep),
    ],
)
def test_a_terminal_that_does_not_know(
    terminals: list[Terminal], decode: Path, answer: str, known: str, sent: bytes
) -> None:
    terminal = asking(terminals, decode, WAITING, COLORFGBG=known)
    terminal.press(answer + ATTRIBUTES)
    assert sent in drawn(terminal)
    leave(terminal)


def test_a_terminal_that_answers_late_makes_no_keys_of_it(
    terminals: list[Terminal], decode: Path
) -> None:
    terminal = asking(terminals, decode, UNANSWERED)
    assert DARK in drawn(terminal)
    terminal.settle()
    # Its letters are keys of other things: f filters, c collapse, r and b arrange and link.
    terminal.press(LIGHT_ANSWER[:9])
    assert terminal.silent_for(0.3)
    terminal.press(LIGHT_ANSWER[9:] + ATTRIBUTES)
    terminal.read_until(LIGHT.decode())
    terminal.settle()
    assert not re.search(rb"Filters|collapse|Arrange", terminal.output)
    terminal.press("q")  # and this is one: nothing lies above the main screen
    assert terminal.wait() == 0


def test_a_terminal_that_never_answers(terminals: list[Terminal], decode: Path) -> None:
    terminal = asking(terminals, decode, "")
    assert DARK in drawn(terminal)
    leave(terminal)


def test_what_is_typed_while_the_app_starts_is_not_lost(
    terminals: list[Terminal], decode: Path
) -> None:
    terminal = asking(terminals, decode, WAITING)
    terminal.press(f"q{LIGHT_ANSWER}{ATTRIBUTES}")
    assert terminal.wait() == 130  # as the load has been cancelled, or else 0
    assert b"rgb:" not in terminal.output


def test_the_terminal_echoes_again_when_the_app_has_been_left(
    terminals: list[Terminal], decode: Path
) -> None:
    terminal = asking(terminals, decode, UNANSWERED)
    drawn(terminal)
    assert not terminal.echoes
    terminal.press("\x1a")
    # Not at the echo: what has yet to stop itself would do so after being told to go on.
    process = psutil.Process(terminal.process.pid)
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED)
    assert terminal.echoes
    terminal.process.send_signal(signal.SIGCONT)
    wait_until(lambda: not terminal.echoes)
    leave(terminal)
    assert terminal.echoes


def test_and_when_it_could_not_start(terminals: list[Terminal], tmp_path: Path) -> None:
    terminal = asking(terminals, tmp_path / "none", UNANSWERED)
    terminal.press("\x03")
    terminal.wait()
    wait_until(lambda: terminal.echoes)


@needs_tmux
def test_a_shell_gets_nothing_of_the_answer_where_the_app_does_not_start(
    tmux: Tmux, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text('keys = {undo = "q"}')
    tmux.line(f"FLAME_CONFIG=config.toml {FLAME} view {SAMPLES / 'decode_small.sqlite'}")
    tmux.until(r"\[keys\] has q for both undo and quit")
    ended(tmux, "2")


@pytest.mark.deep
@pytest.mark.parametrize(
    "environment",
    [{"NO_COLOR": "1"}, {"TERM": "linux"}, {"TERM": "screen-256color"}, {"STY": "1.tty"}],
)
def test_some_are_not_asked(
    terminals: list[Terminal], decode: Path, environment: dict[str, str]
) -> None:
    terminal = start(terminals, decode, "", COMMAND, **environment)
    terminal.read_until(SHOWN)
    assert b"]11;" not in terminal.output


def test_who_has_chosen_a_theme_is_not_asked(
    terminals: list[Terminal], decode: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('theme = "flame-light"')
    terminal = start(terminals, decode, "", COMMAND, FLAME_CONFIG=str(config))
    terminal.read_until(SHOWN)
    assert b"]11;" not in terminal.output
    assert LIGHT in terminal.output
