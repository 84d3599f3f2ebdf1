"""Every kernel of the real traces has a short name of its own, and the category it should have."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from flame.core.loading.many import load_all
from flame.core.model.frames import Kind
from flame.core.model.grouping import category_of_frame
from flame.core.model.profile import Profile
from flame.core.names.kernel_category import OTHER
from flame.core.options import LoadOptions, silent
from flame.core.projection.labels import Naming, exact_labels
from tests.conftest import TRACES, needs_traces

pytestmark = needs_traces

GOLDEN = Path(__file__).with_name("kernels_of_traces.tsv")
"""Trace, category, short name and the beginning of the base name of every kernel.

Written by `benchmarks/kernel_names.py --list`, sorted, and read line by line.
"""
TRACES_WITH_KERNELS = sorted({line.partition("\t")[0] for line in GOLDEN.read_text().splitlines()})
ON_EVERY_TRACE = pytest.mark.parametrize("trace", TRACES_WITH_KERNELS)
NOT_OF_LIBRARIES = {
    "cuda_backtraces_2021.sqlite",
    "oldest_schema.sqlite",
    "rtx3060_23k.sqlite",
    "ten_streams.sqlite",
}
"""Traces of programs that have their own kernels, whose names no table can know."""


@cache
def profile_of(trace: str) -> Profile:
    return load_all([next(TRACES.rglob(trace))], LoadOptions(), silent)


def kernels(profile: Profile) -> list[int]:
    found: list[int] = np.flatnonzero(profile.frames.kind == Kind.KERNEL).tolist()
    return found


def kernel_times(profile: Profile) -> dict[int, int]:
    times: dict[int, int] = defaultdict(int)
    frame, kind, duration = (
        getattr(profile.activities, name).tolist() for name in ("frame", "kind", "duration")
    )
    for at, one, ns in zip(frame, kind, duration, strict=True):
        if one == Kind.KERNEL:
            times[at] += ns
    return times


@ON_EVERY_TRACE
def test_every_kernel_is_called_and_sorted_as_read(trace: str) -> None:
    profile = profile_of(trace)
    short = exact_labels(profile.frames, Naming("short")).text
    found = [
        (category_of_frame(profile.frames[at]), short[at], profile.frames[at].name[:60])
        for at in kernels(profile)
    ]
    lines = (line.split("\t") for line in GOLDEN.read_text().splitlines())
    assert sorted(found) == sorted(tuple(line[1:]) for line in lines if line[0] == trace)


@ON_EVERY_TRACE
def test_no_short_name_merges_kernels(trace: str) -> None:
    profile = profile_of(trace)
    short, users = exact_labels(profile.frames, Naming("short")).text, defaultdict(set)
    for at in kernels(profile):
        users[short[at]].add(profile.frames[at].get("demangled") or profile.frames[at].name)
    assert {name: full for name, full in users.items() if len(full) > 1} == {}


@ON_EVERY_TRACE
def test_little_gpu_time_is_of_no_known_category(trace: str) -> None:
    profile = profile_of(trace)
    times = kernel_times(profile)
    other = sum(ns for at, ns in times.items() if category_of_frame(profile.frames[at]) == OTHER)
    limit = 1.0 if trace in NOT_OF_LIBRARIES else 0.07
    assert other <= limit * sum(times.values())


@ON_EVERY_TRACE
def test_short_names_are_short_and_on_one_line(trace: str) -> None:
    profile = profile_of(trace)
    short = exact_labels(profile.frames, Naming("short")).text
    names = [short[at] for at in kernels(profile)]
    assert all(0 < len(name) <= 60 and name.isprintable() for name in names)
