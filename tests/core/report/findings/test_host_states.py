"""Garbage collection and waiting for the GIL: taken out of the host's part before it is divided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.report.findings.finding import Finding
from flame.core.report.findings.findings import find
from flame.core.report.host import held_host as held_host_module
from flame.core.report.host.held_host import held_host
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.timeline import idle_parts as idle_parts_module
from flame.core.timeline.idle_host import frames_at
from flame.core.timeline.lane_intervals import LaneIntervals
from flame.core.timeline.thread_states.holdups import Holdups
from tests.support.profiles.recorded import Recorded, i8
from tests.support.tiers import examples

COLLECTING, WAITING = "collecting", "waiting"

US = 1_000
STEP = 500 * US
PAUSE = 300 * US


def program(kernels: int = 100) -> Recorded:
    """Kernels of 200 µs, each launched 300 µs after the one before."""
    trace = Recorded()
    for number in range(kernels):
        at = number * STEP
        trace.call("cudaLaunchKernel", at - US, at, number + 1)
        trace.kernel("gemm", at, at + STEP - PAUSE, number + 1)
    return trace


def by_id(scope: Scope) -> dict[str, Finding]:
    return {one.id: one for one in find(scope).found}


@pytest.mark.parametrize(("each", "fires"), [(6 * US, True), (5 * US, False)])
@pytest.mark.parametrize("thread", [0, 1])
def test_gc(each: int, fires: bool, thread: int) -> None:
    trace = program()
    for number in range(100):
        begin = number * STEP + STEP - PAUSE // 2
        trace.range("Python GC", begin, begin + each, thread=thread)
    told = by_id(Scope(trace.profile()))
    assert ("gc" in told) == (fires and thread == 0)
    if "gc" in told:
        # The last collection is in no gap. Of the rest nothing is told twice.
        assert told["gc"].bound == 99 * each
        assert told["host-bound"].bound == 99 * (PAUSE - each)
        assert told["gc"].place is not None


Held = tuple[str, int, int, int]
"""A state, its thread, when it begins and ends."""


@contextmanager
def held_up(held: Sequence[Held]) -> Iterator[None]:
    """While this lasts all programs are in these states."""

    def lanes(state: str) -> LaneIntervals:
        chosen = [one for one in held if one[0] == state]
        thread, start, end = (
            np.array([one[at] for one in chosen], np.int64).reshape(-1) for at in (1, 2, 3)
        )
        return LaneIntervals.union(thread, start, end)

    holdups = Holdups(lanes(COLLECTING), lanes(WAITING))
    with pytest.MonkeyPatch.context() as patch:
        for module in (held_host_module, idle_parts_module):
            patch.setattr(module, "find_holdups", lambda profile: holdups)
        yield


def test_gil() -> None:
    waits = [
        (WAITING, 0, number * STEP - 100 * US, number * STEP - 50 * US) for number in range(1, 100)
    ]
    both = [(COLLECTING, 0, number * STEP - 80 * US, number * STEP) for number in range(1, 100)]
    with held_up([*waits, *both]):
        told = by_id(Scope(program().profile()))
    # What is both is garbage collection; 1 µs of it is the launching call, the host's part too.
    assert told["gc"].bound == 99 * 80 * US
    assert told["gil"].bound == 99 * 20 * US
    assert told["host-bound"].bound == 99 * (PAUSE - 100 * US)


def test_no_states_no_findings() -> None:
    told = by_id(Scope(program().profile()))
    assert {*told} == {"host-bound"}


moments = st.integers(0, 40)
spans = st.tuples(moments, moments).map(sorted).filter(lambda pair: pair[0] < pair[1])


@examples(1)
@given(
    st.lists(
        st.tuples(moments, st.integers(1, 5)), min_size=2, max_size=6, unique_by=lambda k: k[0]
    ),
    st.lists(st.tuples(st.booleans(), st.integers(0, 1), spans), min_size=1, max_size=6),
)
def test_each_moment_is_held_by_one_state(
    kernels: list[tuple[int, int]], held: list[tuple[bool, int, list[int]]]
) -> None:
    trace = Recorded()
    for number, (at, length) in enumerate(kernels, 1):
        trace.call("cudaLaunchKernel", at, at + 1, number)
        trace.kernel("gemm", at + 1, at + 1 + length, number)
    states = [
        (COLLECTING if gc else WAITING, thread, low, high) for gc, thread, (low, high) in held
    ]
    scope = Scope(trace.profile())
    gpu = budgets(scope)[0].gpu
    parts = scope.idle(gpu)
    with held_up(states):
        found = held_host(scope, parts, np.ones(len(parts.gap), bool), gpu.windows)
    for at, gap in enumerate(parts.gap.tolist()):
        inside = set(range(int(parts.low[at]), int(parts.high[at])))
        inside &= set(range(*gpu.window)) if parts.after[gap] >= 0 else set()
        collecting, waiting = (
            {
                moment
                for of, thread, low, high in states
                if of == state and thread == 0
                for moment in range(low, high)
            }
            for state in (COLLECTING, WAITING)
        )
        assert found.gc[at] == len(inside & collecting)
        assert found.gil[at] == len((inside & waiting) - collecting)


@examples(1)
@given(
    st.lists(st.tuples(spans, st.integers(0, 1)), max_size=6),
    st.lists(st.tuples(moments, st.integers(0, 2)), max_size=8),
)
def test_what_is_innermost_at_a_time(
    ranges: list[tuple[list[int], int]], times: list[tuple[int, int]]
) -> None:
    trace = Recorded()
    trace.kernel("gemm", 0, 1)
    for number, ((low, high), thread) in enumerate(ranges):
        trace.range(f"range {number}", low, high, thread=thread)
    profile = trace.profile()
    pieces = profile.ranges
    found = frames_at(profile, i8(*(t for _, t in times)), i8(*(at for at, _ in times)))
    for (at, thread), frame in zip(times, found.tolist(), strict=True):
        there = (
            []
            if pieces is None
            else [
                (int(pieces.depth[row]), int(pieces.frame[row]))
                for row in range(len(pieces))
                if pieces.thread[row] == thread and pieces.start[row] <= at < pieces.end[row]
            ]
        )
        assert frame == max(there, default=(0, -1))[1]
