"""What tests of the reader of dumps share: a dump."""

from __future__ import annotations

import pytest

from tests.support.writers.fdumpfile import API, DumpFile


@pytest.fixture
def file() -> DumpFile:
    """A dump in which call 307 has a name."""
    dump = DumpFile()
    dump.name(API, 307, "cuLaunchKernel")
    return dump
