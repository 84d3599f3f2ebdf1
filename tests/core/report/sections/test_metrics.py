"""GPU metrics, on exports made to the schema: no real one was at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter, Time
from flame.core.projection.selection import select
from flame.core.report.options import with_iteration
from flame.core.report.scope import Scope
from flame.core.report.sections.metrics import metrics_section
from tests.support.profiles.metric_oracle import READ, SM, TENSOR, WRITE, Known, Sample, moments_of
from tests.support.profiles.report_rows import table_rows
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

CLOCK = "GPC Clock Frequency [MHz]"

Kernel = tuple[str, int, int, int]
"""(name, start, length, device)."""

kernels = st.tuples(
    st.sampled_from(["gemm", "softmax"]), st.integers(1, 60), st.integers(0, 60), st.integers(0, 1)
)
samples = st.tuples(
    st.integers(0, 2),
    st.sampled_from([SM, SM, SM, READ]),
    st.integers(0, 60).map(lambda at: 2 * at),
    st.integers(0, 100),
)


def written(path: Path, work: Sequence[Kernel], counted: Sequence[Sample]) -> Scope:
    """A scope of kernels, each launched in the range called as it, and of samples."""
    file = NsysFile(":memory:")
    for gpu in (0, 1):
        file.gpu(gpu, "H100", pid=100)
    for number, (name, start, length, device) in enumerate(work, 1):
        file.nvtx(f"range {name}", 10 * number - 1000, 10 * number - 991)
        at = 10 * number - 998
        file.api("cudaLaunchKernel_v7000", at, at + 2, corr=number)
        file.kernel(name, start, start + length, corr=number, device=device)
    for gpu, name, time, value in counted:
        file.metric(name, time, value, gpu)
    file.db.commit()
    path.write_bytes(file.db.serialize())
    file.close()
    return Scope(load(path, LoadOptions("raw")))


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, abs=0.001)


@examples(0.4)
@given(st.lists(kernels, min_size=1, max_size=6), st.lists(samples, max_size=150))
def test_means_are_those_of_every_nanosecond(
    trace_file: Path, work: list[Kernel], counted: list[Sample]
) -> None:
    section = metrics_section(written(trace_file, work, counted))
    assert section.available == bool(counted)
    known = Known(counted)
    rows = {(row["gpu"], row["metric"]): row for row in table_rows(section)}
    shares = {(row["gpu"], row["name"]): row for row in table_rows(section, "kernels")}
    used = {device for *_, device in work}
    period = max((one for (gpu, _), one in known.periods.items() if gpu in used), default=0)
    for device in used:
        mine = [(device, start, start + length) for _, start, length, gpu in work if gpu == device]
        window = {(device, ns) for ns in range(min(r[1] for r in mine), max(r[2] for r in mine))}
        for name in (SM, READ):
            told, row = known.told(name, window), rows.get((f"GPU{device}", name))
            assert (row is None) == (told.samples == 0)
            if row is not None:
                assert (row["exposure_ns"], row["count"]) == (told.exposure, told.samples)
                assert row["mean"] == near(told.mean(known.periods[device, name]))
        for kernel in {name for name, *_, gpu in work if gpu == device}:
            runs = [(g, at, at + size) for name, at, size, g in work if name == kernel]
            own = moments_of(run for run in runs if run[0] == device)
            means = [known.told(name, own).mean(period) for name in (SM, READ)]
            row = shares.get((f"GPU{device}", kernel))
            assert (row is None) == (means == [None, None])
            if row is not None:
                assert row.get("sm_percent") == near(means[0])
                assert row.get("dram_read_percent") == near(means[1])


def every(metric: str, value: int, times: range) -> list[Sample]:
    return [(0, metric, time, value) for time in times]


@pytest.fixture
def busy(tmp_path: Path) -> Scope:
    """A kernel for 100 ns with little on the SMs and much of the memory, and one the other way."""
    work = [("copy_like", 0, 100, 0), ("gemm", 200, 100, 0)]
    counted = [
        *(every(SM, 20, range(0, 105, 5)) + every(SM, 90, range(200, 305, 5))),
        *(every(READ, 45, range(0, 105, 5)) + every(READ, 4, range(200, 305, 5))),
        *(every(WRITE, 39, range(0, 105, 5)) + every(WRITE, 2, range(200, 305, 5))),
        *every(TENSOR, 70, range(200, 245, 5)),
        *every(CLOCK, 1_980_000_000, range(0, 300, 10)),
    ]
    return written(tmp_path / "trace.sqlite", work, counted)


SHARES = ("name", "samples", "sm_percent", "tensor_percent", "dram_percent")


def test_kernels_and_ranges_say_what_they_used(busy: Scope) -> None:
    section = metrics_section(busy)
    for key, prefix in (("kernels", ""), ("ranges", "range ")):
        found = {tuple(row[one] for one in SHARES) for row in table_rows(section, key)}
        # Of the tensor units there are too few samples.
        assert found == {
            (f"{prefix}copy_like", 20, 20.0, None, 84.0),
            (f"{prefix}gemm", 20, 90.0, None, 6.0),
        }


def test_iterations_say_what_they_used(busy: Scope) -> None:
    scope = Scope(with_iteration(busy.profile, "range"))
    found = [
        tuple(row[one] for one in SHARES)
        for row in table_rows(metrics_section(scope), "iterations")
    ]
    assert found == [("0", 20, 20.0, None, 84.0), ("1", 20, 90.0, None, 6.0)]


def test_a_window_chooses_samples(busy: Scope) -> None:
    where: tuple[Filter, ...] = (Time(200, 300),)
    rows = table_rows(metrics_section(Scope(busy.profile, select(where=where))))
    found = {row["metric"]: (row["unit"], row["count"], row["mean"], row["p50"]) for row in rows}
    assert found == {
        SM: ("%", 20, 90.0, 90),
        READ: ("%", 20, 4.0, 4),
        WRITE: ("%", 20, 2.0, 2),
        TENSOR: ("%", 8, None, 70),
        CLOCK: ("MHz", 9, None, 1980.0),
    }


def test_kernels_beside_others_are_marked_and_memory_is_told_in_bytes(tmp_path: Path) -> None:
    work = [("gemm", 0, 100, 0), ("beside", 50, 100, 0), ("alone", 200, 100, 0)]
    counted = every(READ, 10, range(0, 305, 5)) + every(WRITE, 30, range(0, 305, 5))
    scope = written(tmp_path / "trace.sqlite", work, counted)
    [device] = scope.profile.devices
    facts = replace(device.facts, bandwidth=1_000_000_000)
    profile = replace(scope.profile, devices=(replace(device, facts=facts),))
    rows = table_rows(metrics_section(Scope(profile)), "kernels")
    assert {row["name"]: (row["dram_gb_per_s"], row["shared"]) for row in rows} == {
        "gemm": (0.4, "yes"),
        "beside": (0.4, "yes"),
        "alone": (0.4, None),
    }


def test_what_is_left_out_is_told_of(tmp_path: Path) -> None:
    work = [("gemm", 0, 100, 0)]
    counted = [*every(SM, 1, range(50)), (1, SM, 5, 3), (1, READ, 5, 3), (0, SM, 60, 106)]
    section = metrics_section(written(tmp_path / "trace.sqlite", work, counted))
    assert [row["gpu"] for row in table_rows(section)] == ["GPU0"]
    assert any("1 GPU" in note for note in section.notes)
    assert any("1 sample of GPU metrics with a value" in note for note in section.notes)


@pytest.mark.parametrize(
    ("damage", "available", "note"),
    [
        ("DROP TABLE TARGET_INFO_GPU_METRICS", True, "1 GPU metric without a name"),
        ("ALTER TABLE TARGET_INFO_GPU_METRICS DROP COLUMN metricName", True, "without a name"),
        ("ALTER TABLE GPU_METRICS DROP COLUMN value", False, "50 samples"),
        ("UPDATE GPU_METRICS SET timestamp = NULL", False, "50 samples"),
        ("UPDATE GPU_METRICS SET typeId = 'x', metricId = 1 << 62", True, "without a name"),
    ],
)
def test_damaged_tables_say_what_is_missing(
    tmp_path: Path, damage: str, available: bool, note: str
) -> None:
    path = tmp_path / "trace.sqlite"
    written(path, [("gemm", 0, 100, 0)], every(SM, 7, range(50)))
    with NsysFile.reopened(path) as file:
        file.loosen("GPU_METRICS")
        file.db.execute(damage)
    section = metrics_section(Scope(load(path)))
    assert section.available == available
    assert any(note in one for one in section.notes)
    assert not any(row.get("sm_percent") for row in table_rows(section, "kernels"))


def test_a_trace_without_samples_says_how_to_take_them(tmp_path: Path) -> None:
    section = metrics_section(written(tmp_path / "trace.sqlite", [("gemm", 0, 5, 0)], []))
    assert not section.available and "--gpu-metrics-devices" in section.how
