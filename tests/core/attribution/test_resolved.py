"""Stacks that somebody else has resolved: one level, own metrics, sums untouched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.attribution.resolved import resolve_stacks
from flame.core.errors import InputError, NoMatchError, UsageError
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.meta import Meta, Process, Thread
from flame.core.model.profile import Profile
from flame.core.model.raw import Measure, RawStacks
from flame.core.model.stacks import StackBuilder
from flame.core.projection.filter_options import where
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import i8, leaves

Rows = list[tuple[tuple[str, ...], int]]


def resolved(rows: Rows, *, start: list[int] | None = None, threads: int = 0) -> Profile:
    """A profile of ``rows``: the kernels' names begin with k, everything weighs by two measures."""
    frames, stacks = FrameBuilder(), StackBuilder()

    def frame(name: str) -> int:
        return frames.add(Frame(Kind.KERNEL if name.startswith("k") else Kind.FRAME, name))

    values = i8(*(value for _, value in rows))
    size = len(rows)
    return resolve_stacks(
        RawStacks(
            frames=frames,
            stacks=stacks,
            stack=np.array([stacks.add_path(map(frame, stack)) for stack, _ in rows], np.int32),
            measures=(
                Measure("time", "time", "ns", values),
                Measure("bytes", "bytes read", "bytes", values * 2),
            ),
            meta=Meta(format="folded"),
            thread=np.arange(size, dtype=np.int32) % threads if threads else None,
            start=None if start is None else i8(*start),
            processes=(Process(1),) if threads else (),
            threads=tuple(Thread(0, number, "worker") for number in range(threads)),
        )
    )


ROWS: Rows = [(("main", "f", "k1"), 5), (("main", "k2"), 7), (("main",), 1), ((), 2)]


def test_the_only_level_is_the_stack_in_the_order_of_the_file() -> None:
    tree = project_tree(resolved(ROWS))
    assert tree.levels == ("stack",)
    assert leaves(tree) == {("main", "f", "k1"): 5, ("main", "k2"): 7, ("main",): 1, (): 2}
    assert tree.metric.key == "time"


def test_every_measure_is_a_metric() -> None:
    profile = resolved(ROWS)
    assert [metric.key for metric in profile.metrics] == ["time", "bytes"]
    assert project_tree(profile, metric="bytes").total[0] == 30


def test_a_metric_that_the_file_lacks_is_a_wrong_option() -> None:
    with pytest.raises(UsageError, match="unknown metric 'gpu': choose from time, bytes"):
        project_tree(resolved(ROWS), metric="gpu")


def test_several_threads_are_a_level() -> None:
    tree = project_tree(resolved(ROWS, threads=2))
    assert tree.levels == ("thread", "stack")
    assert leaves(tree)["worker [1]", "main", "k2"] == 7


def test_filters_know_kernels_and_times() -> None:
    profile = resolved(ROWS, start=[0, 10, 20, 30])
    assert leaves(project_tree(profile, where=where(kernel="k"))) == {
        ("main", "f", "k1"): 5,
        ("main", "k2"): 7,
    }
    assert leaves(project_tree(profile, where=where(time="10ns/25ns"))) == {
        ("main", "k2"): 7,
        ("main",): 1,
    }
    assert (profile.begin, profile.end, profile.timed) == (0, 32, True)


def test_a_file_without_times_has_no_extent() -> None:
    profile = resolved(ROWS)
    assert (profile.begin, profile.end, profile.timed) == (0, 0, False)


def test_steps_of_a_profiler_match_nothing() -> None:
    with pytest.raises(NoMatchError):
        project_tree(resolved(ROWS), where=where(step="1"))


def test_an_empty_file_has_an_empty_tree() -> None:
    assert project_tree(resolved([])).total[0] == 0


def test_sums_beyond_64_bits_are_refused() -> None:
    with pytest.raises(InputError, match="64 bits"):
        resolved([(("a",), 1 << 61), (("b",), 1 << 61)])


stacks = st.lists(st.sampled_from("abk"), max_size=4).map(tuple)


@given(st.lists(st.tuples(stacks, st.integers(0, 1 << 40)), max_size=30))
def test_the_tree_is_the_sum_of_the_rows(rows: Rows) -> None:
    tree = project_tree(resolved(rows))
    expected: dict[tuple[str, ...], int] = {}
    for stack, value in rows:
        expected[stack] = expected.get(stack, 0) + value
    assert {stack: value for stack, value in leaves(tree).items() if value} == {
        stack: value for stack, value in expected.items() if value
    }
    assert tree.total[0] == sum(expected.values())


@pytest.mark.deep
def test_stacks_deeper_than_any_are_cut_and_keep_their_values() -> None:
    deep = tuple(f"f{number % 3}" for number in range(12_000))
    profile = resolved([(deep, 5), ((*deep[:11_000], "k1"), 7), (("main",), 1)])
    assert sum(project_tree(profile).own.tolist()) == 13
    assert leaves(project_tree(profile)) == {deep[:10_000]: 12, ("main",): 1}
    assert profile.warnings == ("stacks of more than 10,000 frames: 2, their innermost left out",)
