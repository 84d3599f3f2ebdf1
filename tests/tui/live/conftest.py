"""A recording to watch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.live.following import ATTN, MLP, SOFTMAX
from tests.tui.recording import Recording


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """A recording with one step."""
    one = Recording(tmp_path)
    one.run(ATTN, SOFTMAX, MLP)
    return one
