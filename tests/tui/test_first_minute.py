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

from flame.core.loading.many import load
from flame.core.model.tree import StackTree
from flame.core.projection.labels import Naming
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.core.units import format_count
from flame.tui.shell.commands import LEVEL_KEYS
from tests.conftest import TRACES
from tests.support.paths import ROOT, SAMPLES
from tests.support.tiers import deep_except
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux")

SAMPLE = SAMPLES / "decode_small.sqlite"
REAL = TRACES / "nsys" / "rtx3070_train_17k.sqlite"
STACK = ("nvtx", "kernel")
FLAME = f"{shlex.quote(sys.executable)} -m flame"
PROMPT = "ready$"


class Tmux:
    """A shell in a terminal of 120 x 40, which a person looks at and types into."""

    def __init__(self, folder: Path) -> None:
        self._socket = f"flame-{uuid.uuid4().hex[:12]}"
        self._run("new-session", "-d", "-x", "120", "-y", "40", "-c", str(folder), "exec sh")
        self.line("unset COLUMNS LINES")
        self.line(f"export PYTHONPATH={shlex.quote(str(ROOT))} XDG_STATE_HOME=$PWD")
        self.line(f"export TERM=screen-256color COLORTERM=truecolor PS1='{PROMPT} '; clear")

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

    def search(self, text: str) -> None:
        """Type ``text`` into the search box, once that has the cursor."""
        before = self._search_row
        self.type("/")
        self.until_that(lambda _: self._search_row != before, "a cursor in the search box")
        self.type(text)

    @property
    def _search_row(self) -> str:
        """The row with the search box, styles and all."""
        return self._run("capture-pane", "-p", "-e").splitlines()[-2]

    def press(self, *keys: str) -> None:
        """Press keys by their names in tmux."""
        self._run("send-keys", *keys)

    def until(self, *texts: str) -> str:
        """Wait until all of ``texts`` (regular expressions) are on the screen; what is there."""
        return self.until_that(lambda screen: all(re.search(text, screen) for text in texts), texts)

    def until_gone(self, text: str) -> str:
        """Wait until ``text`` is no longer on the screen; what is there."""
        return self.until_that(lambda screen: text not in screen, f"without {text}")

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


def ended(tmux: Tmux, codes: str = "0") -> None:
    """Wait until the shell is back; the terminal must be as it was."""
    tmux.until_that(lambda screen: screen.rstrip().endswith(PROMPT), "the prompt")
    assert tmux.modes == "0 0 1 0"
    tmux.line("echo left with $?; stty -a")
    screen = tmux.until(rf"(?m)left with ({codes})$", r"(?<!-)\bicanon\b")
    assert re.search(r"(?<!-)\becho\b", screen)


def heaviest_kernel(tree: StackTree, node: int) -> str:
    """Name of the frame at the end of the heaviest stack through ``node``."""
    return tree.name(max(range(node, int(tree.end[node])), key=lambda one: int(tree.own[one])))


def found(tree: StackTree, name: str) -> str:
    """What the status line says of a search that finds only leaves called ``name``."""
    nodes = [node for node in range(len(tree)) if tree.name(node) == name]
    percent = 100 * sum(int(tree.total[node]) for node in nodes) / int(tree.total[0])
    return f" {format_count(len(nodes))} frames · .* · {percent:.1f} % of all"


def keys_to(tree: StackTree) -> list[str]:
    """Keys that take out of ``tree``'s stack what is not in `STACK`."""
    kinds = {tree.kind(node).title for node in range(len(tree))}
    return [key for level, key in LEVEL_KEYS.items() if level in kinds.difference(STACK)]


def stacks(path: Path) -> dict[str, int]:
    """Values by stack of a folded file."""
    lines = (line.rpartition(" ") for line in path.read_text("utf-8").splitlines())
    return {stack: int(value) for stack, _, value in lines}


