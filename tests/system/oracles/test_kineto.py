"""PyTorch profiler traces, real and random ones, against an independent reading, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.analysis.frame_totals import frame_totals
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.launches import LaunchConfig
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import where
from tests.conftest import TRACES, is_small
from tests.support.oracles.facts import differences
from tests.support.oracles.kineto import naive_kineto as naive
from tests.support.oracles.kineto.naive_kineto import Range, Work
from tests.support.oracles.kineto.naive_kineto_events import (
    Event,
    args_of,
    events_of,
    kind_of,
    shown,
    thread,
)
from tests.support.oracles.kineto.naive_kineto_host import host_times, in_steps, steps_of
from tests.support.oracles.kineto.naive_kineto_tree import (
    METRICS,
    found_stacks,
    grouped,
    passes,
    python_text,
    range_text,
    spelled,
)
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import deep_except, examples
from tests.support.writers.kineto_scripts import KERNELS, STEPS, Script, moments, scripts
from tests.support.writers.kinetofile import KinetoFile

KINETO_TRACES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))
SMALL = [name for name in KINETO_TRACES if is_small(TRACES / "kineto" / name)]
every_trace = pytest.mark.parametrize("name", deep_except(SMALL, KINETO_TRACES))
random_traces = examples(0.6, [HealthCheck.too_slow])


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where random traces are written, one after the other."""
    return tmp_path_factory.mktemp("random") / "trace.json"


@cache
def events(name: str) -> list[Event]:
    return events_of(TRACES / "kineto" / name)


@cache
def profile(name: str, forward: bool = False) -> Profile:
    return load(TRACES / "kineto" / name, LoadOptions(forward=forward))


@cache
def works(name: str, forward: bool = False) -> list[Work]:
    return naive.works(events(name), forward)


# Row by row


class Fact(NamedTuple):
    """What there is to say of one activity."""

    kind: str
    name: str
    start: int
    ns: int
    pid: str | None
    tid: str | None
    gpu: int
    stream: int
    launch: str
    call: tuple[int, int] | None
    python: tuple[str, ...]
    ranges: tuple[Range, ...]


def naive_facts(found: list[Work]) -> list[Fact]:
    return [
        Fact(
            kind_of(one.event),
            KERNELS.get(shown(one.event), [shown(one.event)] * 2)[1],
            one.event["start"],
            one.ns,
            one.pid,
            thread(one.call)[1] if one.call else None,
            one.device,
            one.stream,
            one.launch,
            (one.call["start"], one.call["end"]) if one.call else None,
            one.python,
            one.ranges,
        )
        for one in found
    ]


def flame_facts(found: Profile) -> list[Fact]:
    return [_fact(found, row) for row in range(len(found.activities))]


def _fact(found: Profile, row: int) -> Fact:
    table, frames = found.activities, found.frames
    process, thread = int(table.process[row]), int(table.thread[row])
    frame = frames[int(table.frame[row])]
    call = int(table.launch_start[row]), int(table.launch_end[row])
    return Fact(
        Kind(int(table.kind[row])).title,
        frame.get("demangled") or frame.name,
        int(table.start[row]),
        int(table.duration[row]),
        str(found.processes[process].pid) if process >= 0 else None,
        str(found.threads[thread].tid) if thread >= 0 else None,
        found.devices[int(table.device[row])].id,
        int(table.stream[row]),
        frames[int(table.launch[row])].name,
        call if table.launched[row] else None,
        tuple(python_text(frames[one]) for one in table.stacks.path(int(table.python[row]))),
        tuple(range_text(frames[one]) for one in table.stacks.path(int(table.nvtx[row]))),
    )


@every_trace
@pytest.mark.parametrize("forward", [False, True], ids=["as launched", "forward"])
def test_every_activity_is_attributed_as_by_a_naive_reading(name: str, forward: bool) -> None:
    found = flame_facts(profile(name, forward))
    assert differences(found, naive_facts(works(name, forward))) == []


@every_trace
def test_launch_queue_and_idle_times_are_those_of_a_naive_reading(name: str) -> None:
    """Which of equally early activities ends an idle time or bears a remainder is left open."""
    table = profile(name).activities
    columns = table.start, table.launch_share, metric_of("queue").values(table), table.idle
    found = zip(*(column.tolist() for column in columns), strict=True)
    weights = ((one.event["start"], one.share, one.queue, one.idle) for one in works(name))
    assert differences(found, weights) == []


