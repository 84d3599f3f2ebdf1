"""Sections of the report against what NVIDIA's own scripts say of the real traces.

Not their medians, quartiles and deviations, which are approximations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.selection import select
from flame.core.report.report import Report
from flame.core.report.scope import Scope
from flame.core.report.table import Section
from tests.conftest import TRACES, needs_traces
from tests.support.oracles.oracles import plain_call, report, traces_with
from tests.support.profiles.report_rows import table_rows
from tests.support.tiers import deep_except

pytestmark = needs_traces

QUICK = ("ten_streams", "two_processes_colliding_ids", "rtx3080_trimmed")

TWICE = ("cuda_backtraces_2021", "cuda_backtraces_mpi")
"""Traces whose calls NVIDIA's scripts count again where a row repeats them with a backtrace."""


def traces(name: str) -> list[object]:
    """Traces with a report, but for those that it counts twice."""
    return deep_except(QUICK, [stem for stem in traces_with(name) if stem not in TWICE])


def section(stem: str, name: str, start_end: bool = False) -> Section:
    """A section on a trace, with names in full; start/end ranges may be among the ranges."""
    options = LoadOptions("raw", nvtx_start_end=start_end)
    profile = load(TRACES / "nsys" / f"{stem}.sqlite", options)
    selection = select(kernel_names="demangled")
    return Report(Scope(profile, selection, frozenset(["config", "row"]))).section(name)


def sums(rows: Iterable[tuple[Any, list[float]]]) -> dict[Any, list[float]]:
    """Add up the numbers of equal keys."""
    found: defaultdict[Any, list[float]] = defaultdict(list)
    for key, numbers in rows:
        before = found[key] or [0.0] * len(numbers)
        found[key] = [sum(pair) for pair in zip(before, numbers, strict=True)]
    return dict(found)


@pytest.mark.parametrize("stem", traces("cuda_gpu_kern_sum"))
def test_kernels_by_name(stem: str) -> None:
    rows = table_rows(section(stem, "kernels"))
    found = {r["name"]: (r["count"], r["ns"], r["min_ns"], r["max_ns"]) for r in rows}
    columns = ("Instances", "Total Time:dur_ns", "Min:dur_ns", "Max:dur_ns")
    expected = {
        row["Name"]: tuple(int(row[column]) for column in columns)
        for row in report(stem, "cuda_gpu_kern_sum")
    }
    graphs = {name for name in found if name.startswith("CUDA graph")}
    assert {name: found[name] for name in found.keys() - graphs} == expected


@pytest.mark.parametrize("stem", traces("cuda_gpu_kern_gb_sum"))
def test_kernels_by_configuration(stem: str) -> None:
    found = sums(
        ((row["name"], row["grid"], row["block"]), [row["count"], row["ns"]])
        for row in table_rows(section(stem, "kernels"), "by_config")
    )
    expected = sums(
        (
            (row["Name"], *("x".join(row[size].split()) for size in ("GridXYZ", "BlockXYZ"))),
            [int(row["Instances"]), int(row["Total Time:dur_ns"])],
        )
        for row in report(stem, "cuda_gpu_kern_gb_sum")
    )
    assert found == expected


@pytest.mark.parametrize("stem", traces("cuda_gpu_mem_time_sum"))
def test_copies_and_sets(stem: str) -> None:
    rows = table_rows(section(stem, "kernels"), "copies")
    columns = ("Count", "Total Time:dur_ns", "Min:dur_ns", "Max:dur_ns")
    expected = [
        tuple(int(row[column]) for column in columns)
        for row in report(stem, "cuda_gpu_mem_time_sum")
    ]
    found = [(row["count"], row["ns"], row["min_ns"], row["max_ns"]) for row in rows]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("stem", traces("cuda_kern_exec_sum"))
def test_from_launch_to_end(stem: str) -> None:
    parts = ("api", "queue", "kernel", "total")
    found = sums(
        (
            (row["pid"], row["tid"], row["call"], row["kernel"]),
            [row["count"], row["queued"], *(row[f"{part}_ns"] for part in parts)],
        )
        for row in table_rows(section(stem, "launches"), "exec")
    )
    expected = sums(
        (
            (int(row["PID"]), int(row["TID"]), plain_call(row["API Name"]), row["Kernel Name"]),
            [
                int(row["Count"]),
                int(row["QCount"]),
                *(
                    float(row[f"{part}Avg:dur_ns"] or 0)
                    * int(row["QCount" if part == "Q" else "Count"])
                    for part in "AQKT"
                ),
            ],
        )
        for row in report(stem, "cuda_kern_exec_sum")
    )
    assert found.keys() == expected.keys()
    for key, numbers in expected.items():
        # Means are written to a digit behind the point.
        assert found[key] == pytest.approx(numbers, rel=0, abs=0.06 * numbers[0]), key
        assert found[key][:2] == numbers[:2]


@pytest.mark.parametrize("stem", traces("cuda_api_sum"))
def test_calls(stem: str) -> None:
    """None of these traces has calls within others."""
    rows = table_rows(section(stem, "api"))
    found = {row["name"]: [row["count"], row["ns"]] for row in rows}
    assert found == sums(
        (plain_call(row["Name"]), [int(row["Num Calls"]), int(row["Total Time:dur_ns"])])
        for row in report(stem, "cuda_api_sum")
    )


