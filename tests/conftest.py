"""What all tests share: where real traces lie, and how hypothesis runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.paths import ROOT

# Real traces are not part of the repository; where they are absent, the tests that need them skip.
TRACES = ROOT.parent / "shared" / "traces"

# For parametrisation, by file name. Empty where the traces are absent: pytest then skips the test.
NSYS_TRACES = sorted(path.name for path in TRACES.glob("nsys/*.sqlite"))

needs_traces = pytest.mark.skipif(not NSYS_TRACES, reason=f"no real traces in {TRACES}")

# What a shell starts in the background ignores ctrl+c, and so would every program that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: a shared machine stalls at random. In CI the same examples every time, so that a
# red run speaks of the change and not of the draw; and fewer, for it has little time.
settings.register_profile("flame", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("ci" if "CI" in os.environ else "flame")


@pytest.fixture
def nsys_trace() -> Callable[[str], Path]:
    """Path of the real Nsight Systems export of that file name; skips the test if it is absent."""

    def find(name: str) -> Path:
        path = TRACES / "nsys" / name
        if not path.exists():
            pytest.skip(f"no real trace {path}")
        return path

    return find
