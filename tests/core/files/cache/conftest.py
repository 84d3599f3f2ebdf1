"""A cache of each test's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, with the usual bounds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("FLAME_CACHE_SIZE", "FLAME_CACHE_DAYS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "flame"
