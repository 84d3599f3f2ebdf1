"""GPU metrics of the kernels below every frame, on exports made to the schema."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.frame_totals import rows_by_frame
from flame.core.analysis.node_activities import NodeActivities
from flame.core.gpu_metrics.averages import metric_notes
from flame.core.gpu_metrics.kernels import KernelMetrics, kernel_times
from flame.core.gpu_metrics.names import NAMES, MetricKey
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.project import project
from flame.core.projection.selection import select
from tests.support.profiles.metric_oracle import (
    READ,
    SM,
    WRITE,
    Known,
    Run,
    Sample,
    are_shared,
    moments_of,
)
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

Work = tuple[str, str, int, int, int]
"""(range, kernel, GPU, start, length)."""

BANDWIDTH = 2_000_000_000_000

work = st.tuples(
    st.sampled_from(["layer", "head"]),
    st.sampled_from(["gemm", "softmax"]),
    st.integers(0, 1),
    st.integers(0, 90),
    st.integers(0, 60),
)


@st.composite
def sampled(draw: st.DrawFn) -> list[Sample]:
    """Samples of two metrics of two GPUs about every 2 ns, with gaps, some before time 0."""
    found = []
    for gpu in (0, 1):
        for name in (SM, READ, WRITE):
            times = draw(st.sets(st.integers(-10, 85), min_size=0, max_size=96))
            found += [(gpu, name, 2 * time, draw(st.integers(-3, 120))) for time in sorted(times)]
    return draw(st.permutations(found))


def written(path: Path, works: Sequence[Work], samples: Sequence[Sample]) -> Path:
    """GPU 0 is the process's CUDA device 1, and the other way round; ids differ by GPU."""
    with NsysFile(path) as file:
        for gpu in (0, 1):
            file.gpu(gpu, "H100", cuda_id=1 - gpu, pid=100)
        file.db.execute(f"UPDATE TARGET_INFO_GPU SET memoryBandwidth = {BANDWIDTH}")
        for number, (range_, kernel, gpu, start, length) in enumerate(works, 1):
            at = 10 * number - 2000
            file.nvtx(range_, at, at + 9)
            file.api("cudaLaunchKernel_v7000", at + 1, at + 3, corr=number)
            file.kernel(kernel, start, start + length, corr=number, device=1 - gpu, stream=number)
        for gpu, name, time, value in samples:
            number = [SM, READ, WRITE].index(name)
            file.metric(name, time, value, gpu, number=number if gpu else 2 - number)
    return path


def measured(profile: Profile) -> dict[str, tuple[KernelMetrics, int]]:
    """What is told of each frame, with its place."""
    tree = project(profile, select(("nvtx", "kernel")))
    frames = np.unique(tree.frame[1:])
    times = kernel_times(profile)
    assert times is not None
    members = NodeActivities.from_tree(profile, tree, ())
    found = times.measure(rows_by_frame(members, frames), len(frames))
    return {tree.text[frame]: (found, place) for place, frame in enumerate(frames.tolist())}


@examples(0.6)
@given(st.lists(work, min_size=1, max_size=8), sampled())
def test_means_are_those_of_every_nanosecond(
    trace_file: Path, works: list[Work], samples: list[Sample]
) -> None:
    trace_file.unlink(missing_ok=True)
    profile = load(written(trace_file, works, samples), LoadOptions("raw"))
    if not samples:
        return
    known, every = Known(samples), [(gpu, at, at + size) for *_, gpu, at, size in works]
    used = {gpu for gpu, *_ in every}
    period = max((p for (gpu, _), p in known.periods.items() if gpu in used), default=0)
    for name, (found, place) in measured(profile).items():
        runs: list[Run] = [(gpu, at, at + size) for *names, gpu, at, size in works if name in names]
        moments = moments_of(runs)
        assert found.ran[place] == len(moments)
        assert bool(found.shared[place]) == are_shared(runs, every)
        told = {key: known.told(metric, moments) for key, metric in NAMES.items()}
        assert found.exposure[place] == max(one.exposure for one in told.values())
        assert found.samples[place] == max(one.samples for one in told.values())
        means = {key: one.mean(period) for key, one in told.items()}
        for key, mean in means.items():
            value = float(found.means[key][place])
            assert np.isnan(value) if mean is None else value == pytest.approx(mean)
        read, write = means[MetricKey.READ], means[MetricKey.WRITE]
        rate = float(found.rate[place])
        if read is None or write is None:
            assert np.isnan(rate) and np.isnan(found.dram[place])
        else:
            assert rate == pytest.approx((read + write) / 100 * BANDWIDTH)
    senseless = sum(not 0 <= value <= 105 for *_, value in samples)
    notes = " ".join(metric_notes(profile, {0, 1}))
    assert ("makes no sense" in notes) == bool(senseless)


def every(name: str, value: int, times: range) -> list[Sample]:
    return [(0, name, time, value) for time in times]


@pytest.mark.parametrize(("length", "known"), [(38, False), (40, True)])
def test_a_mean_is_of_twenty_periods_and_samples(tmp_path: Path, length: int, known: bool) -> None:
    """Of many short kernels as of a long one: samples are counted once."""
    works = [("layer", "gemm", 0, start, 1) for start in range(length)]
    path = written(tmp_path / "trace.sqlite", works, every(SM, 7, range(0, 90, 2)))
    found, place = measured(load(path))["gemm"]
    assert (found.exposure[place], found.samples[place]) == (length, length // 2)
    assert np.isnan(found.means[MetricKey.SM][place]) != known


def test_gpus_without_memory_metrics_and_bandwidth_tell_the_others(tmp_path: Path) -> None:
    """GB10 has no DRAM metrics."""
    path = written(
        tmp_path / "trace.sqlite", [("layer", "gemm", 0, 0, 60)], every(SM, 50, range(0, 90, 2))
    )
    found, place = measured(load(path))["layer"]
    assert found.means[MetricKey.SM][place] == 50
    assert np.isnan(found.dram[place]) and np.isnan(found.rate[place])


def test_metrics_of_gpus_that_cannot_be_told_apart_are_of_none(tmp_path: Path) -> None:
    """Several GPUs, and nothing says which a process means by its number."""
    path = written(
        tmp_path / "trace.sqlite", [("layer", "gemm", 0, 0, 60)], every(SM, 50, range(0, 90, 2))
    )
    with NsysFile.reopened(path) as file:
        file.db.execute("DROP TABLE TARGET_INFO_CUDA_DEVICE")
    profile = load(path)
    found, place = measured(profile)["layer"]
    assert found.exposure[place] == 0
    assert any("not known which" in note for note in metric_notes(profile, {0}))


def test_the_only_gpu_of_a_machine_is_that_of_the_process(tmp_path: Path) -> None:
    """Whatever number it has there; nothing else says which it is."""
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.gpu(2, "H100")
        file.kernel("gemm", 0, 60)
        for at in range(0, 90, 2):
            file.metric(SM, at, 50, gpu=2)
    found, place = measured(load(tmp_path / "trace.sqlite"))["gemm"]
    assert found.means[MetricKey.SM][place] == 50
