"""What the host ran while a GPU waited is what a plain loop over its ranges finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.activities import NONE
from flame.core.model.profile import Profile
from flame.core.timeline.idle_host import idle_host
from flame.core.timeline.idle_parts import idle_parts
from tests.support.profiles.recorded import Recorded
from tests.support.tiers import examples

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=8)
GAPS = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6)), min_size=1, max_size=6)


def made(ranges: list[tuple[int, int]], gaps: list[tuple[int, int]]) -> Profile:
    """Kernels one after the other, each launched just before it begins, and ranges."""
    trace = Recorded()
    for number, (start, length) in enumerate(ranges):
        trace.range(f"range {number}", start, start + length)
    at = 5
    for number, (pause, length) in enumerate(gaps, 1):
        at += pause
        trace.call("cudaLaunchKernel", at - 1, at, number)
        trace.kernel("gemm", at, at + length, number)
        at += length
    return trace.profile()


def innermost(profile: Profile, thread: int, time: int) -> int:
    """The frame of the deepest range that is open on a thread at a time."""
    found, pieces = (-1, NONE), profile.ranges
    for at in range(len(pieces) if pieces else 0):
        assert pieces is not None
        if pieces.thread[at] == thread and pieces.start[at] <= time < pieces.end[at]:
            found = max(found, (int(pieces.depth[at]), int(pieces.frame[at])))
    return found[1]


@examples(0.5)
@given(ranges=RANGES, gaps=GAPS)
def test_idle_time_is_cut_by_what_was_innermost(
    ranges: list[tuple[int, int]], gaps: list[tuple[int, int]]
) -> None:
    profile = made(ranges, gaps)
    (parts,) = idle_parts(profile)
    found = idle_host(profile, parts, np.ones(len(parts.low), bool))
    times: dict[int, list[int]] = {}
    columns = (found.part, found.frame, found.piece, found.low, found.high)
    for part, frame, piece, low, high in zip(*(one.tolist() for one in columns), strict=True):
        assert found.path(piece)[-1:] == ((frame,) if frame >= 0 else ())
        thread = int(profile.activities.thread[parts.after[parts.gap[part]]])
        times.setdefault(part, []).extend(range(low, high))
        assert all(innermost(profile, thread, time) == frame for time in range(low, high))
    for part, covered in times.items():
        assert covered == list(range(int(parts.low[part]), int(parts.high[part])))
    assert sorted(times) == np.flatnonzero(parts.after[parts.gap] >= 0).tolist()
