"""Memory that programs on the test double allocate and free: its records, and who asked for it."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flame.core.live.feed import RecordingFeed
from flame.core.live.window import ALL
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.project import project
from flame.core.projection.selection import select
from tests.core.allocator.test_trace_memory import stacks, total, warned
from tests.core.live.recordings import Clock, assert_same
from tests.inject.cupti.cupti_recorded import CUPTI_DROPPED, Record, Recorded
from tests.inject.cupti.test_late_loading import Start, attach, start  # noqa: F401

MEMORY = 20  # of dump.h, as of Drop records
ON = {"FLAME_MEMORY_EVENTS": "1"}
MB = 1 << 20
NONE = (1 << 32) - 1
OF_MEMORY, OF_POOL = 0, 1
PINNED, DEVICE, MANAGED = 2, 3, 5
STEP = 32 * MB
"""By so much a pool of the double grows."""

HELPERS = """
from ctypes import byref, c_size_t, c_uint64, create_string_buffer

def allocate(size, call=cuda.cuMemAlloc_v2, *more):
    made = pointer()
    check(call(byref(made), c_size_t(size), *more))
    return made

def free(memory, call=cuda.cuMemFree_v2, *more):
    check(call(memory, *more))
"""
SCRIPT = (
    HELPERS
    + f"""
MB = {MB}

def load_weights():
    return allocate(40 * MB)

def activations(stream):
    def layer():
        return allocate(3 * MB, cuda.cuMemAllocAsync, stream)
    return [layer() for _ in range(4)]

def host_buffers():
    pinned = allocate(MB, cuda.cuMemAllocHost_v2)
    managed = allocate(2 * MB, cuda.cuMemAllocManaged, 1)
    return pinned, managed

def own_pool(stream):
    pool = make(cuda.cuMemPoolCreate, create_string_buffer(256))
    memory = allocate(5 * MB, cuda.cuMemAllocFromPoolAsync, pool, stream)
    free(memory, cuda.cuMemFreeAsync, stream)
    check(cuda.cuMemPoolTrimTo(pool, c_size_t(0)))
    check(cuda.cuMemPoolDestroy(pool))

context()
on = stream()
weights = load_weights()
pinned, managed = host_buffers()
for each in activations(on):
    free(each, cuda.cuMemFreeAsync, on)
