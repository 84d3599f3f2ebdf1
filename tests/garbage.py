"""A resource that a test leaks is told by that test, not by a later one."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def _frozen_modules() -> None:
    """What was imported and collected so far is never garbage: looking at it takes long."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def leaks_told(_frozen_modules: None) -> Iterator[None]:
    """Collects the garbage of the test, whose unclosed files and processes are errors.

    For the folders whose tests start processes: their conftest.py imports it.
    """
    yield
    gc.collect()
