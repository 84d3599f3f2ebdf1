"""Real PyTorch profiler traces against an independent reading, stack by stack."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import numpy as np
import pytest

import flame
from flame.core.profile import Profile
from flame.core.tree import StackTree
from tests import naive_kineto as naive
from tests.conftest import TRACES

KINETO_TRACES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))
every_trace = pytest.mark.parametrize("name", KINETO_TRACES)


@cache
def events(name: str) -> list[naive.Event]:
    return naive.events_of(TRACES / "kineto" / name)


@cache
def profile(name: str) -> Profile:
    return flame.load(TRACES / "kineto" / name)


def in_full(name: str, levels: str) -> StackTree:
    return profile(name).tree(levels=levels, kernel_names="demangled", metric="gpu")


def by_names(tree: StackTree) -> dict[tuple[str, ...], int]:
    """Own values by path; frames of one name in several files or lines are several nodes."""
    found: defaultdict[tuple[str, ...], int] = defaultdict(int)
    for node in np.flatnonzero(tree.own).tolist():
        found[tree.names(node)] += int(tree.own[node])
    return dict(found)


@every_trace
def test_totals_of_kernels_are_those_of_the_file(name: str) -> None:
    found = {stack[0]: value for stack, value in by_names(in_full(name, "kernel")).items()}
    assert found == naive.kernel_totals(events(name))


@every_trace
def test_counts_of_activities_are_those_of_the_file(name: str) -> None:
    assert len(profile(name).activities) == len(naive.gpu_events(events(name)))


@every_trace
@pytest.mark.parametrize(
    "levels", ["python,launch,nvtx,kernel", "python,kernel", "nvtx,kernel", "launch,kernel"]
)
def test_stacks_are_those_of_a_naive_nesting(name: str, levels: str) -> None:
    expected: defaultdict[tuple[str, ...], int] = defaultdict(int)
    for one in naive.launched(events(name)):
        parts = {
            "python": one.python,
            "launch": (one.launch,),
            "nvtx": one.ranges,
            "kernel": (one.kernel,),
        }
        expected[tuple(part for level in levels.split(",") for part in parts[level])] += one.ns
    assert by_names(in_full(name, levels)) == {
        stack: value for stack, value in expected.items() if value
    }