@pytest.mark.parametrize("trace", deep_except([SAMPLE], [REAL, SAMPLE]), ids=lambda path: path.stem)
def test_from_the_hottest_range_to_an_export(tmux: Tmux, tmp_path: Path, trace: Path) -> None:
    if not trace.exists():
        pytest.skip(f"no real trace {trace}")
    profile = load(trace)
    tree = project(profile, Selection(levels=STACK, naming=Naming("short", numbers=True)))
    hottest = tree.children(0)[0]
    span, kernel = tree.name(hottest), heaviest_kernel(tree, hottest)

    tmux.line(f"{FLAME} view {trace}")
    tmux.until("▏all  100.0 %")
    tmux.press(*keys_to(project(profile, Selection())))
    tmux.until(r"GPU time ▾\s+nvtx › kernel")

    tmux.press("Down")
    tmux.until(f" {span}  .* of all · ")
    tmux.press("Enter")
    tmux.until_gone("▏all  100.0 %")
    tmux.until(f"▏{span}  100.0 %")

    tmux.search(kernel)
    tmux.until(found(tree, kernel))
    tmux.press("Enter")
    tmux.until(r" · match 1 of \d+", f"all ▸ .*{kernel}")

    tmux.press("x")
    tmux.until(f"▏{kernel}  .* of all · ")
    tmux.press("BTab")
    tmux.until(f"▏{span}  100.0 %")
    tmux.press("Escape")
    tmux.until_gone(" frames · ")

    tmux.press("BTab", "BTab")
    tmux.until("GPU0 busy")
    tmux.press("b", "Right", "Right", "Right")
    tmux.until(" brush .* s")
    tmux.press("Enter")
    tmux.until(" × time ")
    tmux.press("z")
    tmux.until_gone(" × time ")

    tmux.press("Tab", "Tab")
    tmux.until(f"▏{span}  100.0 %")
    tmux.press("Escape")
    tmux.until("▏all  100.0 %")
    tmux.press("e")
    tmux.until("Export", r"\(x\) what is shown")
    tmux.press("Enter")
    name = f"{trace.stem}.collapsedstack.txt"
    tmux.until(f"wrote {name}: {format_count(int((tree.own > 0).sum()))} stacks")
    tmux.press("q")
    ended(tmux)

    as_shown = f"--levels {','.join(STACK)} --fold-numbers --kernel-names short"
    tmux.line(f"{FLAME} export {trace} -f folded -o own.txt {as_shown}; echo is $?")
    tmux.until("is 0")
    assert stacks(tmp_path / name) == stacks(tmp_path / "own.txt")
    assert sum(stacks(tmp_path / name).values()) == profile.gpu_time


def test_quitting_at_once(tmux: Tmux) -> None:
    tmux.line(f"{FLAME} view {SAMPLE}")
    tmux.until_that(lambda screen: tmux.modes.startswith("1"), "the app")
    tmux.press("q")
    ended(tmux, "0|130")


@pytest.mark.deep
def test_the_terminal_changes_its_size(tmux: Tmux) -> None:
    tmux.line(f"{FLAME} view {SAMPLE}")
    tmux.until("▏all  100.0 %")
    tmux.resize(60, 15)
    tmux.until(r"▏all  100.0 %[^\n]*\n", r"\? help  q quit *$")
    tmux.resize(19, 4)
    tmux.until("needs 20 × 5")
    tmux.resize(120, 40)
    tmux.until("▏all  100.0 %", "GPU time ▾", r"\? help  q quit")
    tmux.press("Down")
    tmux.until("  .* of all · ")
    tmux.press("q")
    ended(tmux)


def test_a_dumb_terminal_is_refused_in_one_line(tmux: Tmux) -> None:
    tmux.line(f"TERM=dumb {FLAME} view {SAMPLE}")
    tmux.until("flame: TERM=dumb cannot show the app: use --print")
    ended(tmux, "2")
