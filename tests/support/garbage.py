"""A resource that a test leaks is told by that test, not by a later one."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def leaks_told(earlier_exempt: None) -> Iterator[None]:
    """Collects the garbage of the test, in which an open file or a running process is an error.

    For the folders whose tests start processes: their conftest.py imports it.
    """
    yield
    gc.collect()
