"""Counters of GPUs, on exports made to the schema: no real one was at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from flame.core.report.measures.counter_samples import ENOUGH
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter, Time
from flame.core.projection.selection import select
from flame.core.report.options import with_iteration
from flame.core.report.scope import Scope
from flame.core.report.sections.metrics import metrics_section
from tests.support.report_rows import rank, table_rows
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

SM, TENSOR = "SMs Active [Throughput %]", "Tensor Active [Throughput %]"
READ, WRITE = "DRAM Read Bandwidth [Throughput %]", "DRAM Write Bandwidth [Throughput %]"
CLOCK = "GPC Clock Frequency [MHz]"

Kernel = tuple[str, int, int, int]
"""(name, start, length, device)."""

Sample = tuple[str, int, int, int]
"""(counter, time, value, GPU)."""

kernels = st.tuples(
    st.sampled_from(["gemm", "softmax"]), st.integers(1, 60), st.integers(0, 40), st.integers(0, 1)
)
samples = st.tuples(
    st.sampled_from([SM, SM, SM, READ, CLOCK]),
    st.integers(0, 110),
    st.integers(0, 100),
    st.integers(0, 2),
)


def written(path: Path, work: Sequence[Kernel], counted: Sequence[Sample]) -> Scope:
    """A scope of kernels, each launched in the range called as it, and of samples."""
    file = NsysFile(":memory:")
    for number, (name, start, length, device) in enumerate(work, 1):
        file.nvtx(f"range {name}", 10 * number - 1000, 10 * number - 991)
        at = 10 * number - 998
        file.api("cudaLaunchKernel_v7000", at, at + 2, corr=number)
        file.kernel(name, start, start + length, corr=number, device=device)
    for name, time, value, gpu in counted:
        file.metric(name, time, value, gpu)
    file.db.commit()
    path.write_bytes(file.db.serialize())
    file.close()
    return Scope(load(path, LoadOptions("raw")))


def expected_shares(
    work: Sequence[Kernel], counted: Sequence[Sample], device: int
) -> dict[str, tuple[int, float | None, float | None]]:
    """(most samples, mean of SM, mean of reads) while kernels of each name ran, plainly."""
    mine = [(name, start, start + length) for name, start, length, gpu in work if gpu == device]
    low, high = min(start for _, start, _ in mine), max(end for _, _, end in mine)
    found = {}
    for name in {name for name, _, _ in mine}:
        values: dict[str, list[int]] = {SM: [], READ: []}
        for counter, time, value, gpu in counted:
            runs = any(start <= time < end for one, start, end in mine if one == name)
            if gpu == device and runs and low <= time < high and counter in values:
                values[counter].append(value)
        number = max(map(len, values.values()))
        means = [sum(v) / len(v) if len(v) >= ENOUGH else None for v in values.values()]
        if number >= ENOUGH:
            found[name] = (number, means[0], means[1])
    return found


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, abs=0.001)


@examples(0.4)
@given(st.lists(kernels, min_size=1, max_size=6), st.lists(samples, max_size=60))
def test_means_are_those_of_samples_one_by_one(
    trace_file: Path, work: list[Kernel], counted: list[Sample]
) -> None:
    section = metrics_section(written(trace_file, work, counted))
    assert section.available == bool(counted)
    rows = {(row["gpu"], row["metric"]): row for row in table_rows(section)}
    shares = {(row["gpu"], row["name"]): row for row in table_rows(section, "kernels")}
    for device in {device for *_, device in work}:
        mine = [(start, start + length) for _, start, length, gpu in work if gpu == device]
        low, high = min(start for start, _ in mine), max(end for _, end in mine)
        label = f"GPU{device}"
        for name in (SM, READ, CLOCK):
            values = [
                v for one, t, v, g in counted if (one, g) == (name, device) and low <= t < high
            ]
            assert ((label, name) in rows) == bool(values)
            if values:
                row = rows[label, name]
                assert row["count"] == len(values)
                assert row["mean"] == near(sum(values) / len(values))
                found = (row["p50"], row["p95"], row["max"])
                assert found == (rank(values, 50), rank(values, 95), max(values))
        expected = (
            expected_shares(work, counted, device)
            if any(c[0] in (SM, READ) for c in counted)
            else {}
        )
        assert {name for gpu, name in shares if gpu == label} == expected.keys()
        for name, (number, sm, read) in expected.items():
            row = shares[label, name]
            assert row["samples"] == number
            assert (row["sm_percent"], row["dram_read_percent"]) == (near(sm), near(read))


def every(counter: str, value: int, times: range) -> list[Sample]:
    return [(counter, time, value, 0) for time in times]


@pytest.fixture
def busy(tmp_path: Path) -> Scope:
    """A kernel for 100 ns with little on the SMs and much of the memory, and one the other way."""
    work = [("copy_like", 0, 100, 0), ("gemm", 200, 100, 0)]
    counted = [
        *(every(SM, 20, range(0, 100, 5)) + every(SM, 90, range(200, 300, 5))),
        *(every(READ, 45, range(0, 100, 5)) + every(READ, 4, range(200, 300, 5))),
        *(every(WRITE, 39, range(0, 100, 5)) + every(WRITE, 2, range(200, 300, 5))),
        *every(TENSOR, 70, range(200, 245, 5)),
        *every(CLOCK, 1980, range(0, 300, 10)),
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


@pytest.mark.parametrize(("number", "found"), [(9, []), (10, [10])])
def test_fewer_than_ten_samples_say_nothing(tmp_path: Path, number: int, found: list[int]) -> None:
    scope = written(tmp_path / "trace.sqlite", [("gemm", 0, 100, 0)], every(SM, 1, range(number)))
    rows = table_rows(metrics_section(scope), "kernels")
    assert [row["samples"] for row in rows] == found


def test_a_sample_during_two_kernels_of_a_name_counts_once(tmp_path: Path) -> None:
    work = [("gemm", 0, 60, 0), ("gemm", 40, 60, 0)]
    scope = written(tmp_path / "trace.sqlite", work, every(SM, 1, range(100)))
    [row] = table_rows(metrics_section(scope), "kernels")
    assert row["samples"] == 100


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
    found = {row["metric"]: (row["count"], row["mean"]) for row in rows}
    assert found == {
        SM: (20, 90.0),
        READ: (20, 4.0),
        WRITE: (20, 2.0),
        TENSOR: (9, 70.0),
        CLOCK: (10, 1980.0),
    }


def test_gpus_on_which_nothing_ran_are_told_of(tmp_path: Path) -> None:
    work, counted = (
        [("gemm", 0, 100, 0)],
        [*every(SM, 1, range(50)), (SM, 5, 1, 3), (READ, 5, 1, 3)],
    )
    section = metrics_section(written(tmp_path / "trace.sqlite", work, counted))
    assert [row["gpu"] for row in table_rows(section)] == ["GPU0"]
    assert any("1 GPU" in note for note in section.notes)


def test_values_beyond_all_measure_stay_numbers(tmp_path: Path) -> None:
    work, most = [("gemm", 0, 100, 0)], (1 << 61) - 1
    section = metrics_section(written(tmp_path / "trace.sqlite", work, every(SM, most, range(50))))
    [row] = table_rows(section, "kernels")
    assert row["sm_percent"] == pytest.approx(most)
    [row] = table_rows(section)
    assert row["mean"] == pytest.approx(most) and row["max"] == most


def test_a_trace_without_samples_says_how_to_take_them(tmp_path: Path) -> None:
    section = metrics_section(written(tmp_path / "trace.sqlite", [("gemm", 0, 5, 0)], []))
    assert not section.available and "--gpu-metrics-devices" in section.how
