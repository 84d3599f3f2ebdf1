"""What tests of dumps that grow share: one that has not ended."""

from __future__ import annotations

import pytest

from tests.core.live.decode.growing_dumps import Film
from tests.support.writers.fdumpfile import API


@pytest.fixture
def film() -> Film:
    """A dump that has not ended, in which call 307 has a name."""
    dump = Film()
    dump.name(API, 307, "cuLaunchKernel")
    dump.ended = False
    return dump
