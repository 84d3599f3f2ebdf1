"""What several modules look at, of real traces, is kept until all of them have run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.views.shown_cases import loaded, looked, over_time

HERE = Path(__file__).parent


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Let go of the traces after the last test here, as other modules do with their own."""
    if nextitem is None or HERE not in nextitem.path.parents:
        loaded.cache_clear()
        looked.cache_clear()
        over_time.cache_clear()
