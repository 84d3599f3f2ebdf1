"""Who allocated memory in traces of GPU work, against plain sums over their events."""

from __future__ import annotations

import gc
import importlib.util
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from flame.core.loading.file import load_file
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, silent
from flame.core.projection.filters import Time
from flame.core.projection.project import project
from flame.core.projection.selection import select
from tests.conftest import TRACES
from tests.support.tiers import deep_except, examples
from tests.support.writers.kinetofile import KinetoFile

DEFINITIONS = TRACES.parent / "prototypes" / "memory" / "memory_ref.py"
BEFORE = "[allocated before recording]"


def load(path: Path) -> Profile:
    return load_file(path, LoadOptions(), silent)


def opened(file: KinetoFile, folder: Path, name: str = "a") -> Profile:
    return load(file.write(folder / f"{name}.pt.trace.json"))


def total(profile: Profile, metric: str = "peak", **chosen: Any) -> int:
    return int(project(profile, select(metric=metric, **chosen)).total[0])


def stacks(profile: Profile, metric: str = "alloc", **chosen: Any) -> dict[tuple[str, ...], int]:
    """The bytes of each stack, by the names of its frames."""
    tree = project(profile, select(metric=metric, **chosen))
    found: dict[tuple[str, ...], int] = {}
    for node in range(1, len(tree.total)):
        if tree.own[node]:
            path, at = list[str](), node
            while at > 0:
                path.append(profile.frames[int(tree.frame[at])].name)
                at = int(tree.parent[at])
            found[tuple(reversed(path))] = int(tree.own[node])
    return found


def warned(profile: Profile) -> list[str]:
    return [one for one in profile.warnings if "memory" in one or "allocation" in one]


# Real traces


@pytest.mark.skipif(not DEFINITIONS.exists(), reason=f"no {DEFINITIONS}")
@pytest.mark.parametrize(
    "name",
    deep_except(
        ["kineto/h100_bert_small.json.gz"],
        ["kineto/h100_bert_small.json.gz", "kineto/h100_qwen_python.json.gz"],
    ),
)
def test_pytorch_traces_have_the_numbers_of_the_definitions(name: str) -> None:
    allocations, facts = reference().kineto(str(TRACES / name))
    [key] = [key for key in facts if key[1] == 1]
    profile = load(TRACES / name)
    check(profile, allocations, key)
    assert total(profile) == facts[key]["peak by counter"]
    assert facts[key]["breaks"] == 0 and warned(profile) == []
    assert stacks(profile, "peak")[(BEFORE,)] == facts[key]["base"]


@pytest.mark.skipif(not DEFINITIONS.exists(), reason=f"no {DEFINITIONS}")
def test_an_export_has_the_numbers_of_the_definitions_of_each_kind() -> None:
    path = TRACES / "nsys" / "ten_streams.sqlite"
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        allocations, _ = reference().nsys(str(path))
        gc.collect()  # the definitions close no database
    profile = load(path)
    [key] = {one.device for one in allocations if one.device[2] == 2}
    check(profile, allocations, key)
    assert profile.memory is not None
    [pinned] = profile.memory.elsewhere
    assert (pinned.kind, pinned.peak, total(profile)) == ("pinned", 160_000_000, 160_000_000)
    assert all("cudaMalloc" in path[0] for path in stacks(profile, levels=("launch",)))
    assert "main->process->init_data" in {path[-1] for path in stacks(profile)}


def check(profile: Profile, allocations: list[Any], key: object) -> None:
    of = reference()
    peak, at = of.fast_peak(allocations, key)
    assert total(profile) == peak == sum(one.bytes for one in of.live_at(allocations, key, at))
    end = sum(one.bytes for one in allocations if one.device == key and one.end is None)
    assert total(profile, "live") == end
    for metric, find_all in (("alloc", of.alloc), ("churn", of.churn)):
        assert total(profile, metric) == sum(one.bytes for one in find_all(allocations, key))


