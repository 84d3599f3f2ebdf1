"""Memory in dumps: what was given out and taken back, by whom, and how large pools of it were."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from flame.core.loading.many import load, load_all
from flame.core.model.allocator.recorded import MemoryCurve
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.readers.fdump.layout import KINDS, TEXT
from tests.core.allocator.test_trace_memory import BEFORE, stacks, total, warned
from tests.support.tiers import examples
from tests.support.writers.fdumpfile import API, DumpFile, layouts

LOCAL = {"pool_type": 1}
OF_POOL = {"what": 1, **LOCAL}
CREATED, DESTROYED, TRIMMED = 1, 2, 3
ALLOC = 17


def a_dump(pid: int = 100) -> DumpFile:
    """A dump with a call that allocates from 10 to 30, and a kernel."""
    file = DumpFile(pid)
    file.name(API, ALLOC, "cuMemAlloc_v2")
    file.meta("cupti", "13.0.1")
    file.meta("calls", "recorded")
    file.meta("memory", "recorded")
    file.call(10, 30, api=ALLOC, python=file.python(("load", "m.py", 3)))
    file.launch(100, 110, 1, api=307)
    file.kernel("k", 120, 130, 1, tid=100)
    return file


def opened(file: DumpFile, folder: Path) -> Profile:
    return load(file.write(folder / f"{file.pid}.fdump"))


def only_curve(profile: Profile) -> MemoryCurve:
    assert profile.memory is not None
    [curve] = profile.memory.curves
    return curve


def test_an_allocation_has_the_stack_that_was_recorded_with_it(tmp_path: Path) -> None:
    file = a_dump()
    place, step = file.python(("load", "m.py", 3)), file.nvtx("step")
    file.memory(20, 0x1000, 700, python=place, nvtx=step)
    file.memory(40, 0x2000, 40, python=place)  # in no call that was recorded
    file.memory(50, 0x3000, 5, tid=0)  # of a call that was not seen
    file.memory(60, 0x1000, 700, True)
    profile = opened(file, tmp_path)
    assert stacks(profile, "alloc", levels=("python", "nvtx", "launch")) == {
        ("load", "step", "cuMemAlloc_v2"): 700,
        ("load",): 40,
        ("[no launch recorded]",): 5,
    }
    assert total(profile) == 745 and total(profile, "live") == 45
    assert total(profile, "churn") == 700
    assert warned(profile) == [
        "memory: 1 allocation has no API call that is known to have made them"
    ]


def test_ranges_nest_by_time_where_start_end_ranges_are_shown(tmp_path: Path) -> None:
    file = a_dump()
    file.range(["step"], 5, 50)
    file.range(["phase"], 15, 60, kind=1)
    file.memory(20, 0x1000, 7, nvtx=file.nvtx("step"))
    path = file.write(tmp_path / "1.fdump")
    for shown, names in ((False, ("step",)), (True, ("step", "phase"))):
        profile = load(path, LoadOptions(nvtx_start_end=shown))
        assert stacks(profile, "alloc", levels=("nvtx",)) == {names: 7}


def test_what_was_there_before_is_known_where_it_is_freed(tmp_path: Path) -> None:
    file = a_dump()
    file.memory(20, 0x1000, 700)
    file.memory(40, 0x2000, 50, True)
    file.memory(50, 0x3000, 0, True)  # of which CUPTI knows no size
    profile = opened(file, tmp_path)
    assert stacks(profile, "peak")[(BEFORE,)] == 50 and total(profile) == 750
    assert warned(profile) == [
        "memory: 1 allocation was made before the recording and given back, nothing tells how large"
    ]


def test_an_address_is_of_one_allocation_whatever_context_and_gpu(tmp_path: Path) -> None:
    file = a_dump()
    file.memory(20, 0x1000, 700, device=0, context=1)
    file.memory(40, 0x1000, 700, True, device=1, context=2)
    profile = opened(file, tmp_path)
    assert total(profile, "live") == 0 and warned(profile) == []


def test_several_processes_have_addresses_of_their_own(tmp_path: Path) -> None:
    for pid, size in ((100, 700), (101, 50)):
        file = a_dump(pid)
        file.memory(20, 0x1000, size)
        file.memory(40, 0x1000, size, True)
        file.write(tmp_path / f"{pid}.fdump")
    profile = load_all([tmp_path])
    assert total(profile, "alloc", levels=("device",)) == 750
    assert profile.memory is not None and len(profile.memory.devices) == 2


ODD: list[dict[str, int]] = [
    {"operation": 0},
    {"operation": 9},
    {"size": 1 << 60},
    {"size": (1 << 64) - 1},
    {"time": 1 << 62},
    {"what": 1},
    {"what": 7, "operation": 5},
    {"pool_size": 1 << 63},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_what_makes_no_sense_is_counted(odd: dict[str, int], tmp_path: Path) -> None:
    file = a_dump()
    file.memory(20, 0x1000, 700)
    file.memory(**{"time": 40, "address": 0x2000, "size": 30} | odd)
    profile = opened(file, tmp_path)
    assert total(profile) == 700
    assert warned(profile) == ["memory: 1 event makes no sense: left out"]


@pytest.mark.parametrize("fields", [{"kind": 99}, {"kind": 0}, {"device": (1 << 32) - 1}], ids=str)
def test_memory_of_unknown_kind_or_gpu_is_told_apart(
    fields: dict[str, int], tmp_path: Path
) -> None:
    file = a_dump()
    file.memory(20, 0x1000, 700)
    file.memory(40, 0x2000, 30, **fields)
    profile = opened(file, tmp_path)
    assert total(profile) == 700 and profile.memory is not None
    assert [one.peak for one in profile.memory.elsewhere] == [30]


def test_numbers_at_the_edge_of_64_bits_are_no_reason_to_fail(tmp_path: Path) -> None:
    largest = (1 << 64) - 1
    file = a_dump()
    for at in range(2_000):
        sizes = {"pool_size": (1 << 53) - 1, "pool_used": (1 << 53) - 1, "pool": at + 1, **LOCAL}
        file.memory(20 + at, largest - at, (1 << 53) - 1, context=largest >> 32, **sizes)
    profile = opened(file, tmp_path)
    assert profile.memory is None
    assert warned(profile) == ["memory: sizes add up to more than 64 bits hold, and are left out"]


def test_a_dump_without_the_record_has_no_such_metrics(tmp_path: Path) -> None:
    known = {key: layout for key, layout in layouts().items() if key != "memory"}
    file = DumpFile(records=known)
    file.launch(100, 110, 1, api=307)
    file.kernel("k", 120, 130, 1, tid=100)
    assert opened(file, tmp_path).memory is None


def test_the_reader_knows_all_records_that_the_library_writes() -> None:
    assert {*layouts(), TEXT} == KINDS


# What is reserved


def test_a_pool_that_held_something_before_tells_too_little(tmp_path: Path) -> None:
    file = a_dump()
    file.memory(20, 0x1000, 700, pool=9, pool_size=4_096, pool_used=900, **LOCAL)
    assert only_curve(opened(file, tmp_path)).reserved is None


def test_memory_of_an_imported_pool_is_reserved_by_itself(tmp_path: Path) -> None:
    file = a_dump()
    file.memory(20, 0x1000, 700, pool=9, pool_type=2)
    file.memory(40, 0x2000, 100, pool=8, pool_size=256, pool_used=100, **LOCAL)
    curve = only_curve(opened(file, tmp_path))
    assert curve.reserved is not None and curve.reserved.tolist() == [0, 700, 956]


def test_a_pool_of_pinned_memory_is_none_of_the_gpu(tmp_path: Path) -> None:
    file = a_dump()
    file.memory(20, 0x1000, 700)
    file.record("memory", time=file.time(25), pool=9, pool_size=512, operation=TRIMMED, **OF_POOL)
    file.memory(30, 0x2000, 100, kind=2, pool=9, pool_size=256, pool_used=100, **LOCAL)
    assert only_curve(opened(file, tmp_path)).reserved is None


class Pool:
    """A pool as a driver has it."""

    def __init__(self) -> None:
        self.size = self.used = 0


@st.composite
def programs(draw: st.DrawFn) -> tuple[DumpFile, list[tuple[int, int, int]]]:
    """Draw a dump of a program with pools, and what lived and was reserved from each time on."""
    file, time, told = a_dump(), 20, list[tuple[int, int, int]]()
    pools: dict[int, Pool] = {}
    alive: dict[int, tuple[int, int]] = {}  # by address: size and pool, 0 for none
    for what in draw(st.lists(st.integers(0, 5), min_size=1, max_size=25)):
        time += 10
        pool, size = draw(st.integers(1, 2)), draw(st.integers(1, 99))
        if what == 0:
            alive[time] = size, 0
            file.memory(time, time, size)
        elif what in (1, 2):
            here = pools.setdefault(pool, Pool())
            here.used += size
            here.size = max(here.size, -(-here.used // 64) * 64)
            alive[time] = size, pool
            file.memory(time, time, size, **sizes(pool, here))
        elif what == 3 and alive:
            address = draw(st.sampled_from(sorted(alive)))
            size, owner = alive.pop(address)
            if owner:
                pools[owner].used -= size
            file.memory(time, address, size, True, **(sizes(owner, pools[owner]) if owner else {}))
        elif what == 4 and pool in pools:
            pools[pool].size = -(-pools[pool].used // 64) * 64
            told_of(file, time, TRIMMED, pool, pools[pool])
        elif what == 5 and pool in pools:
            told_of(file, time, DESTROYED, pool, pools[pool])
            pools[pool].size = pools[pool].used
        elif what == 5:
            pools[pool] = Pool()
            told_of(file, time, CREATED, pool, pools[pool])
        else:
            continue
        alone = sum(size for size, owner in alive.values() if not owner)
        live = sum(size for size, _ in alive.values())
        told.append((time, live, alone + sum(pool.size for pool in pools.values())))
    return file, told


def sizes(number: int, pool: Pool) -> dict[str, int]:
    return {"pool": number, "pool_size": pool.size, "pool_used": pool.used, **LOCAL}


def told_of(file: DumpFile, time: int, operation: int, number: int, pool: Pool) -> None:
    known: dict[str, Any] = sizes(number, pool) | OF_POOL
    file.record("memory", time=file.time(time), operation=operation, **known)


@examples(1.5)
@given(programs())
def test_what_is_reserved_is_what_plain_sums_say(
    drawn: tuple[DumpFile, list[tuple[int, int, int]]],
) -> None:
    file, told = drawn
    with TemporaryDirectory() as folder:
        profile = opened(file, Path(folder))
    if profile.memory is None:
        return
    curve = only_curve(profile)
    if curve.reserved is None:  # nothing is of a pool
        assert not any(reserved > live for _, live, reserved in told)
        return
    assert (np.diff(curve.time) >= 0).all() and (np.diff(curve.position) >= 0).all()
    first = int(curve.time[0])
    for time, live, reserved in told:
        at = int(np.searchsorted(curve.time, time, "right")) - 1
        if time >= first:
            assert (int(curve.live[at]), int(curve.reserved[at])) == (live, reserved)
