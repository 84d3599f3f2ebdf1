"""Traces for the timeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.writers.nsysfile import NsysFile
from tests.tui import traces


@pytest.fixture
def decode(tmp_path: Path) -> Path:
    return traces.decode(tmp_path / "decode.sqlite")


@pytest.fixture
def streams(tmp_path: Path) -> Path:
    """Two streams; on stream 7 ten kernels of 1 ms, each followed by nine of 10 µs."""
    with NsysFile(tmp_path / "streams.sqlite") as trace:
        trace.gpu(0, "NVIDIA H100")
        for step in range(10):
            begin = 5_000_000_000 + 10_000_000 * step
            trace.kernel(f"long_{step}", begin, begin + 1_000_000, corr=None)
            for place in range(9):
                start = begin + 2_000_000 + 20_000 * place
                trace.kernel("short", start, start + 10_000 + place, corr=None)
        trace.kernel("other", 5_050_000_000, 5_058_000_000, corr=None, stream=9)
    return tmp_path / "streams.sqlite"