@every_trace
def test_launch_geometry_and_bytes_are_those_of_each_event(name: str) -> None:
    known = profile(name).launches
    assert known is not None
    expected = []
    for one in works(name):
        args = args_of(one.event)
        grid, block = (tuple(args.get(key, ())) or None for key in ("grid", "block"))
        used = args.get("registers per thread"), args.get("shared memory")
        expected.append((grid, block, *used, args.get("bytes", -1)))
    configs = [known.configs[at] if at >= 0 else LaunchConfig() for at in known.config.tolist()]
    found = [(one.grid, one.block, one.registers, one.shared) for one in configs]
    sizes = [(size,) for size in known.bytes.tolist()]
    starts = profile(name).activities.start.tolist()
    rows = [(start, *one, *size) for start, one, size in zip(starts, found, sizes, strict=True)]
    naive_starts = (one.event["start"] for one in works(name))
    assert (
        differences(rows, [(at, *one) for at, one in zip(naive_starts, expected, strict=True)])
        == []
    )


@every_trace
def test_coverage_and_warnings_count_what_is_there(name: str) -> None:
    found, all_of_it = profile(name), works(name)
    known: dict[str, Callable[[Work], object]] = {
        "launch": lambda one: one.call,
        "nvtx": lambda one: one.ranges,
        "python": lambda one: one.python,
        "native": lambda one: False,
    }
    for key, has in known.items():
        assert found.coverage[key].ns == sum(one.ns for one in all_of_it if has(one))
    kinds = Counter(kind_of(one.event) for one in all_of_it)
    assert found.counts == {"kernel": 0, "memcpy": 0, "memset": 0, "graph": 0} | kinds
    alone = sum(one.call is None for one in all_of_it)
    said = [line for line in found.warnings if "no recorded launch" in line]
    assert [line.startswith(f"{alone:,} of {len(all_of_it):,} ") for line in said] == [True] * bool(
        alone
    )


@random_traces
@given(script=scripts(), forward=st.booleans(), raw=st.booleans())
def test_random_activities_are_attributed_as_by_a_naive_reading(
    script: Script, forward: bool, raw: bool, trace_file: Path
) -> None:
    path = script.write(trace_file)
    found = load(path, LoadOptions("raw" if raw else "clean", forward=forward))
    expected = naive.works(events_of(path), forward, raw)
    assert differences(flame_facts(found), naive_facts(expected)) == []
    assert flame_host(found) == naive_host(events_of(path), raw)


# Host


def flame_host(found: Profile) -> dict[object, int]:
    """Time by thread, and by what was open there."""
    table, frames, times = found.host, found.frames, Counter[tuple[int, int, int, int]]()
    ids = (table.thread, table.python, table.nvtx, table.launch, table.duration)
    for on, python, nvtx, launch, ns in zip(*(one.tolist() for one in ids), strict=True):
        times[on, python, nvtx, launch] += ns
    texts = Counter[object]()
    for (on, python, nvtx, launch), ns in times.items():
        one = found.threads[on]
        texts[
            str(found.processes[one.process].pid),
            str(one.tid),
            tuple(python_text(frames[frame]) for frame in table.stacks.path(python)),
            tuple(range_text(frames[frame]) for frame in table.stacks.path(nvtx)),
            frames[launch].name if launch >= 0 else None,
        ] += ns
    return {key: ns for key, ns in texts.items() if ns}


def naive_host(found: list[Event], raw: bool = False) -> dict[object, int]:
    pids, times = naive.processes_of(found), Counter[object]()
    for one in host_times(found, raw):
        pid, tid = one.on
        pid = pid if len(pids) > 1 else next(iter(pids))
        times[pid, tid, one.python, one.ranges, one.call] += one.ns
    return dict(times)


@every_trace
def test_host_time_is_that_of_a_naive_sweep(name: str) -> None:
    assert flame_host(profile(name)) == naive_host(events(name))


# Trees


@every_trace
@pytest.mark.parametrize("levels", ["python,launch,nvtx,kernel", "nvtx,shapes,kernel"])
def test_trees_are_the_activities_grouped_by_their_stacks(name: str, levels: str) -> None:
    tree = project_tree(profile(name), levels, metric="gpu", kernel_names="demangled")
    assert found_stacks(tree) == grouped(works(name), levels.split(","), "gpu", "demangled")


@every_trace
def test_python_functions_have_what_was_launched_below_them(name: str) -> None:
    """Recursion counted once."""
    expected, count = Counter[str](), Counter[str]()
    for one in works(name):
        for text in set(one.python):
            expected[text] += one.ns
            count[text] += 1
    tree = project_tree(profile(name), "python", metric="gpu")
    found = frame_totals(tree)
    texts = [python_text(tree.frames[frame]) for frame in found.frame.tolist()]
    assert dict(zip(texts, found.total.tolist(), strict=True)) == expected
    assert dict(zip(texts, found.count.tolist(), strict=True)) == count


