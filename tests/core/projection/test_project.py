"""Projection: which levels make the stack, in which order, of what passes the filters."""

from __future__ import annotations

import itertools

import pytest

from flame.core.errors import NoMatchError, UsageError
from flame.core.model.frames import NO_LAUNCH, Kind
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.names.rename import parse_rename
from flame.core.projection.filters import Include, Time
from flame.core.projection.labels import Naming
from flame.core.projection.levels import LEVELS, default_levels, parse_levels
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves


@pytest.fixture
def profile() -> Profile:
    """100 ns of gemm under step/forward, 50 ns of it on another GPU, a copy, a stray kernel."""
    trace = Recorded()
    trace.range("step", 0, 100)
    trace.range("forward", 10, 40, shapes="[2, 3]")
    trace.call("cudaLaunchKernel", 20, 25, corr=1, python=["main", "run"], native=["at::mm"])
    trace.call("cudaMemcpyAsync", 60, 65, corr=2)
    trace.call("cudaLaunchKernel", 70, 75, corr=1, thread=2)
    trace.kernel("gemm", 1_000, 1_100, corr=1)
    trace.kernel("gemm", 1_000, 1_050, corr=1, process=1, device=1, stream=9)
    trace.kernel("memcpy HtoD", 2_000, 2_020, corr=2, kind=Kind.MEMCPY)
    trace.kernel("stray", 3_000, 3_003)
    return trace.profile()


def test_the_default_stack_is_python_native_launch_ranges_kernel(profile: Profile) -> None:
    assert leaves(project_tree(profile)) == {
        ("main", "run", "at::mm", "cudaLaunchKernel", "step", "forward", "gemm"): 100,
        ("cudaLaunchKernel", "gemm"): 50,
        ("cudaMemcpyAsync", "step", "memcpy HtoD"): 20,
        (NO_LAUNCH, "stray"): 3,
    }


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ("kernel", {("gemm",): 150, ("memcpy HtoD",): 20, ("stray",): 3}),
        ("nvtx", {("step", "forward"): 100, (): 53, ("step",): 20}),
        (
            "kernel,nvtx",
            {
                ("gemm", "step", "forward"): 100,
                ("gemm",): 50,
                ("memcpy HtoD", "step"): 20,
                ("stray",): 3,
            },
        ),
        ("process", {("trainer [100]",): 123, ("process [200]",): 50}),
        ("thread", {("main [100]",): 120, ("thread [200]",): 50, (): 3}),
        (
            "device,stream",
            {("GPU 0 H100", "stream 7"): 123, ("GPU 1", "stream 9"): 50},
        ),
        ("stream,device", {("stream 7", "GPU 0 H100"): 123, ("stream 9", "GPU 1"): 50}),
        (
            "nvtx,device,launch",
            {
                ("step", "forward", "GPU 0 H100", "cudaLaunchKernel"): 100,
                ("step", "GPU 0 H100", "cudaMemcpyAsync"): 20,
                ("GPU 0 H100", NO_LAUNCH): 3,
                ("GPU 1", "cudaLaunchKernel"): 50,
            },
        ),
        ("python", {("main", "run"): 100, (): 73}),
        ("native,python", {("at::mm", "main", "run"): 100, (): 73}),
        ("shapes", {("[2, 3]",): 100, (): 73}),
    ],
)
def test_levels_choose_and_order_the_stack(
    levels: str, expected: dict[tuple[str, ...], int], profile: Profile
) -> None:
    assert leaves(project_tree(profile, levels=levels)) == expected


def test_the_total_is_the_same_whatever_the_levels(profile: Profile) -> None:
    for levels in itertools.permutations(LEVELS, 2):
        tree = project_tree(profile, levels=levels)
        assert (tree.total[0], tree.count[0]) == (173, 4)


