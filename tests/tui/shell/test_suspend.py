"""ctrl+z in a real terminal: the shell is back, and fg goes on where one was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flame.core.errors import UsageError
from flame.options.config import Config
from flame.tui.shell.command import SUSPEND
from flame.tui.shell.keymap import keymap_of
from tests.support.paths import SAMPLES
from tests.tui.conftest import open_app
from tests.tui.test_first_minute import FLAME, PROMPT, Tmux, ended
from tests.tui.test_first_minute import pytestmark as needs_tmux
from tests.tui.test_first_minute import tmux as tmux

DUMP = SAMPLES / "six_levels" / "tiny_llm.fdump"
KERNELS = r"▏all .*\n▏.*▏?gemm<32>"
"""What the icicle of this dump begins with when it shows nothing but kernels."""


def stopped(tmux: Tmux) -> None:
    """Stop what runs, and see that the terminal is the shell's."""
    tmux.press("C-z")
    tmux.until_that(lambda screen: re.search(r"Stopped|suspended", screen), "the shell's word")
    tmux.until_that(lambda screen: screen.rstrip().endswith(PROMPT), "the prompt")
    assert tmux.modes == "0 0 1 0"
    tmux.line("echo shell has 'the terminal'; stty -a")
    tmux.until("shell has the terminal", r"(?<!-)\bicanon\b", r"(?<!-)\becho\b")


@needs_tmux
@pytest.mark.parametrize("command", ["view", "attach"])
def test_it_stops_and_goes_on_where_it_was(tmux: Tmux, command: str) -> None:
    tmux.line(f"{FLAME} {command} {DUMP}")
    tmux.until("tiny_llm", "of all")
    tmux.press("L", "5")
    tmux.until(KERNELS)
    stopped(tmux)
    tmux.line("fg")
    tmux.until(KERNELS)
    tmux.press("Tab")  # it takes keys again
    tmux.until("Callers|callers")
    tmux.press("q")
    ended(tmux)


@needs_tmux
@pytest.mark.deep
def test_it_stops_under_a_dialog_and_while_a_search_is_typed(tmux: Tmux) -> None:
    tmux.line(f"{FLAME} view {DUMP}")
    tmux.until("tiny_llm", "of all")
    tmux.press("L")
    tmux.until("Arrangements")
    stopped(tmux)
    tmux.line("fg")
    tmux.until("Arrangements")
    tmux.press("q")
    tmux.until_gone("Arrangements")
    tmux.search("gemm<16")
    stopped(tmux)
    tmux.line("fg")
    tmux.until("gemm<16 ")
    tmux.type("> no")
    tmux.until("gemm<16> no")
    tmux.press("C-c")
    ended(tmux)


async def test_whoever_has_given_its_key_to_another_command_keeps_that(decode: Path) -> None:
    async with open_app(decode, config=Config(keys={"undo": "ctrl+z"})) as user:
        await user.press("i", "ctrl+z")
        assert not user.screen.shown.selection.layout.inverted
        assert SUSPEND not in user.screen.commands
    with pytest.raises(UsageError, match=r"ctrl\+z for both undo and suspend"):
        keymap_of({"undo": "ctrl+z", "suspend": "ctrl+z"})
    assert keymap_of({"undo": "ctrl+z", "suspend": "f9"})["flame.suspend"] == "f9"


async def test_there_is_no_shell_behind_a_browser(
    decode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")
    async with open_app(decode) as user:
        assert SUSPEND not in user.screen.commands
    monkeypatch.delenv("TEXTUAL_DRIVER")
    async with open_app(decode) as user:
        assert SUSPEND in user.screen.commands
