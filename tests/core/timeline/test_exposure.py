"""What kept a GPU busy alone: as counted nanosecond by nanosecond; it adds up to the busy time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.model.activities import has_times
from flame.core.model.metrics import EXPOSED
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.devices import device_times
from flame.core.timeline.exposure import (
    WorkClass,
    class_times,
    exposed_times,
    work_classes,
)
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import examples
from tests.support.writers.nsysfile import HTOD, NsysFile

random_traces = examples(1, [HealthCheck.too_slow])
KINETO_TRACES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))


def runners(profile: Profile, device: int, moment: int) -> list[int]:
    """The activities that run then, first those of the class that counts, of it the first."""
    table, classes = profile.activities, work_classes(profile)
    end = table.start + table.duration
    timed = has_times(table) & (table.device == device)
    rows = np.flatnonzero(timed & (table.start <= moment) & (moment < end)).tolist()
    return sorted(rows, key=lambda row: (classes[row], table.start[row], -table.duration[row], row))


@random_traces
@given(scripts(), st.integers(-3, 12), st.integers(0, 12))
def test_each_moment_is_that_of_one_activity(
    trace_file: Path, script: Script, begin: int, length: int
) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    low = begin + script.offset
    window = BusyTime.between(np.array([low]), np.array([low + length]))
    expected, classes = np.zeros(len(profile.activities), np.int64), work_classes(profile)
    for each in device_times(profile):
        inside = [0, 0, 0]
        for moment in range(profile.begin, profile.end):
            for row in runners(profile, each.device, moment)[:1]:
                expected[row] += 1
                inside[classes[row]] += low <= moment < low + length
        assert list(class_times(profile, each.device).exposed(window)) == inside
    np.testing.assert_array_equal(exposed_times(profile), expected)


def test_compute_comes_before_communication_and_that_before_copies(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 10, 20)
        file.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 5, 30, stream=8)
        file.memcpy(HTOD, 0, 40, stream=9)
    profile = load(tmp_path / "trace.sqlite")
    kind = [WorkClass(one).name for one in work_classes(profile)]
    alone = dict(zip(kind, exposed_times(profile).tolist(), strict=True))
    assert alone == {"COMPUTE": 10, "COMMUNICATION": 15, "COPY": 15}


@needs_traces
@pytest.mark.parametrize("name", [*NSYS_TRACES, *KINETO_TRACES])
def test_it_adds_up_to_the_busy_time_of_real_traces(name: str) -> None:
    folder = "nsys" if name.endswith(".sqlite") else "kineto"
    profile = load(TRACES / folder / name)
    alone = exposed_times(profile)
    assert (alone >= 0).all() and (alone <= profile.activities.duration).all()
    for each in device_times(profile):
        of_device = alone[profile.activities.device == each.device]
        assert int(of_device.sum()) == each.busy.total
        window = each.busy.window.moved(profile.rows_begin)
        windows = BusyTime.between(np.array([window.low]), np.array([window.high]))
        assert sum(class_times(profile, each.device).exposed(windows)) == each.busy.total


def test_it_is_a_metric_that_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 10, 20)
        file.kernel("softmax", 15, 30, stream=8)
        file.memcpy(HTOD, 0, 40, stream=9)
        file.kernel("gemm", 50, 60, device=1)
    profile = load(tmp_path / "trace.sqlite")
    tree = project_tree(profile, "device,kernel")
    assert "exposed_times" not in profile.__dict__
    tree = project_tree(profile, "device,kernel", metric="exposed")
    own = {tree.names(node): int(tree.own[node]) for node in np.flatnonzero(tree.own).tolist()}
    assert own == {
        ("GPU 0", "gemm"): 10,
        ("GPU 0", "softmax"): 10,
        ("GPU 0", "memcpy HtoD"): 20,
        ("GPU 1", "gemm"): 10,
    }
    other = profile.unlinked if profile.has_forward else profile.with_nested
    assert project_tree(other, metric="exposed").total[0] == 50
    assert profile.activities.groups is profile.table(EXPOSED).groups