def reference() -> Any:
    spec = importlib.util.spec_from_file_location("memory_ref", DEFINITIONS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# PyTorch's events, drawn


class Event(NamedTuple):
    """One that the allocator wrote: ``change`` bytes, ``in_use`` after it, at a time and thread."""

    time: int
    tid: int
    address: int
    change: int
    in_use: int


@st.composite
def recorded(draw: st.DrawFn) -> tuple[list[Event], bool]:
    """Draw what an allocator writes from some moment on, and whether some of it is lost."""
    loses, losses = draw(st.booleans()), 0
    alive = dict[int, int]()
    time, in_use, events = 10_000, draw(st.integers(0, 5_000)), list[Event]()
    for frees, lost, tied in draw(st.lists(st.tuples(*3 * [st.booleans()]), max_size=30)):
        time += 0 if tied else 10
        tid = draw(st.integers(1, 2))
        if frees and alive:
            address = draw(st.sampled_from(sorted(alive)))
            change = -alive.pop(address)
        else:
            address = draw(st.sampled_from(sorted(set(range(1, 9)) - set(alive)) or [9]))
            change = draw(st.integers(1, 999)) if address not in alive else 0
            alive |= {address: change} if change else {}
        in_use += change
        if change and loses and lost:
            losses += 1
        elif change:
            events.append(Event(time, tid, address, change, in_use))
    return events[draw(st.integers(0, len(events))) :], losses > 0


class Sums(NamedTuple):
    """Say by plain sums what is alive after each event, and how many do not fit."""

    live: list[int]
    alloc: int
    churn: int
    breaks: int


def sums_by_hand(events: list[Event]) -> Sums:
    """Walk over the events: who frees what was not given out frees what was there before."""
    alive, old, churn, breaks = dict[int, int](), 0, 0, 0
    freed_twice = set[int]()
    for at, one in enumerate(events):
        breaks += at > 0 and events[at - 1].in_use + one.change != one.in_use
        if one.change > 0:
            churn += alive.get(one.address, 0)
            alive[one.address] = one.change
            freed_twice.add(one.address)
        elif one.address in alive:
            churn += alive.pop(one.address)
        elif one.address not in freed_twice:
            old -= one.change
            freed_twice.add(one.address)
    base = events[0].in_use - events[0].change if events else 0
    return Sums(list(lives(events, max(base, old))), sum(alloc_sizes(events)), churn, breaks)


def alloc_sizes(events: list[Event]) -> Iterator[int]:
    return (one.change for one in events if one.change > 0)


def lives(events: list[Event], before: int) -> Iterator[int]:
    """What lives before the first event, and after each."""
    alive, seen, live = dict[int, int](), set[int](), before
    yield live
    for one in events:
        if one.change > 0:
            live += one.change - alive.get(one.address, 0)
            alive[one.address] = one.change
        elif one.address in alive:
            live -= alive.pop(one.address)
        elif one.address not in seen:
            live += one.change
        seen.add(one.address)
        yield live


@examples(1.5)
@given(recorded())
def test_what_lives_is_what_plain_sums_say(drawn: tuple[list[Event], bool]) -> None:
    events, loses = drawn
    file = KinetoFile()
    file.op("aten::op", 9_000, 20_000)
    for order, one in enumerate(events):
        file.memory(one.time, one.change, one.address, one.in_use, order=order, tid=one.tid)
    file.events[1:] = reversed(file.events[1:])  # order is by time and number, not by place
    with TemporaryDirectory() as folder:
        profile = opened(file, Path(folder))
    if not events:
        assert profile.memory is None
        return
    expected = sums_by_hand(events)
    assert profile.memory is not None
    [device] = profile.memory.devices
    assert (device.peak, device.live_end) == (max(expected.live), expected.live[-1])
    assert device.peak_position == expected.live.index(max(expected.live)) - 1
    assert total(profile) == device.peak and total(profile, "live") == device.live_end
    assert total(profile, "alloc") == expected.alloc
    assert any("do not fit" in one or "does not fit" in one for one in warned(profile)) == bool(
        expected.breaks
    )
    if not loses:
        assert not expected.breaks
        assert device.peak == max(
            [events[0].in_use - events[0].change, *(e.in_use for e in events)]
        )
        assert total(profile, "churn") == expected.churn


def three_steps() -> KinetoFile:
    """A model that fills 100 bytes in an operator, and 40 in another thread's."""
    file = KinetoFile()
    file.python("model.py(1): forward", 0, 100, call=1, caller=None)
    file.op("aten::empty", 10, 20)
    file.op("AddBackward0", 40, 60, tid=2)
    file.launch(1, (70, 75), (80, 90))
    file.memory(15, 100, 0x1000, 1_100)
    file.memory(50, 40, 0x2000, 1_140, order=1, tid=2)
    file.memory(95, -100, 0x1000, 1_040, order=2, tid=2)
    return file


def test_an_allocation_has_what_was_open_on_its_thread(tmp_path: Path) -> None:
    profile = opened(three_steps(), tmp_path)
    assert stacks(profile, "peak") == {
        (BEFORE,): 1_000,
        ("forward", "aten::empty"): 100,
        ("AddBackward0",): 40,
    }
    assert stacks(profile, "churn") == {("forward", "aten::empty"): 100}
    assert profile.default_metric == "gpu" and total(profile, "gpu") == 10


def test_a_window_has_its_own_peak(tmp_path: Path) -> None:
    profile = opened(three_steps(), tmp_path)
    assert total(profile, where=(Time(None, 40),)) == 1_100
    assert total(profile, "live", where=(Time(None, 96),)) == 1_040


def test_memory_of_the_host_is_no_gpu_memory(tmp_path: Path) -> None:
    file = KinetoFile()
    file.launch(1, (70, 75), (80, 90))
    file.memory(10, 64, 1, 64, device=-1, kind=0)
    profile = opened(file, tmp_path)
    assert profile.memory is None and "peak" not in [one.key for one in profile.metrics]


def test_a_gpu_on_which_nothing_ran_has_its_memory(tmp_path: Path) -> None:
    file = three_steps()
    file.memory(30, 5_000, 1, 5_000, device=3)
    profile = opened(file, tmp_path)
    assert [device.id for device in profile.devices] == [0, 3]
    assert total(profile) == 5_000  # of the fullest
    assert total(profile, levels=("device",)) == 6_140


@pytest.mark.parametrize(
    ("change", "address"),
    [(1 << 70, 1), (None, 1), ("8", 1), (8, None), (8, -1), (8, 1 << 80), (1.5, 1), (8, [1])],
)
def test_events_that_make_no_sense_are_counted(
    change: object, address: object, tmp_path: Path
) -> None:
    file = three_steps()
    file.memory(97, change, address, 1_040)
    profile = opened(file, tmp_path)
    assert warned(profile) == ["memory: 1 event makes no sense: left out"]
    assert total(profile) == 1_140


def test_sizes_beyond_64_bits_are_refused_with_a_word(tmp_path: Path) -> None:
    file = three_steps()
    for number in range(3):
        file.memory(97, 1 << 61, number, 1 << 61)
    profile = opened(file, tmp_path)
    assert profile.memory is None
    assert warned(profile) == ["memory: sizes add up to more than 64 bits hold, and are left out"]


def test_events_of_2021_name_no_address(tmp_path: Path) -> None:
    file = KinetoFile()
    file.top["profile_memory"] = 1
    file.launch(1, (70, 75), (80, 90))
    args = {"Device Type": 1, "Device Id": 0, "Bytes": 4}
    file.event(ph="i", s="t", name="[memory]", pid=100, tid=1, ts=0.01, args=args)
    profile = opened(file, tmp_path)
    assert (profile.memory, warned(profile)) == (None, [])


def test_a_trace_that_lost_its_events_says_so(tmp_path: Path) -> None:
    file = KinetoFile()
    file.top["profile_memory"] = 1
    file.launch(1, (70, 75), (80, 90))
    [warning] = warned(opened(file, tmp_path))
    assert "no events of memory" in warning
