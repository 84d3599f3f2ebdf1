"""Python stacks from function calls: rule by rule, and against looking at every call."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.attribution.nesting import MAX_DEPTH
from flame.core.attribution.python_calls import FunctionIndex
from flame.core.model.profile import Profile
from flame.core.model.raw import RawPythonCalls, TableBuilder
from flame.core.model.stacks import StackBuilder
from tests.support.oracles.naive_python import Called, stack_at
from tests.support.profiles.recorded import Recorded, i8

THREAD_PROCESS = np.zeros(2, np.int32)
MOMENTS = range(-1, 12)


def indexed(calls: list[Called]) -> FunctionIndex:
    """``calls``, whose frames are their places in the list."""
    batches = TableBuilder(RawPythonCalls)
    columns = {name: i8(*(getattr(one, name) for one in calls)) for name in _COLUMNS}
    batches.add(**columns, frame=i8(*range(len(calls))))
    return FunctionIndex(batches.build(), THREAD_PROCESS, MOMENTS[-1])


_COLUMNS = ("start", "end", "thread", "call", "caller")


def stacks_at(calls: list[Called], thread: int, *times: int) -> list[tuple[str, ...]]:
    """Names of the functions open on ``thread`` at each time, outermost first."""
    index, stacks = indexed(calls), StackBuilder()
    paths = index.paths(stacks)
    table = stacks.build()
    found = paths[index.innermost(i8(*[thread] * len(times)), i8(*times))]
    return [tuple(calls[frame].name for frame in table.path(stack)) for stack in found.tolist()]


def test_without_numbers_functions_nest_by_time() -> None:
    calls = [Called(0, 0, 9, "main"), Called(0, 2, 6, "step"), Called(0, 3, 4, "forward")]
    assert stacks_at(calls, 0, 1, 3, 5, 8, 10) == [
        ("main",),
        ("main", "step", "forward"),
        ("main", "step"),
        ("main",),
        (),
    ]


def test_a_function_is_open_from_its_start_to_its_end_both_included() -> None:
    assert stacks_at([Called(0, 3, 5, "f")], 0, 2, 3, 5, 6) == [(), ("f",), ("f",), ()]


def test_threads_see_only_their_own_functions() -> None:
    calls = [Called(0, 0, 9, "main"), Called(1, 2, 9, "worker")]
    assert stacks_at(calls, 1, 1, 5) == [(), ("worker",)]
    assert stacks_at(calls, -1, 5) == [()]


def test_a_callee_that_outlives_its_caller_by_rounding_stays_below_it() -> None:
    calls = [Called(0, 0, 9, "main", 1), Called(0, 1, 5, "f", 2, 1), Called(0, 2, 6, "g", 3, 2)]
    assert stacks_at(calls, 0, 6) == [("main", "f", "g")]


def test_functions_that_touch_are_not_inside_each_other() -> None:
    calls = [Called(0, 0, 9, "main", 1), Called(0, 1, 5, "f", 2, 1), Called(0, 5, 8, "g", 3, 1)]
    assert stacks_at(calls, 0, 5) == [("main", "g")]


def test_of_functions_with_equal_times_the_caller_has_the_smaller_number() -> None:
    calls = [Called(0, 4, 4, "inner", 8, 7), Called(0, 4, 4, "outer", 7)]
    assert stacks_at(calls, 0, 4) == [("outer", "inner")]


def test_a_caller_that_is_not_in_the_file_is_looked_up_by_time() -> None:
    calls = [Called(0, 0, 9, "main", 5, 1), Called(0, 2, 6, "f", 7, 6)]
    assert stacks_at(calls, 0, 3) == [("main", "f")]
    assert indexed(calls).contradicted == 0


def test_callers_that_time_does_not_allow_are_counted_and_placed_by_time() -> None:
    around = Called(0, 0, 11, "main", 1)
    impossible = {
        "itself": [Called(0, 4, 6, "f", 9, 9)],
        "on another thread": [Called(1, 0, 11, "worker", 2), Called(0, 4, 6, "f", 9, 2)],
        "already over": [Called(0, 1, 2, "earlier", 2), Called(0, 4, 6, "f", 9, 2)],
        "yet to start": [Called(0, 5, 6, "later", 20), Called(0, 4, 6, "f", 9, 20)],
        "two of that number": [
            Called(0, 1, 8, "one", 2),
            Called(0, 1, 7, "two", 2),
            Called(0, 4, 6, "f", 9, 2),
        ],
    }
    for why, calls in impossible.items():
        index = indexed([around, *calls])
        assert index.contradicted == 1, why
    assert stacks_at([around, *impossible["already over"]], 0, 4) == [("main", "f")]


def test_callers_in_a_circle_come_to_an_end() -> None:
    calls = [Called(0, 0, 9, "f", 1, 2), Called(0, 0, 9, "g", 2, 1)]
    assert stacks_at(calls, 0, 5) == [("f", "g")]
    assert indexed(calls).contradicted == 1


def test_depth_beyond_the_limit_is_counted_and_its_callers_stand_for_it() -> None:
    for numbered in (False, True):
        deep = MAX_DEPTH + 7
        calls = [
            Called(0, level, 2 * deep - level, "f", *((level + 1, level) if numbered else ()))
            for level in range(deep)
        ]
        assert indexed(calls).too_deep == 7
        (stack,) = stacks_at(calls, 0, deep)
        assert len(stack) == MAX_DEPTH


def test_backward_and_homeless_functions_are_never_open() -> None:
    calls = [Called(0, 5, 3, "backward", 1), Called(-1, 0, 9, "homeless", 2)]
    assert stacks_at(calls, 0, 3, 4, 5) == [()] * 3


def some_calls() -> st.SearchStrategy[list[Called]]:
    """Calls of two threads, some with numbers, some with callers, right and wrong ones."""
    fields = st.tuples(
        st.integers(0, 1), st.integers(0, 9), st.integers(0, 9), st.booleans(), st.integers(0, 12)
    )

    def numbered(rows: list[tuple[int, int, int, bool, int]]) -> list[Called]:
        return [
            Called(thread, start, end, f"f{row}", row + 1 if known else 0, caller)
            for row, (thread, start, end, known, caller) in enumerate(rows)
        ]

    return st.lists(fields, max_size=12).map(numbered)


@given(some_calls(), st.integers(0, 1))
def test_stacks_are_those_a_look_at_each_call_finds(calls: list[Called], thread: int) -> None:
    assert stacks_at(calls, thread, *MOMENTS) == [stack_at(calls, thread, t) for t in MOMENTS]


def python_of(profile: Profile, activity: int = 0) -> list[str]:
    table = profile.activities
    return [profile.frames[frame].name for frame in table.stacks.path(int(table.python[activity]))]


def test_a_kernel_gets_the_functions_open_where_it_was_launched() -> None:
    trace = Recorded()
    trace.function("main", 0, 100, 1)
    trace.function("forward", 10, 30, 2, 1)
    trace.function("elsewhere", 0, 100, 3, thread=1)
    trace.call("cudaLaunchKernel", 20, 25, corr=1)
    trace.kernel("gemm", 500, 600, corr=1)
    assert python_of(trace.profile()) == ["main", "forward"]


def test_a_stack_recorded_with_the_call_is_kept() -> None:
    trace = Recorded()
    trace.function("main", 0, 100, 1)
    trace.call("cudaLaunchKernel", 20, 25, corr=1, python=["run", "step"])
    trace.kernel("gemm", 500, 600, corr=1)
    assert python_of(trace.profile()) == ["run", "step"]


def test_where_no_function_is_open_the_innermost_operator_with_a_stack_tells() -> None:
    trace = Recorded()
    trace.range("aten::linear", 0, 100, python=["main", "linear"])
    trace.range("aten::mm", 10, 90)
    trace.call("cudaLaunchKernel", 20, 25, corr=1)
    trace.kernel("gemm", 500, 600, corr=1)
    assert python_of(trace.profile()) == ["main", "linear"]


def test_functions_come_before_stacks_of_operators() -> None:
    trace = Recorded()
    trace.function("main", 0, 100, 1)
    trace.range("aten::linear", 0, 100, python=["recorded"])
    trace.call("cudaLaunchKernel", 20, 25, corr=1)
    trace.kernel("gemm", 500, 600, corr=1)
    assert python_of(trace.profile()) == ["main"]


def test_a_kernel_without_a_launch_has_no_python_stack() -> None:
    trace = Recorded()
    trace.function("main", 0, 1_000, 1)
    trace.kernel("gemm", 500, 600)
    assert python_of(trace.profile()) == []


def test_odd_functions_are_warned_about() -> None:
    trace = Recorded()
    trace.function("backward", 9, 5)
    trace.function("main", 0, 9, 1)
    trace.function("f", 2, 5, 2, 2)
    for level in range(MAX_DEPTH + 2):
        trace.function("recursion", 100 + level, 3_000 - level)
    warnings = trace.profile().warnings
    assert "1 Python call ends before it starts: left out" in warnings
    assert any(line.startswith("1 Python call names a caller") for line in warnings)
    assert any(line.startswith("2 Python calls are nested deeper") for line in warnings)


def test_the_trace_lasts_as_long_as_its_functions() -> None:
    trace = Recorded()
    trace.function("main", -5, 50)
    trace.kernel("gemm", 10, 20)
    profile = trace.profile()
    assert (profile.begin, profile.end) == (-5, 50)
