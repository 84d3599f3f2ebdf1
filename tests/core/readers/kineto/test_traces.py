"""The real traces: everything that is counted equals what `json.load` and exact decimals give."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pytest

from flame.core.model.frames import Kind
from flame.core.model.raw import RawTrace
from flame.core.options import LoadOptions, silent
from flame.core.readers.kineto import reader as kineto
from flame.core.readers.kineto.memory import NO_EVENTS
from tests.conftest import TRACES, is_small
from tests.support.tiers import deep_except

NAMES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))
EVERY = deep_except([name for name in NAMES if is_small(TRACES / "kineto" / name)], NAMES)
GPU = {
    "kernel": Kind.KERNEL,
    "Kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "Memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "Memset": Kind.MEMSET,
}
CALLS = ("cuda_runtime", "cuda_driver", "Runtime")
RANGES = ("cpu_op", "Operator", "user_annotation")
SHOWN = (*GPU, *CALLS, *RANGES, "python_function", "gpu_user_annotation")


@cache
def recorded(name: str) -> list[dict[str, Any]]:
    """The complete events, times exact."""
    with gzip.open(TRACES / "kineto" / name) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    return [event for event in events if event["ph"] == "X"]


@cache
def decoded(name: str) -> RawTrace:
    return kineto.read_kineto(TRACES / "kineto" / name, LoadOptions(nvtx_names="raw"), silent)


def spans(name: str, categories: tuple[str, ...]) -> list[tuple[int, int]]:
    """(start, end) of all events of ``categories`` in ns, in their order."""
    mine = [event for event in recorded(name) if event["cat"] in categories]
    starts = [(int(event["ts"] * 1000), int(event["dur"] * 1000)) for event in mine]
    first = min(int(event["ts"] * 1000) for event in recorded(name) if event["cat"] in SHOWN)
    return [(start - first, start - first + length) for start, length in starts]


def of(table: Any) -> list[tuple[int, int]]:
    return list(zip(table.start.tolist(), table.end.tolist(), strict=True))


@pytest.mark.parametrize("name", EVERY)
def test_totals_per_kernel_equal_an_independent_computation(name: str) -> None:
    expected: Counter[tuple[Kind, str]] = Counter()
    for event in recorded(name):
        if kind := GPU.get(event["cat"]):
            expected[kind, event["name"] if kind == Kind.KERNEL else ""] += int(event["dur"] * 1000)
    raw = decoded(name)
    found: Counter[tuple[Kind, str]] = Counter()
    length = raw.activities.end - raw.activities.start
    for frame, ns in zip(raw.activities.frame.tolist(), length.tolist(), strict=True):
        shown = raw.frames[frame]
        full = shown.get("mangled") or shown.get("demangled")
        found[shown.kind, full if shown.kind == Kind.KERNEL else ""] += ns
    assert found == expected


@pytest.mark.parametrize("name", EVERY)
def test_every_event_has_its_times_to_the_nanosecond(name: str) -> None:
    raw = decoded(name)
    assert of(raw.calls) == spans(name, CALLS)
    assert of(raw.ranges) == spans(name, RANGES)
    assert of(raw.functions) == spans(name, ("python_function",))
    assert of(raw.gpu_ranges) == spans(name, ("gpu_user_annotation",))
    assert Counter(of(raw.activities)) == Counter(spans(name, tuple(GPU)))
    without = raw.meta.options.get("profile_memory") == "1" and raw.memory is None
    assert raw.warnings == ([NO_EVENTS] if without else [])


@pytest.mark.parametrize("name", EVERY)
def test_ranges_keep_names_threads_and_shapes(name: str) -> None:
    raw = decoded(name)
    mine = [event for event in recorded(name) if event["cat"] in RANGES]
    for row, event in enumerate(mine):
        frame, thread = raw.frames[int(raw.ranges.frame[row])], int(raw.ranges.thread[row])
        assert frame.name == event["name"]
        dims = event["args"].get("Input Dims", [])
        assert not frame.get("shapes") or json.loads(frame.get("shapes")) == dims
        assert raw.threads[thread].tid == int(event["tid"])


@pytest.mark.parametrize("name", EVERY)
def test_calls_and_work_keep_their_correlation(name: str) -> None:
    raw = decoded(name)
    for table, categories in ((raw.activities, tuple(GPU)), (raw.calls, CALLS)):
        mine = [event["args"] for event in recorded(name) if event["cat"] in categories]
        expected = Counter(args["correlation"] for args in mine)
        assert Counter(table.correlation.tolist()) == expected
    assert raw.launches_builder is not None
    launches = raw.launches_builder()
    moved = [event["args"].get("bytes", 0) for event in recorded(name) if event["cat"] in GPU]
    assert int(launches.bytes[launches.bytes >= 0].sum()) == sum(moved)


@pytest.mark.parametrize("name", [name for name in NAMES if "python" in name])
def test_python_calls_keep_names_and_callers(name: str) -> None:
    raw = decoded(name)
    mine = [event for event in recorded(name) if event["cat"] == "python_function"]
    ids = [event["args"].get("Python parent id") or 0 for event in mine]
    assert raw.functions.caller.tolist() == ids
    assert raw.functions.call.tolist() == [event["args"]["Python id"] for event in mine]
    for frame, event in zip(raw.functions.frame.tolist(), mine, strict=True):
        shown = raw.frames[frame]
        place = f"{shown.file}({shown.line}): {shown.name}" if shown.file else shown.name
        assert place == event["name"].partition(" at 0x")[0] + ">" * (" at 0x" in event["name"])


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("v100_old")])
def test_old_call_stacks_are_outermost_first(name: str) -> None:
    raw = decoded(name)
    assert raw.operators is not None
    stacks = raw.stacks.build()
    mine = [event for event in recorded(name) if event["cat"] in RANGES]
    for row in np.flatnonzero(raw.operators.python)[::50].tolist():
        frames = [raw.frames[frame] for frame in stacks.path(int(raw.operators.python[row]))]
        spelled = [f"{frame.file}({frame.line}): {frame.name}" for frame in frames]
        assert ";".join(spelled[::-1]) == mine[row]["args"]["Call stack"]