@every_trace
def test_each_step_has_what_was_launched_in_it(name: str) -> None:
    steps = steps_of(events(name))
    known = profile(name).steps
    assert known is not None and known.number.tolist() == [step.number for step in steps]
    times = [(step.start, step.end) for step in steps]
    assert list(zip(known.start.tolist(), known.end.tolist(), strict=True)) == times
    for step in steps:
        inside = [one for one in works(name) if in_steps(one, [step], 0, step.number)]
        if not inside:
            continue
        tree = project_tree(profile(name), "kernel", where(step=str(step.number)), "gpu")
        assert (int(tree.total[0]), int(tree.count[0])) == (sum(w.ns for w in inside), len(inside))
    everything = [one for one in works(name) if in_steps(one, steps, 0, 10**9)]
    if everything:
        tree = project_tree(profile(name), "kernel", where(step="0-1000000000"), "gpu")
        assert int(tree.total[0]) == sum(one.ns for one in everything)


def test_a_launch_is_in_one_step(tmp_path: Path) -> None:
    """Also between adjoining ones; work without a launch is where it ran."""
    trace = KinetoFile()
    trace.annotation("ProfilerStep#1 of 2", 20, 40)
    trace.annotation("ProfilerStep#1", 0, 10)
    trace.annotation("ProfilerStep#2", 10, 20)
    trace.launch(1, (0, 1), (30, 31), "first")
    trace.launch(2, (9, 12), (31, 33), "last")
    trace.launch(3, (10, 11), (33, 37), "next")
    trace.launch(4, (20, 21), (37, 45), "after")
    trace.kernel("no launch", 10, 26)
    found = load(trace.write(tmp_path / "trace.json"))
    sums = {
        step: int(project_tree(found, "kernel", where(step=step)).total[0])
        for step in ("1", "2", "1-2")
    }
    assert sums == {"1": 1 + 2, "2": 4 + 16, "1-2": 1 + 2 + 4 + 16}


LEVELS = ("process", "thread", "device", "stream", "python", "launch", "nvtx", "shapes", "kernel")
some_levels = st.permutations(LEVELS).flatmap(
    lambda order: st.integers(1, len(order)).map(lambda size: tuple(order[:size]))
)
one_filter = st.one_of(
    st.tuples(st.just("time"), st.tuples(moments, st.integers(1, 10))),
    st.tuples(st.just("step"), st.tuples(st.integers(1, STEPS), st.integers(0, STEPS))),
    st.tuples(st.just("step"), st.tuples(st.integers(1, STEPS), st.integers(0, STEPS))),
    st.tuples(st.just("nvtx"), st.sampled_from(["aten::mm", "*e*", "ProfilerStep"])),
    st.tuples(st.just("device"), st.sampled_from([(0,), (1, 5)])),
    st.tuples(st.just("stream"), st.sampled_from([(7,), (20, 3)])),
    st.tuples(st.just("pid"), st.sampled_from([(100,), (101,), (0,)])),
    st.tuples(st.just("tid"), st.sampled_from([(1,), (2, 0)])),
    st.tuples(st.just("kernel"), st.sampled_from(["gemm", "float", "^soft"])),
    st.tuples(st.just("include"), st.sampled_from(["kernel", "memcpy,memset"])),
)


@random_traces
@given(
    script=scripts(),
    forward=st.booleans(),
    levels=some_levels,
    metric=st.sampled_from(sorted(METRICS)),
    names=st.sampled_from(["base", "demangled", "mangled"]),
    chosen=st.lists(one_filter, max_size=2).map(dict),
)
def test_random_trees_are_the_activities_grouped_by_their_stacks(
    script: Script,
    forward: bool,
    levels: tuple[str, ...],
    metric: str,
    names: str,
    chosen: dict[str, Any],
    trace_file: Path,
) -> None:
    path = script.write(trace_file)
    found = load(path, LoadOptions(forward=forward))
    for name in {"time", "step"} & set(chosen):
        first, length = chosen[name]
        chosen = {**chosen, name: (first, first + length)}
    recorded = events_of(path)
    steps = steps_of(recorded)
    kept = [one for one in naive.works(recorded, forward) if passes(one, chosen, steps)]
    expected = grouped(kept, levels, metric, names)
    try:
        tree = project_tree(found, levels, where(**spelled(chosen)), metric, kernel_names=names)
    except NoMatchError:
        assert not expected
    else:
        assert found_stacks(tree) == expected
