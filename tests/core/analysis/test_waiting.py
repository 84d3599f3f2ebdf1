"""Whose code GPUs waited for: nanosecond by nanosecond on random traces, in sum on real ones."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.model.activities import Activities, TableCut, ThreadPieces, has_times
from flame.core.model.calls import IdleCause, call_class
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter, Steps, Time
from flame.core.projection.selection import select
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.timeline.idle_parts import CAUSE_OF_CALLS
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.states import (
    NO_STATES,
    StateSpans,
    held_up_scripts,
    in_no_call,
    state_spans,
)
from tests.support.generated.strategies import Script, scripts
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import deep_except, examples
from tests.support.writers import kineto_scripts

random_traces = examples(1, [HealthCheck.too_slow])
KINETO_TRACES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))
QUICK = ("a100_llm_nvtx.sqlite", "h100_qwen_python.json.gz")


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where random traces are written, one after the other."""
    return tmp_path_factory.mktemp("random") / "trace"


class Told(NamedTuple):
    """What is said of a moment: names of frames, those of stacks in any order."""

    cause: str
    thread: int
    python: tuple[str, ...]
    native: tuple[str, ...]
    nvtx: tuple[str, ...]
    launch: str | None
    begin: int


def names(profile: Profile, ids: list[int]) -> tuple[str, ...]:
    return tuple(sorted(profile.frames[at].name for at in ids))


def by_table(profile: Profile, device: int) -> dict[int, Told]:
    """What the table says of every idle moment of a GPU."""
    table, found = profile.waiting, dict[int, Told]()
    assert table.cause is not None
    for row in np.flatnonzero(table.device == device).tolist():
        python, native, nvtx = (
            names(profile, table.stacks.path(int(column[row])))
            for column in (table.python, table.native, table.nvtx)
        )
        launch = int(table.launch[row])
        told = Told(
            profile.frames[int(table.cause[row])].name,
            int(table.thread[row]),
            python,
            native,
            nvtx,
            launch=profile.frames[launch].name if launch >= 0 else None,
            begin=int(table.start[row]),
        )
        for moment in range(told.begin, told.begin + int(table.duration[row])):
            assert moment not in found, "two rows have the same moment"
            found[moment] = told
    return found


# By plain loops


def expected(
    profile: Profile, device: int, moment: int, begin: int, spans: StateSpans
) -> Told | None:
    """What is to be said of ``moment``, in a piece that begins at ``begin``; None: it is busy."""
    table = profile.activities
    rows = np.flatnonzero((table.device == device) & has_times(table)).tolist()
    if any(table.start[row] <= moment < table.start[row] + table.duration[row] for row in rows):
        return None
    first = min(int(table.start[row]) for row in rows if table.start[row] > moment)
    following = [row for row in rows if table.start[row] == first]
    row = max(following, key=lambda at: (table.launched[at], table.launch_start[at], at))
    thread, cause = int(table.thread[row]), cause_of(profile, row, moment, spans)
    at_launch = cause in (IdleCause.IN_LAUNCH, IdleCause.AFTER_LAUNCH, IdleCause.UNKNOWN)
    python, native = recorded(profile, row)
    if not at_launch:
        earlier = before(profile, thread, begin)
        python, native = (shared(*pair) for pair in zip(earlier, (python, native), strict=True))
    time = int(table.launch_start[row]) if cause is IdleCause.AFTER_LAUNCH else moment
    own_nvtx = table.nvtx if table.own_nvtx is None else table.own_nvtx
    nvtx = table.stacks.path(int(own_nvtx[row]))
    if table.launched[row]:
        nvtx = open_at(profile.ranges, thread, time)
        if profile.functions is not None and thread in profile.functions.thread:
            python = open_at(profile.functions, thread, time)
    launch = int(table.launch[row]) if at_launch else None
    if cause in CAUSE_OF_CALLS.values():
        [launch] = open_at(profile.calls, thread, moment)
    return Told(
        cause.title,
        thread,
        names(profile, python),
        names(profile, native),
        names(profile, nvtx),
        launch=None if launch is None else profile.frames[launch].name,
        begin=begin,
    )


def cause_of(profile: Profile, row: int, moment: int, spans: StateSpans) -> IdleCause:
    table = profile.activities
    if not table.launched[row]:
        return IdleCause.UNKNOWN
    if moment >= max(table.launch_end[row], table.launch_start[row]):
        return IdleCause.AFTER_LAUNCH
    if moment >= table.launch_start[row]:
        return IdleCause.IN_LAUNCH
    calls = open_at(profile.calls, int(table.thread[row]), moment)
    if not calls:
        return in_no_call(profile, spans, int(table.thread[row]), moment)
    return CAUSE_OF_CALLS[call_class(profile.frames[calls[0]].name)]


def open_at(pieces: ThreadPieces | None, thread: int, moment: int) -> list[int]:
    """The frames of what is open on a thread, outermost first."""
    found = [
        (int(pieces.depth[at]), int(pieces.frame[at]))
        for at in range(len(pieces or ()))
        if pieces is not None
        and pieces.thread[at] == thread
        and pieces.start[at] <= moment < pieces.end[at]
    ]
    return [frame for _, frame in sorted(found)]


