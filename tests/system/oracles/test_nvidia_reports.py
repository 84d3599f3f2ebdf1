"""Totals equal those NVIDIA's own reports print for the same traces."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import where
from tests.conftest import TRACES
from tests.support.oracles.naive import Trace, read_calls
from tests.support.oracles.oracles import (
    NVTX_ORACLES,
    ORACLES,
    Row,
    Total,
    call_totals,
    kernel_totals,
    plain_call,
    range_kernel_totals,
    range_totals,
    report,
)
from tests.support.profiles.project_tree import project_tree

on_all = pytest.mark.parametrize("trace", ORACLES)
on_annotated = pytest.mark.parametrize("trace", NVTX_ORACLES)


@cache
def profile_of(trace: str) -> Profile:
    return load(TRACES / "nsys" / f"{trace}.sqlite", LoadOptions(nvtx_names="raw"))


def kernel_tree(trace: str, levels: str, metric: str = "gpu") -> StackTree:
    """Of kernels only, by demangled name: what the reports show."""
    only = where(include="kernel")
    return project_tree(profile_of(trace), levels, only, metric, kernel_names="demangled")


def leaves(tree: StackTree) -> Iterator[int]:
    return (node for node in range(1, len(tree)) if tree.own_count[node])


def range_names(tree: StackTree, node: int) -> list[str]:
    """Names of the ranges on the way down to `node`, as the reports print them."""
    frames = [tree.frames[int(tree.frame[step])] for step in tree.path(node)]
    ranges = [frame for frame in frames if frame.kind == Kind.NVTX]
    return [f"{one.get('domain')}:{one.name}".removeprefix(":") for one in ranges]


def number_in(label: str) -> str:
    """The id in a label such as ``python [123]`` or ``GPU 0 NVIDIA H100``."""
    found = re.search(r"\[(\d+)\]$|^GPU (\d+)", label)
    assert found
    return found[1] or found[2]


@on_all
def test_kernels_as_in_cuda_gpu_kern_sum(trace: str) -> None:
    tree = kernel_tree(trace, "kernel")
    found = {
        tree.name(node): Total(int(tree.count[node]), int(tree.total[node]))
        for node in tree.children(0)
    }
    assert found == kernel_totals(trace)


@on_all
def test_api_time_as_in_cuda_api_sum(trace: str) -> None:
    """No call in these traces contains another, so that self time is total time."""
    tree = project_tree(profile_of(trace), "launch", metric="host")
    found = {tree.name(node): int(tree.total[node]) for node in tree.children(0)}
    assert found == {name: total.ns for name, total in call_totals(trace).items()}


@on_all
def test_recorded_calls_as_in_cuda_api_sum(trace: str) -> None:
    """The naive computation, which the other tests trust, reads the calls as NVIDIA does."""
    found: dict[str, Total] = defaultdict(Total)
    for call in read_calls(Trace(TRACES / "nsys" / f"{trace}.sqlite")):
        found[call.name] = found[call.name].plus(1, call.end - call.start)
    assert found == call_totals(trace)


@on_all
def test_launches_as_in_cuda_kern_exec_sum(trace: str) -> None:
    tree = kernel_tree(trace, "process,thread,device,launch,kernel")
    found = {}
    for leaf in leaves(tree):
        process, *labels, launch, kernel = tree.names(leaf)
        if launch != "[no launch recorded]" and len(labels) == 2:
            key = (*map(number_in, (process, *labels)), launch, kernel)
            found[key] = int(tree.count[leaf]), int(tree.total[leaf])
    expected = {exec_key(row): row for row in report(trace, "cuda_kern_exec_sum")}
    assert {key: count for key, (count, _) in found.items()} == {
        key: int(row["Count"]) for key, row in expected.items()
    }
    for key, (count, ns) in found.items():
        assert ns / count == pytest.approx(float(expected[key]["KAvg:dur_ns"]), abs=0.051)


def exec_key(row: Row) -> tuple[str, ...]:
    call = plain_call(row["API Name"])
    return row["PID"], row["TID"], row["DevId"], call, row["Kernel Name"]


@on_all
def test_queue_delay_as_in_cuda_kern_exec_sum(trace: str) -> None:
    """Averages are printed with one digit, of the kernels that waited at all."""
    expected = sum(
        float(row["QAvg:dur_ns"]) * int(row["QCount"])
        for row in report(trace, "cuda_kern_exec_sum")
        if int(row["QCount"])
    )
    tree = kernel_tree(trace, "kernel", "queue")
    assert int(tree.total[0]) == pytest.approx(expected, abs=0.051 * int(tree.count[0]))


@on_annotated
def test_kernels_in_ranges_as_in_nvtx_kern_sum(trace: str) -> None:
    """A kernel counts once for every name among the ranges around its launch."""
    tree = kernel_tree(trace, "process,thread,launch,nvtx,kernel")
    found: dict[tuple[str, str, str, str], Total] = defaultdict(Total)
    for leaf in leaves(tree):
        labels = tree.names(leaf)
        launched = "[no launch recorded]" not in labels
        ids = [number_in(label) if launched else "" for label in labels[:2]]
        for name in set(range_names(tree, leaf)) or {""}:
            key = name, ids[0], ids[1], tree.name(leaf)
            found[key] = found[key].plus(int(tree.count[leaf]), int(tree.total[leaf]))
    assert found == range_kernel_totals(trace)


@on_annotated
def test_range_time_as_in_nvtx_pushpop_sum(trace: str) -> None:
    """The report counts a range inside one of the same name as often as it is open."""
    tree = project_tree(profile_of(trace), "thread,nvtx", metric="host")
    found = Counter[str]()
    for node in range(1, len(tree)):
        if tree.kind(node) == Kind.NVTX:
            found[range_names(tree, node)[-1]] += int(tree.total[node])
    assert found == {name: total.ns for name, total in range_totals(trace).items()}


@on_annotated
def test_work_in_ranges_as_in_nvtx_gpu_proj_sum(trace: str) -> None:
    """Kernels, copies and sets launched inside ranges of a name, at any depth."""
    expected = Counter[str]()
    for row in report(trace, "nvtx_gpu_proj_sum"):
        expected[row["Range"]] += int(row["Total GPU Ops"])
    tree = project_tree(profile_of(trace), "nvtx", metric="count")
    found = Counter[str]()
    for node in leaves(tree):
        for name in set(range_names(tree, node)):
            found[name] += int(tree.own[node])
    assert found == expected
