"""The first minute in a real terminal: what a person does with a trace, key by key, in tmux."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import flame
from flame.core.tree import StackTree
from flame.core.units import format_count
from tests.conftest import TRACES
from tests.tui import traces

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux")

PATIENCE = 30.0
ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "decode_small.sqlite"
REAL = TRACES / "nsys" / "a100_llm_nvtx.sqlite"
TRACE = REAL if REAL.exists() else SAMPLE
LEVELS = ("nvtx", "kernel")
FLAME = f"{shlex.quote(sys.executable)} -m flame"


class Tmux:
    """A shell in a terminal of 120 x 40, which a person looks at and types into."""

    def __init__(self, folder: Path) -> None:
        self._socket = f"flame-{uuid.uuid4().hex[:12]}"
        self._run("new-session", "-d", "-x", "120", "-y", "40", "-c", str(folder), "exec sh")
        self.line(f"export PS1='ready$ ' TERM=screen-256color COLORTERM=truecolor")
        self.line(f"export PYTHONPATH={shlex.quote(str(ROOT))} XDG_STATE_HOME=$PWD")

    def _run(self, *words: str) -> str:
        command = ["tmux", "-L", self._socket, "-f", os.devnull, *words]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout

    @property
    def screen(self) -> str:
        """What is on the screen, as text."""
        return self._run("capture-pane", "-p")

    def line(self, text: str) -> None:
        """Type a line into the shell."""
        self.type(text)
        self.press("Enter")

    def type(self, text: str) -> None:
        """Type ``text`` as it is."""
        self._run("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys by their names in tmux."""
        self._run("send-keys", *keys)

    def until(self, *texts: str) -> str:
        """Wait until all of ``texts`` (regular expressions) are on the screen; what is there."""
        return self.until_that(lambda screen: all(re.search(text, screen) for text in texts), texts)

    def until_that(self, holds: Callable[[str], object], asked: object = "") -> str:
        """Wait until ``holds`` of the screen."""
        end = time.monotonic() + PATIENCE
        while not holds(screen := self.screen):
            assert time.monotonic() < end, f"never came: {asked}\n{screen}"
            time.sleep(0.03)
        return screen

    def resize(self, width: int, height: int) -> None:
        """Pull the terminal to another size."""
        self._run("resize-window", "-x", str(width), "-y", str(height))

    @property
    def modes(self) -> str:
        """Alternate screen, mouse, cursor, and application keys: 0 0 1 0 in a shell."""
        names = ("alternate_on", "mouse_any_flag", "cursor_flag", "keypad_cursor_flag")
        return self._run(
            "display-message", "-p", " ".join(f"#{{{name}}}" for name in names)
        ).strip()

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], capture_output=True)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    """A terminal in an empty folder."""
    terminal = Tmux(tmp_path)
    yield terminal
    terminal.close()


def ended(tmux: Tmux, code: int = 0) -> None:
    """Wait until the shell is back; the terminal must be as it was."""
    tmux.until_that(lambda screen: screen.rstrip().endswith("ready$"), "the prompt")
    assert tmux.modes == "0 0 1 0"
    tmux.line("echo left with $?; stty -a")
    screen = tmux.until(rf"^(?m:left with {code}$)", r"(?<!-)\bicanon\b")
    assert re.search(r"(?<!-)\becho\b", screen)


def hottest_range(tree: StackTree) -> int:
    """The node to which Down leads from the root."""
    return int(tree.children(0)[0])


def share(tree: StackTree, name: str) -> str:
    """How much of the GPU time lies in kernels called ``name``, as the status line says it."""
    inside = sum(int(tree.total[node]) for node in range(len(tree)) if tree.name(node) == name)
    return f"{100 * inside / int(tree.total[0]):.1f} % of all"


def folded_sum(path: Path) -> tuple[int, int]:
    """Number of stacks in a folded file, and the sum of their values."""
    values = [int(line.rpartition(" ")[2]) for line in path.read_text("utf-8").splitlines()]
    return len(values), sum(values)