def test_unknown_places_add_no_frame() -> None:
    trace = Recorded()
    trace.kernel("gemm", 0, 10, process=-1, device=-1, stream=-1)
    tree = project_tree(trace.profile(), levels="process,thread,device,stream,kernel")
    assert leaves(tree) == {("gemm",): 10}


def test_shapes_stand_below_the_ranges_where_asked_for(profile: Profile) -> None:
    tree = project_tree(profile, shapes=True)
    deepest = max((tree.names(node) for node in range(len(tree))), key=len)
    assert deepest[-3:] == ("forward", "[2, 3]", "gemm")
    assert tree.levels == ("python", "native", "launch", "nvtx", "shapes", "kernel")


def test_shapes_are_those_of_the_innermost_range_that_has_some() -> None:
    trace = Recorded()
    trace.range("mul", 0, 100, shapes="[2]")
    trace.range("inner", 10, 90)
    trace.call("cudaLaunchKernel", 20, 25, corr=1)
    trace.kernel("gemm", 1_000, 1_010, corr=1)
    assert leaves(project_tree(trace.profile(), levels="shapes")) == {("[2]",): 10}


def test_only_the_host_metric_has_its_own_default_levels(profile: Profile) -> None:
    assert default_levels(profile, metric_of("gpu"), Naming()) == (
        "python",
        "native",
        "launch",
        "nvtx",
        "kernel",
    )
    assert default_levels(profile, metric_of("host"), Naming(shapes=True)) == (
        "thread",
        "python",
        "nvtx",
        "shapes",
        "launch",
    )


def test_names_that_a_rule_makes_equal_become_one_node() -> None:
    trace = Recorded()
    for layer in range(3):
        trace.range(f"layers.{layer}", 10 * layer, 10 * layer + 9)
        trace.call("cudaLaunchKernel", 10 * layer + 1, 10 * layer + 2, corr=layer + 1)
        trace.kernel("gemm", 1_000 * layer, 1_000 * layer + 5, corr=layer + 1)
    tree = project_tree(trace.profile(), levels="nvtx,kernel", rename=(parse_rename(r"\d+=*"),))
    assert leaves(tree) == {("layers.*", "gemm"): 15}


def test_filters_leave_the_rest_of_the_stack_as_it_is(profile: Profile) -> None:
    tree = project_tree(profile, where=(Include((Kind.MEMCPY,)),))
    assert leaves(tree) == {("cudaMemcpyAsync", "step", "memcpy HtoD"): 20}


def test_an_activity_without_duration_matches_all_the_same() -> None:
    trace = Recorded()
    trace.kernel("empty", 5, 5)
    tree = project_tree(trace.profile(), levels="kernel", where=(Time(0, 10),))
    assert (tree.names(1), tree.total[1], tree.count[1]) == (("empty",), 0, 1)


def test_nothing_that_matches_is_an_error_and_an_empty_trace_is_none(profile: Profile) -> None:
    with pytest.raises(NoMatchError):
        project_tree(profile, where=(Time(10_000, None),))
    assert len(project_tree(Recorded().profile(), metric="gpu")) == 1


def test_a_selection_projects_what_it_says(profile: Profile) -> None:
    selection = Selection(("kernel",), (Include((Kind.KERNEL,)),), "count")
    assert leaves(project(profile, selection)) == {("gemm",): 2, ("stray",): 1}
    assert leaves(project(profile, Selection())) == leaves(project(profile))


def test_levels_are_a_list_with_room_around_commas() -> None:
    assert parse_levels("kernel, nvtx") == ("kernel", "nvtx")


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ("kernel,cpu", "unknown level 'cpu': choose from rank, cause"),
        ("nvtx,kernel,nvtx", "'nvtx' stands there twice"),
        (",", "no level given"),
    ],
)
def test_wrong_levels_are_a_usage_error(levels: str, said: str, profile: Profile) -> None:
    with pytest.raises(UsageError, match=said):
        project_tree(profile, levels=levels)
