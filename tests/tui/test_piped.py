"""The app on a trace that comes by standard input: keys are the terminal's, nothing is left."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import wait_until
from tests.tui.test_first_minute import FLAME, SAMPLE, Tmux, ended

pytestmark = [
    pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux"),
    pytest.mark.deep,  # It is started twice, in a terminal.
]


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    terminal = Tmux(tmp_path)
    terminal.line(f"export TMPDIR={shlex.quote(tempfile.gettempdir())}; clear")
    yield terminal
    terminal.close()


def left() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(".flame-*"))


def test_keys_come_from_the_terminal(tmux: Tmux, tmp_path: Path) -> None:
    tmux.line(f"cat {SAMPLE} | {FLAME} view -")
    tmux.until(r"flame  stdin", "root")
    assert left()
    tmux.press("C")
    tmux.until("copied the command line")
    tmux.press("q")
    ended(tmux)
    wait_until(lambda: not left())
    assert '"paths":["-"]' in (tmp_path / "flame" / "state.json").read_text()
    assert not (tmp_path / "flame" / "recent.json").exists()


def test_without_a_terminal_for_keys_the_view_is_printed(tmux: Tmux) -> None:
    tmux.line(f"cat {SAMPLE} | setsid -w {FLAME} view - | head -4 > out; clear; cat out")
    tmux.until("stdin · ")
    tmux.line(f"clear; cat {SAMPLE} | setsid -w {FLAME} view - 2>told; clear; cat told")
    tmux.until("note: no /dev/tty to read keys from: the app cannot be shown")
    assert left() == []
