"""Mistakes in the options of ``flame record`` are told in one line, and record nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Flame

pytestmark = pytest.mark.deep


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "name a command to record: flame record -- CMD"),
        (["--"], "name a command to record"),
        (["--nope", "true"], "unknown: --nope (see flame record --help)"),
        (["-o"], "expected one argument"),
        (["-o", "", "true"], "-o: no folder given"),
        (["--pc", "often", "true"], "--pc 'often': choose continuous, serialized or off"),
        (["--pc", "continuous:4", "true"], "choose a period from 5 to 31"),
        (["--duration", "soon", "true"], "--duration: 'soon' is not a time"),
        (["--duration", "0s", "true"], "nothing would be recorded"),
        (["--max-size", "big", "true"], "--max-size: 'big' is not an amount of data"),
        (["--max-size", "0MB", "true"], "nothing could be recorded"),
    ],
)
def test_usage_errors(words: list[str], reason: str, flame: Flame, folder: Path) -> None:
    result = flame("record", *words)
    assert result.code == 2
    assert reason in result.complaint()
    assert not list(folder.iterdir())


def test_a_library_that_is_not_there(
    flame: Flame, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAME_LIBRARY", "gone.so")
    result = flame("record", "true")
    assert result.code == 2
    assert result.complaint() == "gone.so: no such library (FLAME_LIBRARY names it)"
    monkeypatch.delenv("FLAME_LIBRARY")
    monkeypatch.setattr("flame.record.environment._PACKAGE", folder / "flame")
    result = flame("record", "true")
    assert result.code == 2
    assert "libflameinject.so was not built" in result.complaint()
    assert not list(folder.iterdir())