@pytest.mark.parametrize("stem", traces("cuda_api_sum"))
def test_calls_by_row(stem: str) -> None:
    rows = table_rows(section(stem, "api"), "by_row")
    found = {row["name"]: [row["count"], row["ns"], row["min_ns"], row["max_ns"]] for row in rows}
    columns = ("Num Calls", "Total Time:dur_ns", "Min:dur_ns", "Max:dur_ns")
    theirs: list[tuple[str, list[float]]] = [
        (plain_call(row["Name"]), [int(row[column]) for column in columns])
        for row in report(stem, "cuda_api_sum")
    ]
    together = sums((name, numbers[:2]) for name, numbers in theirs)
    assert {name: row[:2] for name, row in found.items()} == together
    for name, (_, _, least, most) in theirs:
        assert found[name][2] <= least and most <= found[name][3]


@pytest.mark.parametrize("stem", traces("cuda_api_sync"))
def test_calls_that_block(stem: str) -> None:
    looked_at = ("cudaDeviceSynchronize", "cudaStreamSynchronize")
    rows = [row for row in table_rows(section(stem, "syncs")) if row["name"] in looked_at]
    found = sums(((row["pid"], row["tid"], row["name"]), [row["count"], row["ns"]]) for row in rows)
    assert found == sums(
        (
            (int(row["PID"]), int(row["TID"]), plain_call(row["API Name"])),
            [1, int(row["Duration:dur_ns"])],
        )
        for row in report(stem, "cuda_api_sync")
    )


def test_calls_with_backtraces_count_once() -> None:
    rows = table_rows(section("cuda_backtraces_2021", "syncs"))
    theirs = report("cuda_backtraces_2021", "cuda_api_sync")
    assert 2 * sum(row["count"] for row in rows) == len(theirs)


def range_name(row: dict[str, Any]) -> str:
    return f"{row['domain']}:{row['name']}" if row["domain"] else str(row["name"])


def ranges(stem: str, count: str, time: str, table: str = "rows") -> dict[str, list[float]]:
    """What the section says of ranges by ``domain:name``."""
    return sums(
        (range_name(row), [row[count], row[time]])
        for row in table_rows(section(stem, "ranges"), table)
        if row[count]
    )


@pytest.mark.parametrize("stem", traces("nvtx_sum"))
def test_ranges_on_the_host(stem: str) -> None:
    assert ranges(stem, "count", "instances_ns") == sums(
        (row["Range"].removeprefix(":"), [int(row["Instances"]), int(row["Total Time:dur_ns"])])
        for row in report(stem, "nvtx_sum")
        if row["Style"] == "PushPop"
    )


def theirs_by_range(stem: str, name: str, style: str = "") -> dict[str, list[float]]:
    return sums(
        (row["Range"].removeprefix(":"), [int(row["Instances"]), int(row["Total Time:dur_ns"])])
        for row in report(stem, name)
        if not style or row["Style"] == style
    )


@pytest.mark.parametrize("stem", traces("nvtx_pushpop_sum"))
def test_ranges_that_nest(stem: str) -> None:
    expected = theirs_by_range(stem, "nvtx_pushpop_sum")
    assert ranges(stem, "count", "instances_ns") == expected


@pytest.mark.parametrize("stem", traces("nvtx_startend_sum"))
def test_start_end_ranges(stem: str) -> None:
    expected = theirs_by_range(stem, "nvtx_startend_sum")
    assert ranges(stem, "count", "ns", "start_end") == expected
    assert expected == theirs_by_range(stem, "nvtx_sum", "StartEnd")


@pytest.mark.parametrize("stem", traces("nvtx_startend_sum"))
def test_ranges_of_both_styles(stem: str) -> None:
    found = sums(
        (range_name(row), [row["count"], row["instances_ns"]])
        for row in table_rows(section(stem, "ranges", start_end=True))
        if row["count"]
    )
    assert found == theirs_by_range(stem, "nvtx_sum")
    styles = {
        range_name(row): row["style"]
        for row in table_rows(section(stem, "ranges", start_end=True))
        if row["count"]
    }
    words = {"PushPop": "push/pop", "StartEnd": "start/end"}
    for row in report(stem, "nvtx_sum"):
        assert styles[row["Range"].removeprefix(":")] == words[row["Style"]]


@pytest.mark.parametrize("stem", traces("nvtx_gpu_proj_sum"))
def test_ranges_projected_onto_the_gpu(stem: str) -> None:
    columns = ("Range Instances", "Total Proj Time:dur_ns")
    assert ranges(stem, "projected_count", "projected_ns") == sums(
        (row["Range"].removeprefix(":"), [int(row[column]) for column in columns])
        for row in report(stem, "nvtx_gpu_proj_sum")
    )


@pytest.mark.parametrize("stem", traces("nvtx_gpu_proj_trace"))
def test_longest_projected_ranges(stem: str) -> None:
    rows = table_rows(section(stem, "ranges"))
    found = {range_name(row): row["projected_max_ns"] for row in rows if row["projected_count"]}
    expected: defaultdict[str, int] = defaultdict(int)
    for row in report(stem, "nvtx_gpu_proj_trace"):
        name, length = row["Name"].removeprefix(":"), int(row["Projected Duration:dur_ns"])
        expected[name] = max(expected[name], length)
    assert found == dict(expected)
