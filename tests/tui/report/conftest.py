"""A run whose GPU waits for the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.report.runs import hungry


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return hungry(tmp_path / "run.sqlite")
