"""From an out-of-memory error to who held the memory, in a real terminal: in tmux."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.writers.snapshotfile import SnapshotFile
from tests.tui.test_first_minute import FLAME, Tmux, ended
from tests.tui.test_first_minute import pytestmark as pytestmark
from tests.tui.test_first_minute import tmux as tmux


@pytest.mark.deep
def test_from_a_failed_request_to_who_held_the_memory(tmux: Tmux, tmp_path: Path) -> None:
    file = SnapshotFile()
    spike = file.alloc(2_000_000, ("main", "warm_up"))
    file.free(spike)
    for _ in range(3):
        file.alloc(400_000, ("main", "cache"))
    file.fail(9_000_000, 1_000)
    tmux.line(f"{FLAME} view {file.write(tmp_path / 'snapshot.pickle')}")
    tmux.until("peak 2.00 MB", "1 failed request", "warm_up")
    tmux.press("Tab", "Tab", "Tab")
    tmux.until("▾ peak 2.00 MB", "T peak", "╵0 ")
    tmux.press(")")
    tmux.until("9.00 MB could not be had", "enter this moment")
    tmux.press("Enter")
    tmux.until("× when 9.00 MB could not be had, event ", "total +1.20 MB")
    tmux.press("BTab", "BTab", "BTab")
    tmux.until("cache .*1.20 MB")
    tmux.press("z")
    tmux.until("warm_up .*2.00 MB")
    tmux.press("q")
    ended(tmux)
