"""What tests of live recordings share: a feed whose clock stands still."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flame.core.live.feed import RecordingFeed
from flame.core.options import LoadOptions
from tests.core.live.recordings import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def feed(clock: Clock) -> Iterator[RecordingFeed]:
    feed = RecordingFeed(LoadOptions(), clock)
    yield feed
    feed.close()
