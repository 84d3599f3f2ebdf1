"""Iterations of a report: every column as plain loops over nanoseconds find it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.model.frames import Kind
from flame.core.model.meta import ProfilerSteps
from flame.core.model.profile import Profile
from flame.core.projection.filters import Kernel, Pids, Steps, Time
from flame.core.projection.selection import select
from flame.core.report.labels import PART_NAMES as PARTS
from flame.core.report.program.iteration_measures import measure_scope, measure_times
from flame.core.report.scope import Scope
from flame.core.timeline.idle_parts import IdleCause, idle_parts
from tests.support.profiles.recorded import Recorded
from tests.support.tiers import examples

NAMES = (("gemm", Kind.KERNEL), ("ncclAllReduce", Kind.KERNEL), ("memcpy HtoD", Kind.MEMCPY))


class Work(NamedTuple):
    """An activity, launched by process 0 or 1 at ``launch``; None: that was not recorded."""

    what: int
    process: int
    device: int
    start: int
    length: int
    launch: int | None
    call: int

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def time(self) -> int:
        return self.start if self.launch is None else self.launch


class Step(NamedTuple):
    number: int
    process: int
    start: int
    end: int


class Sync(NamedTuple):
    """A call of process 0 on a thread of its own, one in every 7 ns at most."""

    slot: int
    length: int
    name: str

    @property
    def start(self) -> int:
        return 7 * self.slot


moments = st.integers(0, 60)
works = st.builds(
    Work,
    st.integers(0, 2),
    st.integers(0, 1),
    st.integers(0, 1),
    moments,
    st.integers(1, 15),
    st.one_of(st.none(), moments, moments),
    st.integers(1, 4),
)
steps = st.builds(
    lambda number, process, start, length: Step(number, process, start, start + length),
    st.integers(0, 4),
    st.integers(0, 1),
    moments,
    st.integers(0, 30),
)
syncs = st.builds(
    Sync,
    st.integers(0, 12),
    st.integers(1, 5),
    st.sampled_from(["cudaDeviceSynchronize", "cudaMalloc", "cudaEventRecord"]),
)
calls_apart = st.lists(syncs, max_size=6, unique_by=lambda call: call.slot)


def recorded(work: list[Work], marks: list[Step], calls: list[Sync]) -> Profile:
    trace = Recorded()
    for number, one in enumerate(work, 1):
        name, kind = NAMES[one.what]
        if one.launch is not None:
            thread = 2 * one.process
            trace.call("cudaLaunchKernel", one.launch, one.launch + one.call, number, thread=thread)
        trace.kernel(
            name,
            one.start,
            one.end,
            number if one.launch is not None else 0,
            process=one.process,
            device=one.device,
            kind=kind,
        )
    for call in calls:
        trace.call(call.name, call.start, call.start + call.length, thread=1)
    numbers, process, first, last = np.array(marks, np.int64).reshape(-1, 4).T
    owner = process.astype(np.int32)
    return replace(trace.profile(), steps=ProfilerSteps(numbers, owner, first, last, owner))


def cut(marks: list[Step]) -> list[Step]:
    """By process and start, each until the next of its process."""
    ordered = sorted(marks, key=lambda one: (one.process, one.start))
    found = []
    for at, one in enumerate(ordered):
        after = ordered[at + 1] if at + 1 < len(ordered) else None
        if after is not None and after.process == one.process:
            one = one._replace(end=min(one.end, after.start))
        found.append(one)
    return found


def mine(one: Step, work: list[Work]) -> list[Work]:
    return [
        each for each in work if each.process == one.process and one.start <= each.time < one.end
    ]


def moments_of(work: list[Work], what: set[int], device: int) -> set[int]:
    return {
        moment
        for each in work
        if each.what in what and each.device == device
        for moment in range(each.start, each.end)
    }


def windows(found: list[Step], work: list[Work], device: int) -> dict[int, range]:
    """From the first start on the device to that of the next iteration of the process with any."""
    there = []
    for at, one in enumerate(found):
        own = [each for each in mine(one, work) if each.device == device]
        if own:
            there.append((at, min(e.start for e in own), max(e.end for e in own)))
    result = {}
    for place, (at, low, high) in enumerate(there):
        if place + 1 < len(there) and found[there[place + 1][0]].process == found[at].process:
            high = there[place + 1][1]
        result[at] = range(low, max(low, high))
    return result


def expected_parts(profile: Profile, found: list[Step], work: list[Work]) -> list[Counter[str]]:
    result: list[Counter[str]] = [Counter() for _ in found]
    idle = {each.device: each for each in idle_parts(profile)}
    for device in {each.device for each in work}:
        compute = moments_of(work, {0}, device)
        talk = moments_of(work, {1}, device)
        copy = moments_of(work, {2}, device)
        cause = {
            moment: IdleCause(number).title
            for low, high, number in zip(
                idle[device].low, idle[device].high, idle[device].cause, strict=True
            )
            for moment in range(int(low), int(high))
        }
        for at, window in windows(found, work, device).items():
            for moment in window:
                part = PARTS[0] if moment in compute else PARTS[1] if moment in talk else PARTS[2]
                if moment not in compute | talk | copy:
                    part = f"idle: {cause[moment]}"
                result[at][part] += 1
                result[at]["window"] += 1
    return result


@examples(2, [HealthCheck.too_slow])
@given(
    st.lists(works, max_size=10),
    st.lists(steps, min_size=1, max_size=6),
    calls_apart,
)
def test_columns_are_those_of_plain_loops(
    work: list[Work], marks: list[Step], calls: list[Sync]
) -> None:
    profile = recorded(work, marks, calls)
    found, measured = cut(marks), measure_scope(Scope(profile))
    parts = expected_parts(profile, found, work)
    for at, one in enumerate(found):
        own = mine(one, work)
        after = found[at + 1] if at + 1 < len(found) else None
        until = after.start if after and after.process == one.process else one.end
        column = {
            name: int(getattr(measured, name)[at])
            for name in (
                *("number", "process", "start", "host", "period", "gpu_time", "activities"),
                *("kernels", "busy", "span", "window", "launches"),
            )
        }
        busy = {(e.device, moment) for e in own for moment in range(e.start, e.end)}
        assert column == {
            "number": one.number,
            "process": one.process,
            "start": one.start,
            "host": one.end - one.start,
            "period": until - one.start,
            "gpu_time": sum(e.length for e in own),
            "activities": len(own),
            "kernels": sum(e.what < 2 for e in own),
            "busy": len(busy),
            "span": max(e.end for e in own) - min(e.start for e in own) if own else 0,
            "window": parts[at]["window"],
            "launches": len({(e.launch, e.call) for e in own if e.launch is not None}),
        }
        told = {name: int(ns) for name, ns in zip(PARTS, measured.parts[:, at], strict=True) if ns}
        assert told == {name: ns for name, ns in parts[at].items() if name != "window"}
        for name, number, length in (
            ("cudaDeviceSynchronize", measured.syncs, measured.sync_ns),
            ("cudaMalloc", measured.allocs, measured.alloc_ns),
        ):
            made = [c for c in calls if c.name == name and one.start <= c.start < one.end]
            made = made if one.process == 0 else []
            if number is None or length is None:
                assert not calls
                assert all(each.launch is None for each in work)
            else:
                assert (int(number[at]), int(length[at])) == (
                    len(made),
                    sum(c.length for c in made),
                )


def test_filters_choose_iterations() -> None:
    work = [Work(0, 0, 0, 5, 5, 1, 2), Work(0, 1, 0, 40, 5, 31, 2), Work(1, 0, 0, 60, 5, 21, 2)]
    marks = [Step(1, 0, 0, 10), Step(2, 0, 20, 30), Step(2, 1, 30, 40)]
    profile = recorded(work, marks, [])

    def left(*where: object) -> list[tuple[int, int]]:
        found = measure_scope(Scope(profile, select(where=where)))  # type: ignore[arg-type]
        return list(zip(found.number.tolist(), found.process.tolist(), strict=True))

    assert left() == [(1, 0), (2, 0), (2, 1)]
    assert left(Steps.of([2])) == [(2, 0), (2, 1)]
    assert left(Pids((200,))) == [(2, 1)]
    assert left(Time(0, 30)) == [(1, 0), (2, 0)]
    found = measure_scope(Scope(profile, select(where=(Kernel("gemm"),))))
    assert found.gpu_time.tolist() == [5, 0, 5]
    assert measure_times(Scope(profile)).slowest.tolist() == [0, 1]
