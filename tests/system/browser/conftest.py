"""The browser, once for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.garbage import leaks_told as leaks_told
from tests.system.browser import chromium


@pytest.fixture(scope="session")
def packages() -> Path:
    """See `chromium.packages`."""
    return chromium.packages()
