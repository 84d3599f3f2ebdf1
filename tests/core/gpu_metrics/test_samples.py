"""Samples of GPU metrics: what they stand for, their units, what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from flame.core.gpu_metrics.names import short_name
from flame.core.gpu_metrics.samples import SampledMetric, sampled_metrics
from flame.core.model.side_tables.gpu_metrics import Counter, GpuMetrics


def metrics(name: str, *samples: tuple[int, int]) -> tuple[SampledMetric, ...]:
    times, values = (np.array(column, np.int64) for column in zip(*samples, strict=True))
    counters = (Counter(0, 0, 0, name),)
    table = GpuMetrics(counters, np.zeros(len(times), np.int32), times, values)
    return sampled_metrics(table).metrics


def test_a_sample_stands_for_the_time_since_the_one_before_it() -> None:
    [one] = metrics("SMs Active [Throughput %]", (30, 3), (10, 1), (20, 2), (61, 4), (70, 5))
    assert one.period == 10
    assert one.time[one.known].tolist() == [20, 30, 70], "not of the first, nor after a gap"
    sums = one.over(np.zeros(1, np.int64), np.array([15]), np.array([65]), 1)
    assert sums.weighted.tolist() == [5 * 2 + 10 * 3 + 4 * 5]
    assert (sums.exposure.tolist(), sums.samples.tolist()) == ([19], [3])


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ([1_710_000_000] * 30, 1710.0),
        ([1980] * 30, 1980.0),
        ([0, 0, *[1_500_000_000] * 28], 1500 * 28 / 29),
        ([40_000] * 30, np.nan),
        ([-1] * 30, np.nan),
    ],
)
def test_clocks_in_hertz_are_told_by_their_values(values: list[int], mean: float) -> None:
    samples = [(10 * at, value) for at, value in enumerate(values)]
    [one] = metrics("GPC Clock Frequency [MHz]", *samples)
    sums = one.over(np.zeros(1, np.int64), np.array([0]), np.array([290]), 1)
    found = float(sums.means(one.period)[0]) * one.scale.factor
    assert one.scale.unit == "MHz"
    assert np.isnan(found) if np.isnan(mean) else found == pytest.approx(mean)


def test_values_beyond_all_measure_spoil_no_others() -> None:
    samples = [(10 * at, 50 if at % 2 else (1 << 61) - 1) for at in range(60)]
    [one] = metrics("SMs Active [Throughput %]", *samples)
    sums = one.over(np.zeros(1, np.int64), np.array([0]), np.array([600]), 1)
    assert sums.means(one.period).tolist() == [50.0]
    assert sums.exposure.tolist() == [300], "of the others it is not known"


def test_large_values_without_a_unit_stay_numbers() -> None:
    [one] = metrics("PCIe RX", *((10 * at, (1 << 61) - 1) for at in range(60)))
    sums = one.over(np.zeros(1, np.int64), np.array([0]), np.array([600]), 1)
    assert sums.means(one.period)[0] == pytest.approx(1 << 61)


def test_of_two_samples_at_a_time_the_first_counts() -> None:
    table = GpuMetrics(
        (Counter(0, 0, 0, "a"), Counter(0, 0, 0, "a"), Counter(0, 1, 1, "a")),
        np.array([0, 1, 2], np.int32),
        np.array([5, 5, 5], np.int64),
        np.array([7, 8, 9], np.int64),
    )
    found = sampled_metrics(table)
    assert [one.value.tolist() for one in found.metrics] == [[7], [9]]
    assert found.repeated == 1


def test_units_are_left_out_of_short_names_where_one_can_tell() -> None:
    assert short_name("SMs Active [Throughput %]") == "SMs Active"
    assert short_name("Warps [Avg]") == "Warps [Avg]"