def recorded(profile: Profile, row: int) -> tuple[list[int], list[int]]:
    """The Python and native frames of a launch, until the API call or a captured frame."""
    table, calls = profile.activities, set[str]()
    calls = {frame.name for frame in profile.frames.frames if frame.kind == Kind.LAUNCH}
    python = table.python if table.own_python is None else table.own_python
    found: list[list[int]] = [[], []]
    for kept, column in zip(found, (python, table.native), strict=True):
        for at in table.stacks.path(int(column[row])):
            frame = profile.frames[at]
            is_call = frame.kind == Kind.NATIVE and frame.name in calls
            if is_call or frame.get("captured"):
                break
            kept.append(at)
    return found[0], found[1]


def before(profile: Profile, thread: int, begin: int) -> tuple[list[int], list[int]]:
    """The frames of the last launch of a thread that began at ``begin`` or before."""
    table = profile.activities
    rows = [
        row
        for row in range(len(table))
        if table.launched[row] and table.thread[row] == thread and table.launch_start[row] <= begin
    ]
    if not rows or thread < 0:
        return [], []
    return recorded(profile, max(rows, key=lambda row: (table.launch_start[row], row)))


def shared(one: list[int], other: list[int]) -> list[int]:
    kept = []
    for pair in zip(one, other, strict=False):
        if pair[0] != pair[1]:
            break
        kept.append(pair[0])
    return kept


def check_moments(profile: Profile, spans: StateSpans = NO_STATES) -> None:
    table = profile.activities
    for device in np.unique(table.device[has_times(table)]).tolist():
        rows = np.flatnonzero((table.device == device) & has_times(table))
        told = by_table(profile, device)
        first, last = table.start[rows].min(), (table.start[rows] + table.duration[rows]).max()
        for moment in range(int(first), int(last)):
            found = told.pop(moment, None)
            begin = found.begin if found else moment
            assert found == expected(profile, device, moment, begin, spans)
        assert not told, "moments outside of the window"


@random_traces
@given(scripts())
def test_every_idle_moment_is_charged_as_found_by_hand(trace_file: Path, script: Script) -> None:
    check_moments(load(script.write(trace_file), LoadOptions("raw")))


@random_traces
@given(held_up_scripts())
def test_so_is_every_moment_in_a_state(trace_file: Path, script: Script) -> None:
    path = script.write(trace_file)
    profile = load(path, LoadOptions("raw"))
    check_moments(profile, state_spans(path))
    assert sums(profile) == budgeted(profile)


@random_traces
@given(kineto_scripts.scripts())
def test_functions_with_times_are_those_of_the_moment(
    trace_file: Path, script: kineto_scripts.Script
) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    if len(profile.activities):
        check_moments(profile)


# In sum


def sums(profile: Profile, filters: tuple[Filter, ...] = ()) -> dict[int, dict[str, int]]:
    """The time in the tree by GPU and cause, of those that have any."""
    table: Activities = profile.within(TableCut(tuple(filters))).waiting
    assert table.cause is not None
    found: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for device, cause, ns in zip(table.device, table.cause, table.duration, strict=True):
        found[int(device)][profile.frames[int(cause)].name] += int(ns)
    return {device: dict(causes) for device, causes in found.items()}


def budgeted(profile: Profile, filters: tuple[Filter, ...] = ()) -> dict[int, dict[str, int]]:
    """The idle time of the budget by GPU and cause."""
    found = {
        each.gpu.device: {
            cause.title: int(each.idle[cause]) for cause in IdleCause if each.idle[cause]
        }
        for each in budgets(Scope(profile, select(where=filters)))
    }
    return {device: causes for device, causes in found.items() if causes}


@random_traces
@given(scripts(), st.integers(-3, 12), st.integers(1, 12))
def test_it_is_the_idle_time_of_the_budget_in_any_window(
    trace_file: Path, script: Script, begin: int, length: int
) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    low = begin + script.offset
    for filters in ((), (Time(low, low + length),), (Time(low, None),), (Time(None, low),)):
        assert sums(profile, filters) == budgeted(profile, filters)


@needs_traces
@pytest.mark.parametrize("name", deep_except(QUICK, [*NSYS_TRACES, *KINETO_TRACES]))
def test_it_is_the_idle_time_of_the_budget_of_real_traces(name: str) -> None:
    folder = "nsys" if name.endswith(".sqlite") else "kineto"
    profile = load(TRACES / folder / name)
    middle = (profile.begin + profile.end) // 2
    steps = np.unique(profile.iterations.number)[1:3].tolist()
    chosen: list[tuple[Filter, ...]] = [(), (Time(middle, None),)]
    for filters in [*chosen, (Steps.of(steps),)] if steps else chosen:
        assert sums(profile, filters) == budgeted(profile, filters)
        idle = sum(sum(causes.values()) for causes in budgeted(profile, filters).values())
        if idle:
            tree = project_tree(profile, metric="waiting", where=filters)
            assert int(tree.own.sum()) == int(tree.total[0]) == idle
