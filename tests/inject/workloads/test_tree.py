"""From a program to the tree: every stack with its ns, worked out twice."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.loading.many import load, load_all
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from tests.inject.workloads.naive_process import Process, Step, Work, idle_times, launch_times
from tests.support.profiles.project_tree import project_tree
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header

WORKLOAD = Path(__file__).with_name("tree_workload.py")
GPU_LEVELS = {"python": "python", "launch": "launch", "nvtx": "nvtx", "kernel": "leaf"}
ORDERS = (tuple(GPU_LEVELS), ("kernel", "nvtx"))
WEIGHTS: dict[str, Callable[[list[Work]], list[int]]] = {
    "gpu": lambda rows: [row.end - row.start for row in rows],
    "count": lambda rows: [1] * len(rows),
    "queue": lambda rows: [max(row.start - row.launched[1], 0) for row in rows],
    "launch": launch_times,
    "idle": idle_times,
}

Stack = tuple[Step, ...]


@pytest.fixture(scope="module")
def recording(
    tmp_path_factory: pytest.TempPathFactory, injected_env: Callable[..., dict[str, str]]
) -> list[Process]:
    """A program with four threads in three contexts on two devices, which forks and starts one."""
    folder = tmp_path_factory.mktemp("tree")
    env = injected_env(folder / "dumps", FAKE_CUPTI="shuffle", FLAME_FLUSH_MS="20")
    # Processes are of one recording by this alone, and their GPUs the same.
    env |= {"FLAME_CLOCK": "1700000000000000000"}
    env |= {"FAKE_TRUTH": str(folder / "truth"), "FAKE_DEVICES": "2"}
    command = [sys.executable, str(WORKLOAD), str(folder / "log"), "1"]
    subprocess.run(command, env=env, check=True, timeout=2 * PATIENCE)
    dumps = sorted((folder / "dumps").glob("*.fdump"), key=lambda one: one.stem.split("-")[1])
    assert len(dumps) == 4
    return [
        Process(int(dump.name.split("-")[0]), folder / "log", folder / "truth", dump)
        for dump in dumps
    ]


@pytest.fixture(scope="module")
def launching(recording: list[Process]) -> list[Process]:
    """The processes that used CUDA: the others were forked from these."""
    found = [one for one in recording if one.calls]
    assert len(found) == 2
    return found


def test_every_activity_is_where_the_program_was(launching: list[Process]) -> None:
    for process in launching:
        begin = int(header(process.dump)["start_monotonic"])
        assert activities(load(process.dump)) == Counter(
            (row.start - begin, row.end - begin, *row[2:5], *row[7:]) for row in process.work()
        )


@pytest.mark.deep
def test_every_stack_has_its_value_and_count_to_the_nanosecond(launching: list[Process]) -> None:
    for process in launching:
        profile, rows = load(process.dump), process.work()
        for metric, weigh in WEIGHTS.items():
            weights = weigh(rows)
            for levels in ORDERS:
                assert tree(profile, levels, metric) == stacks(rows, weights, levels)


@pytest.mark.deep
def test_a_recording_is_the_sum_of_its_processes(
    recording: list[Process], launching: list[Process]
) -> None:
    """Its processes use the same GPUs, so one is idle only while none of them keeps it busy."""
    profile = load_all([recording[0].dump.parent])
    each = [process.work() for process in launching]
    rows = [row for those in each for row in those]
    for metric, weigh in WEIGHTS.items():
        whole = weigh is idle_times
        weights = weigh(rows) if whole else [one for those in each for one in weigh(those)]
        assert tree(profile, ORDERS[0], metric) == stacks(rows, weights, ORDERS[0])


@pytest.mark.deep
def test_host_time_is_that_of_what_is_open(recording: list[Process]) -> None:
    for process in recording:
        profile = load(process.dump)
        found = tree(profile, ("thread", "nvtx", "launch"), "host")
        wanted: Counter[Stack] = Counter()
        for path, ns in process.host().items():
            wanted[without_domains(path)] += ns
        assert {by_tid(path): ns for path, (ns, _) in found.items() if ns} == +wanted


def activities(profile: Profile) -> Counter[tuple[object, ...]]:
    """The rows of the table, spelled out."""
    table = profile.activities
    return Counter(
        (
            int(table.start[at]),
            int(table.start[at] + table.duration[at]),
            profile.threads[table.thread[at]].tid,
            profile.devices[table.device[at]].id,
            int(table.stream[at]),
            steps(profile, table.stacks.path(int(table.python[at]))),
            steps(profile, [int(table.launch[at])]),
            steps(profile, table.stacks.path(int(table.nvtx[at]))),
            steps(profile, [int(table.frame[at])]),
        )
        for at in range(len(table))
    )


def steps(profile: Profile, frames: list[int]) -> Stack:
    return tuple(step(profile, frame) for frame in frames)


def step(profile: Profile, number: int) -> Step:
    frame = profile.frames[number]
    place = frame.get("domain") if frame.kind == Kind.NVTX else frame.file
    return frame.kind.title, frame.name, place, frame.line, bool(frame.get("captured"))


def stacks(rows: list[Work], weights: list[int], levels: tuple[str, ...]) -> dict[Stack, list[int]]:
    """Value and count of every stack."""
    found: dict[Stack, list[int]] = defaultdict(lambda: [0, 0])
    for row, weight in zip(rows, weights, strict=True):
        path = sum((getattr(row, GPU_LEVELS[level]) for level in levels), ())
        value = found[without_domains(path)]
        value[:] = value[0] + weight, value[1] + 1
    return dict(found)


def by_tid(path: Stack) -> Stack:
    """With the number of the thread only, not what it is called."""
    thread = re.findall(r"[0-9]+", path[0][1])[-1]
    return (("thread", thread, "", 0, False), *path[1:])


def without_domains(path: Stack) -> Stack:
    """As trees show ranges: those of one name are one."""
    return tuple((*one[:2], "", *one[3:]) if one[0] == "nvtx" else one for one in path)


def tree(profile: Profile, levels: tuple[str, ...], metric: str) -> dict[Stack, list[int]]:
    """Value and count of every stack of flame's tree, whose leaves add up to the root."""
    made = project_tree(profile, levels=levels, metric=metric)
    assert made.own.sum() == made.total[0]
    found: dict[Stack, list[int]] = {}
    for node in range(1, len(made)):
        if made.own_count[node]:
            frames = [int(made.frame[at]) for at in made.path(node)[1:]]
            path = without_domains(steps(profile, frames))
            assert path not in found
            found[path] = [int(made.own[node]), int(made.own_count[node])]
    return found
