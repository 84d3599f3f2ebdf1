"""How long iterations took and what was launched in them: as the filter by steps has it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.iterations import iteration_name, measure_iterations
from flame.core.analysis.utilization import utilizations
from flame.core.loading.many import load, load_all
from flame.core.model.meta import ProfilerSteps
from flame.core.model.profile import Profile
from flame.core.projection.filters import Steps
from tests.conftest import TRACES
from tests.support.oracles.naive_iterations import measure
from tests.support.paths import SAMPLES
from tests.support.profiles.recorded import Recorded
from tests.support.tiers import examples

STEPPED = [
    *(SAMPLES / name for name in ("decode_small.sqlite", "torch_small.pt.trace.json.gz")),
    *(
        TRACES / name
        for name in (
            "nsys/rtx3070_train_17k.sqlite",
            "kineto/h100_qwen_python.json.gz",
            "kineto/h100_bert_small.json.gz",
            "kineto/cpu_only.json.gz",
            "kineto/v100_old_categories.json.gz",
            "kineto/v100_cuda_graphs.json.gz",
        )
        if (TRACES / name).exists()
    ),
]
"""All traces at hand that have iterations."""

of_each = pytest.mark.parametrize("path", STEPPED, ids=lambda path: path.name)

Row = tuple[int, int, int, int]

loaded = lru_cache(load)


def with_steps(trace: Recorded, *rows: Row) -> Profile:
    """``rows`` are number, process, start, end."""
    number, process, start, end = np.array(rows, np.int64).reshape(-1, 4).T
    owner = process.astype(np.int32)
    return replace(trace.profile(), steps=ProfilerSteps(number, owner, start, end, owner))


def check(profile: Profile) -> None:
    """What is measured is what plain loops find."""
    table = measure_iterations(profile)
    sums, outside = measure(profile)
    assert sorted(table.number.tolist()) == sorted(sums)
    columns = ("start", "duration", "gpu_time", "activities", "window", "busy")
    for place, number in enumerate(table.number.tolist()):
        found = {name: int(getattr(table, name)[place]) for name in columns}
        assert found == vars(sums[number]), number
    assert {name: tuple(part) for name, part in table.outside._asdict().items()} == outside


# Against plain loops


@examples(3)
@given(
    kernels=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 200), st.integers(0, 30)),
        max_size=20,
    ),
    steps=st.lists(
        st.tuples(
            st.integers(0, 4), st.integers(0, 1), st.integers(0, 200), st.integers(0, 90)
        ).map(lambda row: (*row[:3], row[2] + row[3])),
        max_size=8,
    ),
)
def test_all_sums_are_those_of_plain_loops(kernels: list[Row], steps: list[Row]) -> None:
    trace = Recorded()
    for process, device, start, length in kernels:
        trace.kernel("gemm", start, start + length, process=process, device=device)
    check(with_steps(trace, *steps))


@of_each
def test_so_they_are_in_real_traces(path: Path) -> None:
    check(loaded(path))


@of_each
def test_each_has_what_the_filter_leaves_and_all_of_them_with_the_rest_is_all(path: Path) -> None:
    profile = loaded(path)
    table, durations = measure_iterations(profile), profile.activities.duration
    assert len(table)
    for place, number in enumerate(table.number.tolist()):
        rows = Steps.of([number]).rows(profile, profile.activities)
        assert table.gpu_time[place] == durations[rows].sum()
        assert table.activities[place] == rows.sum()
    outside = table.outside.total
    assert int(table.gpu_time.sum()) + outside.gpu_time == profile.gpu_time
    assert int(table.activities.sum()) + outside.activities == len(durations)


@of_each
def test_each_is_as_busy_as_the_header_says_under_the_filter(path: Path) -> None:
    profile = loaded(path)
    table = measure_iterations(profile)
    for place, number in enumerate(table.number.tolist()):
        found = utilizations(profile, (Steps.of([number]),))
        assert table.window[place] == sum(each.length for each in found)
        assert table.busy[place] == sum(each.busy for each in found)
        assert table.idle[place] == sum(each.idle for each in found)


def test_so_they_are_of_several_ranks(tmp_path: Path) -> None:
    sample = SAMPLES / "torch_small.pt.trace.json.gz"
    other = tmp_path / "other.json.gz"
    other.write_bytes(sample.read_bytes())
    merged, alone = load_all([sample, other]), loaded(sample)
    check(merged)
    found, half = measure_iterations(merged), measure_iterations(alone)
    assert found.number.tolist() == half.number.tolist()
    assert found.gpu_time.tolist() == (2 * half.gpu_time).tolist()
    assert found.duration.tolist() == half.duration.tolist()


# What is said of them


def two_processes() -> Recorded:
    """Kernels of 10, 20 and 40 ns, launched at 0, 100 and 200; the last by another process."""
    trace = Recorded()
    for place, ns in enumerate((10, 20, 40)):
        owner = int(place == 2)
        begin, run = 100 * place, 1_000 * place + 1_000
        trace.call("cudaLaunchKernel", begin, begin + 5, corr=place + 1, thread=2 * owner)
        trace.kernel("gemm", run, run + ns, corr=place + 1, process=owner)
    return trace


def test_one_of_several_processes_is_as_long_as_the_longest() -> None:
    profile = with_steps(two_processes(), (7, 1, 150, 300), (6, 0, 0, 100), (7, 0, 100, 180))
    table = measure_iterations(profile)
    assert table.number.tolist() == [6, 7]
    assert table.duration.tolist() == [100, 150] and table.gpu_time.tolist() == [10, 60]
    assert table.start.tolist() == [0, 100]


def test_what_lies_between_them_belongs_to_none() -> None:
    table = measure_iterations(with_steps(two_processes(), (1, 0, 10, 90), (2, 0, 101, 400)))
    assert table.gpu_time.tolist() == [0, 0]
    assert table.outside._asdict() == {
        "before": (10, 1),
        "between": (20, 1),
        "after": (0, 0),
        "elsewhere": (40, 1),
    }


def test_an_end_is_outside_and_a_beginning_is_not() -> None:
    outside = measure_iterations(with_steps(two_processes(), (1, 0, 10, 100), (2, 1, 200, 300)))
    assert outside.outside == ((10, 1), (0, 0), (20, 1), (0, 0))
    assert outside.gpu_time.tolist() == [0, 40]


def test_those_over_one_point_two_times_the_median_are_slow() -> None:
    rows = [(at, 0, 1000 * at, 1000 * at + ns) for at, ns in enumerate((100, 100, 120, 121, 500))]
    table = measure_iterations(with_steps(two_processes(), *rows))
    assert (table.median, table.slowest) == (120, 4)
    assert table.slow.tolist() == [False, False, False, False, True]
    rows[2] = (2, 0, 2000, 2100)
    table = measure_iterations(with_steps(two_processes(), *rows))
    assert table.slow.tolist() == [False, False, False, True, True]


def test_without_steps_there_is_nothing() -> None:
    table = measure_iterations(two_processes().profile())
    assert (len(table), table.median) == (0, 0)
    assert table.outside.elsewhere == (70, 3)


def test_they_have_names() -> None:
    profile = with_steps(two_processes(), (6, 0, 0, 100))
    assert iteration_name(profile, 0) == "ProfilerStep#6"
    assert iteration_name(load(SAMPLES / "decode_small.sqlite"), 0) == "execute"
