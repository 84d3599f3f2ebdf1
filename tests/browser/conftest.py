"""The browser, once for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import chromium
from tests.garbage import leaks_told as leaks_told


@pytest.fixture(scope="session")
def packages() -> Path:
    """See `chromium.packages`."""
    return chromium.packages()
