"""Expressions that would take years, in every option that takes one: one line, and an exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.cli.main import main
from flame.core import regex

NAME = "ax" * 20 + "a" * 3000 + "!"
HARD = r"^(([a-z!])+.)+[A-Z]([a-z!])+$"
COMPLAINT = f"'{HARD}' takes too long: try a simpler expression"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(regex, "LONGEST_SEARCH", 0.05)
    path = tmp_path / "long.folded"
    path.write_text(f"main.py:1;{NAME} 3\nother;short 2\n")
    return str(path)


@pytest.mark.parametrize("command", [["view", "--print"], ["export", "-f", "folded", "-o", "-"]])
@pytest.mark.parametrize(
    "option",
    [
        ["--show-stacks", HARD],
        ["--hide-stacks", HARD],
        ["--show-from", HARD],
        ["--hide-frames", HARD],
        ["--rename", f"{HARD}=x"],
    ],
)
def test_every_option_gives_up(
    trace: str, command: list[str], option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command[0], trace, *command[1:], *option]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.splitlines() == [f"flame: {COMPLAINT}"]
