"""Only a terminal that is known to erase in the background that is set is told to erase."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

ASK = """
import os
from flame.console.erasing import erases_in_background
print(erases_in_background(os.environ))
"""
"""In a process of its own: Python looks into terminfo once in each."""

OWN = ("TERM", "TMUX", "STY", "TERM_PROGRAM")


@pytest.mark.parametrize(
    ("environment", "erases"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm"}, True),
        ({"TERM": "vt100"}, False),
        ({"TERM": "screen-256color"}, False),
        ({"TERM": "no-such-terminal"}, False),
        ({}, False),
        ({"TERM": "screen-256color", "TMUX": "/tmp/tmux", "TERM_PROGRAM": "tmux"}, True),
        ({"TERM": "xterm-256color", "TMUX": "/tmp/tmux"}, False),
        ({"TERM": "xterm-256color", "STY": "1.pts"}, False),
        ({"TERM": "screen", "TMUX": "/tmp/tmux", "TERM_PROGRAM": "tmux", "STY": "1.pts"}, False),
    ],
)
def test_who_erases(environment: dict[str, str], erases: bool) -> None:
    others = {key: text for key, text in os.environ.items() if key not in OWN}
    command = [sys.executable, "-c", ASK]
    answer = subprocess.check_output(
        command, text=True, cwd=ROOT, env={**others, **environment, "PYTHONPATH": str(ROOT)}
    )
    assert answer.strip() == str(erases)