own_pool(on)
synchronize()
free(managed)
free(pinned, cuda.cuMemFreeHost)
"""
)
FIELDS = ("operation", "bytes", "pool", "pool_size", "pool_used", "correlation", "device")


@pytest.fixture
def traced(record: Record, tmp_path: Path) -> Any:
    """Runs a script with the option, and with what the double says that it did."""

    def run(script: str, **more: str) -> tuple[Recorded, dict[str, list[dict[str, Any]]]]:
        recorded = record(script, FAKE_TRUTH=str(tmp_path / "truth"), **ON | more)
        found: dict[str, list[dict[str, Any]]] = {"memory": [], "pool": []}
        [truth] = tmp_path.glob("truth.*")
        for line in truth.read_text().splitlines():
            row = json.loads(line)
            found.setdefault(row["what"], []).append(row)
        return recorded, found

    return run


# "version:25" has the records of CUDA 12.6, which are shorter.
@pytest.mark.parametrize("faults", ["", "version:25", "shuffle,per_buffer:3"])
def test_what_the_driver_did_is_recorded_record_for_record(traced: Any, faults: str) -> None:
    recorded, truth = traced(SCRIPT, FAKE_CUPTI=faults)
    rows = np.sort(recorded.of["memory"], order="time")
    memory, pools = rows[rows["what"] == OF_MEMORY], rows[rows["what"] == OF_POOL]
    assert (len(truth["memory"]), len(truth["pool"])) == (15, 4)
    for what, found in (("memory", memory), ("pool", pools)):
        told = sorted(truth[what], key=lambda row: row["start"])
        assert [row["start"] for row in told] == found["time"].tolist()
        for name in FIELDS:
            assert [row[name] for row in told] == found[name].tolist(), name
    told = sorted(truth["memory"], key=lambda row: row["start"])
    for name in ("address", "kind", "context", "stream"):
        assert [row[name] for row in told] == memory[name].tolist(), name
    assert Counter(memory["kind"].tolist()) == {DEVICE: 11, PINNED: 2, MANAGED: 2}
    assert set(pools["stream"].tolist()) == set(pools["context"].tolist()) == {NONE}
    assert recorded.meta["memory"] == ["recorded"] and recorded.dropped() == {}
    counters = json.loads(recorded.meta["counters"][-1])
    assert counters["memory_records"] == 19 and counters["records_without_call"] == 0


def test_each_has_the_stack_of_its_call(traced: Any) -> None:
    recorded, _ = traced(SCRIPT)
    rows = np.sort(recorded.of["memory"], order="time")
    assert (rows["tid"] != 0).all()
    given = rows[(rows["what"] == OF_MEMORY) & (rows["operation"] == 1)]
    names = [recorded.top(row["python"]) for row in given]
    assert names == ["allocate"] * 8
    first = [frame for frame, _, _ in stack_of(recorded, rows[0])]
    assert first[-2:] == ["load_weights", "allocate"]
    pools = rows[rows["what"] == OF_POOL]
    callers = [[frame for frame, _, _ in stack_of(recorded, row)][1] for row in pools]
    assert callers == ["activations", *3 * ["own_pool"]]


def stack_of(recorded: Recorded, row: Any) -> list[tuple[str, str, int]]:
    from tests.support.writers.fdumprecords import stack

    return stack(recorded.of, int(row["python"]))


def test_nothing_of_it_is_recorded_unless_asked_for(record: Record) -> None:
    recorded = record(SCRIPT)
    assert not len(recorded.of["memory"]) and "memory" not in recorded.meta
    profile = load(recorded.path)
    assert profile.memory is None and "peak" not in [one.key for one in profile.metrics]


def test_all_else_is_recorded_as_without_it(
    record: Record,
    tmp_path: Path,
) -> None:
    calls = []
    for more in ({}, ON):
        calls.append(record(SCRIPT, **more).apis("call"))
        (tmp_path / "dumps").rename(tmp_path / f"dumps {more}")
    assert calls[0] == calls[1] and "cuMemPoolCreate" not in calls[0]


def test_stacks_do_not_depend_on_the_recording_of_calls(traced: Any) -> None:
    recorded, _ = traced(SCRIPT, FLAME_CALLS="0")
    rows = recorded.of["memory"]
    assert len(rows) == 19 and (rows["tid"] != 0).all() and (rows["python"] != 0).all()
    assert not len(recorded.of["call"])
    assert stacks(load(recorded.path), "alloc")[("<module>", "load_weights", "allocate")] == 40 * MB


def test_the_picture_is_that_of_the_gpus_own_memory(traced: Any) -> None:
    recorded, _ = traced(SCRIPT)
    profile = load(recorded.path)
    assert total(profile) == 52 * MB and warned(profile) == []
    by_caller: Counter[str] = Counter()
    for path, size in stacks(profile, "peak").items():
        by_caller.update({path[1]: size})
    assert by_caller == {"load_weights": 40 * MB, "activations": 12 * MB}
    assert total(profile, "live") == 40 * MB
    assert total(profile, "alloc") == 57 * MB and total(profile, "churn") == 17 * MB
    assert profile.memory is not None
    elsewhere = {one.kind: one.peak for one in profile.memory.elsewhere}
    assert elsewhere == {"pinned": MB, "managed": 2 * MB}
    tree = project(profile, select(metric="alloc", levels=("launch",)))
    names = {profile.frames[int(tree.frame[node])].name for node in range(1, len(tree.total))}
    assert names == {"cuMemAlloc_v2", "cuMemAllocAsync", "cuMemAllocFromPoolAsync"}


def test_what_pools_hold_is_reserved(traced: Any) -> None:
    recorded, _ = traced(SCRIPT)
    profile = load(recorded.path)
    assert profile.memory is not None
    [curve] = profile.memory.curves
    assert curve.reserved is not None and (curve.reserved >= curve.live).all()
    # The weights alone; a pool for the activations; one more, until it is trimmed.
    weights, pool = 40 * MB, STEP
    told = [int(size) for size in curve.reserved[np.append(True, np.diff(curve.reserved) != 0)]]
    assert told == [0, weights, weights + pool, weights + 2 * pool, weights + pool]


def test_what_no_header_has_is_recorded_and_told(traced: Any) -> None:
    recorded, truth = traced(SCRIPT, FAKE_CUPTI="odd_memory:3")
    rows = recorded.of["memory"]
    assert len(rows) == len(truth["memory"]) + len(truth["pool"])
    assert (rows["operation"] == 9).sum() == 3 and (rows["kind"] == 99).sum() == 3
    profile = load(recorded.path)
    assert any("3 events make no sense" in line for line in warned(profile))
    assert profile.memory is not None
    assert "" in {one.kind for one in profile.memory.elsewhere}


def test_where_cupti_does_not_report_it_a_note_says_so(record: Record) -> None:
    recorded = record(SCRIPT, FAKE_CUPTI="no_memory", **ON)
    assert not len(recorded.of["memory"])
    assert recorded.meta["memory"] == ["CUPTI does not report it"]
    [line] = [line for line in load(recorded.path).warnings if "memory" in line]
    assert line.startswith("CUPTI does not report memory that is allocated and freed here: ")


def test_records_that_cupti_drops_are_counted(record: Record) -> None:
    recorded = record(SCRIPT, FAKE_CUPTI="drop:4", **ON)
    assert recorded.dropped() == {(CUPTI_DROPPED, 0): 4}
    assert len(recorded.of["memory"]) == 15


def test_records_of_another_clock_are_dropped_and_counted(record: Record) -> None:
    recorded = record(SCRIPT, FAKE_CUPTI="wild_times:5", **ON)
    wild = 8
    assert recorded.dropped() == {(wild, MEMORY): 3}
    assert len(recorded.of["memory"]) == 16


def test_memory_of_before_the_recording_is_known_by_its_end(
    start: Start,  # noqa: F811
    library: Path,
) -> None:
    program = start(FAKE_CUPTI="unsized", **ON)
    program.run("import ctypes\n" + LATE)
    program.run("old = [allocate(100), allocate(200)]")
    assert attach(program, library) == 1
    with closing(program.control()):
        program.run("new = allocate(300); release(old[0]); release(new)")
    assert program.end() == 0
    profile = load(program.dump())
    assert total(profile, "alloc") == 300 and total(profile) == 300
    assert warned(profile) == [
        "memory: 1 allocation was made before the recording and given back, nothing tells how large"
    ]
    assert profile.memory is not None
    [curve] = profile.memory.curves
    assert curve.reserved is None


LATE = """
def allocate(size):
    made = ctypes.c_void_p()
    call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(size))
    return made

def release(memory):
    call("cuMemFree_v2", memory)
"""


def test_the_live_view_shows_all_else(record: Record) -> None:
    recorded = record(SCRIPT + "\ncheck(launch(kernel('one', 1000)))\nsynchronize()", **ON)
    feed = RecordingFeed(LoadOptions(), Clock())
    feed.add(recorded.path)
    feed.update(60)
    live = feed.snapshot(ALL).profile
    assert_same(live, load(recorded.path))
    assert not [line for line in live.warnings if "memory" in line]
    feed.close()


def test_memory_of_several_gpus_is_told_apart(record: Record) -> None:
    recorded = record(
        HELPERS
        + """
first = context(0)
one = allocate(100)
second = context(1)
other = allocate(70)
check(cuda.cuCtxSetCurrent(first))
free(other)  # whichever context is current
""",
        FAKE_DEVICES="2",
        **ON,
    )
    profile: Profile = load(recorded.path)
    assert profile.memory is not None
    peaks = {one.device: (one.peak, one.live_end) for one in profile.memory.devices}
    assert peaks == {0: (100, 100), 1: (70, 0)}
    assert warned(profile) == []
