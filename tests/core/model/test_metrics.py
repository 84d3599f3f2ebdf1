"""What each metric weighs, one small timeline at a time."""

from __future__ import annotations

import pytest

from flame.core.errors import UsageError
from flame.core.model.frames import Kind
from flame.core.model.metrics import METRICS, metric_of
from flame.core.model.profile import Profile
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves


def weighed(profile: Profile, metric: str) -> dict[str, int]:
    """The metric by kernel name."""
    tree = project_tree(profile, levels="kernel", metric=metric)
    return {names[0]: value for names, value in leaves(tree).items()}


def test_gpu_time_is_end_minus_start() -> None:
    trace = Recorded()
    trace.kernel("gemm", 10, 25)
    trace.kernel("gemm", 30, 35)
    assert weighed(trace.profile(), "gpu") == {"gemm": 20}


def test_an_activity_that_ends_before_it_starts_takes_no_time() -> None:
    trace = Recorded()
    trace.kernel("backwards", 25, 10)
    trace.kernel("gemm", 30, 35)
    profile = trace.profile()
    assert weighed(profile, "gpu") == {"gemm": 5}
    assert weighed(profile, "count") == {"backwards": 1, "gemm": 1}
    assert any("1 GPU activity ends before it starts" in line for line in profile.warnings)


def test_count_is_the_number_of_activities_of_any_kind() -> None:
    trace = Recorded()
    trace.kernel("gemm", 0, 0)
    trace.kernel("gemm", 10, 20)
    trace.kernel("memset", 30, 40, kind=Kind.MEMSET)
    assert weighed(trace.profile(), "count") == {"gemm": 2, "memset": 1}


def test_launch_time_is_the_duration_of_the_call() -> None:
    trace = Recorded()
    trace.call("cudaLaunchKernel", 0, 7, corr=1)
    trace.kernel("gemm", 10, 20, corr=1)
    trace.kernel("stray", 30, 40)
    assert weighed(trace.profile(), "launch") == {"gemm": 7}


def test_the_kernels_of_one_launch_share_its_time_and_the_first_bears_the_remainder() -> None:
    trace = Recorded()
    trace.call("cudaGraphLaunch", 0, 11, corr=1)
    trace.kernel("third", 50, 60, corr=1)
    trace.kernel("first", 10, 20, corr=1)
    trace.kernel("second", 30, 40, corr=1)
    assert weighed(trace.profile(), "launch") == {"first": 5, "second": 3, "third": 3}


def test_queue_delay_runs_from_the_end_of_the_call_to_the_start_on_the_gpu() -> None:
    trace = Recorded()
    trace.call("cudaLaunchKernel", 0, 7, corr=1)
    trace.kernel("gemm", 10, 20, corr=1)
    assert weighed(trace.profile(), "queue") == {"gemm": 3}


def test_a_kernel_that_starts_before_its_call_ends_did_not_queue() -> None:
    trace = Recorded()
    trace.call("cudaMemcpy", 0, 70, corr=1)
    trace.kernel("copy", 10, 20, corr=1)
    trace.kernel("stray", 30, 40)
    assert weighed(trace.profile(), "queue") == {}


def test_idle_is_how_long_the_gpu_had_nothing_to_run() -> None:
    trace = Recorded()
    trace.kernel("first", 100, 120)
    trace.kernel("late", 150, 160)
    trace.kernel("prompt", 160, 170)
    assert weighed(trace.profile(), "idle") == {"late": 30}


def test_a_gpu_is_busy_while_any_of_its_streams_is() -> None:
    trace = Recorded()
    trace.kernel("long", 0, 100, stream=1)
    trace.kernel("short", 10, 20, stream=2)
    trace.kernel("next", 110, 120, stream=2)
    assert weighed(trace.profile(), "idle") == {"next": 10}


def test_gpus_are_idle_each_for_itself() -> None:
    trace = Recorded()
    trace.kernel("a0", 0, 10, device=0)
    trace.kernel("b0", 40, 50, device=0)
    trace.kernel("a1", 20, 30, device=1, process=1)
    trace.kernel("b1", 35, 36, device=1)
    assert weighed(trace.profile(), "idle") == {"b0": 30, "b1": 5}


def test_without_gpu_work_the_host_metric_is_the_default() -> None:
    trace = Recorded()
    trace.range("step", 0, 10)
    assert trace.profile().default_metric == "host"
    trace.kernel("gemm", 10, 20)
    assert trace.profile().default_metric == "gpu"


def test_a_metric_is_found_by_its_key() -> None:
    assert [metric_of(metric.key) for metric in METRICS] == list(METRICS)


def test_an_unknown_metric_is_a_usage_error_that_names_the_choices() -> None:
    with pytest.raises(UsageError, match=r"'watts'.*gpu, count, launch, queue, idle, host"):
        metric_of("watts")


@pytest.mark.parametrize("metric", [metric.key for metric in METRICS])
def test_an_empty_trace_weighs_nothing(metric: str) -> None:
    assert project_tree(Recorded().profile(), metric=metric).total.tolist() == [0]
