"""CpuSamples are counted for every window as a plain loop over all of them counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.attach.pyspy import run as pyspy_run
from flame.attach.pyspy.run import PySpyRun
from flame.attach.pyspy.samples import CpuSamples
from flame.core.attribution.resolved import resolve_stacks
from flame.core.errors import InputError
from flame.core.live.window import ALL, LAST_10, LAST_60, SECOND, SINCE_MARK, LiveWindow
from flame.core.model.meta import Meta
from flame.core.model.profile import Profile
from tests.attach.pyspy.speedscope_runs import Sample, speedscope
from tests.support.profiles.project_tree import project_tree

FRAMES = st.sampled_from([("main", 1), ("main", 2), ("forward", 5), ("loss", 5)])
SAMPLES = st.builds(
    Sample,
    st.sampled_from([1, 2]),
    st.sampled_from([7, 8]),
    st.lists(FRAMES, max_size=4).map(tuple),
)


class Part(NamedTuple):
    """A run of py-spy, ns; ``mark``: whether the mark is set when it has ended."""

    begin: int
    end: int
    samples: list[Sample]
    mark: bool


@st.composite
def recordings(draw: st.DrawFn) -> list[Part]:
    """Runs of up to 30 s, one after the other."""
    parts, now = [], 0
    for length in draw(st.lists(st.integers(1, 30 * SECOND), max_size=12)):
        samples = draw(st.lists(SAMPLES, max_size=6))
        parts.append(Part(now, now + length, samples, draw(st.booleans())))
        now += length
    return parts


def seen(profile: Profile) -> Counter[tuple[int, int, tuple[tuple[str, int], ...]]]:
    """What `Sample` counts, of a profile."""
    table = profile.activities
    found: Counter[tuple[int, int, tuple[tuple[str, int], ...]]] = Counter()
    values = table.measures["samples"].tolist()
    for thread, stack, value in zip(table.thread, table.stack, values, strict=True):
        whose = profile.threads[thread]
        frames = [profile.frames[one] for one in table.stacks.path(stack)]
        path = tuple((one.name, one.line) for one in frames)
        found[profile.processes[whose.process].pid, whose.tid, path] += value
    return found


@given(recordings(), st.sampled_from([ALL, LAST_10, LAST_60, SINCE_MARK]))
def test_windows_hold_what_a_plain_count_finds(parts: list[Part], window: LiveWindow) -> None:
    samples, mark = CpuSamples(), 0
    for part in parts:
        samples.add(speedscope(part.samples), part.begin, part.end)
        if part.mark:
            mark = part.end
            samples.mark(mark)
    now = parts[-1].end if parts else 0
    expected: Counter[tuple[int, int, tuple[tuple[str, int], ...]]] = Counter()
    for part in parts:
        middle = (part.begin + part.end) // 2
        if (
            part.begin >= mark
            if window.marked
            else not window.length or middle >= now - window.length
        ):
            expected.update(part.samples)
    profile = resolve_stacks(samples.stacks(window, now, Meta(), []))
    assert seen(profile) == expected
    assert project_tree(profile, "stack").total[0] == sum(expected.values())


def test_processes_and_threads_are_told_apart_and_named() -> None:
    samples = CpuSamples()
    stack = (("main", 1),)
    samples.add(speedscope([Sample(1, 7, stack), Sample(2, 7, stack)]), 0, 1)
    profile = resolve_stacks(samples.stacks(ALL, 1, Meta(), []))
    assert [(one.pid, one.name) for one in profile.processes] == [
        (1, "python work.py"),
        (2, "python work.py"),
    ]
    assert [(one.process, one.tid, one.name) for one in profile.threads] == [
        (0, 7, "main;\n"),
        (1, 7, "main;\n"),
    ]


def test_of_nested_processes_the_innermost_counts() -> None:
    data = speedscope([Sample(5, 7, ())]).replace(
        b'process 5:\\"python work.py\\"', b'process 5:\\"/usr/bin/python -c x = 5\\ny\\"'
    )
    data = data.replace(b'{"frames": [', b'{"frames": [' + b'{"name": "process 1:\\"sh\\""}, ')
    data = data.replace(b"[[0, 1]]", b"[[0, 1, 2]]")
    samples = CpuSamples()
    samples.add(data, 0, 1)
    profile = resolve_stacks(samples.stacks(ALL, 1, Meta(), []))
    assert [(one.pid, one.name) for one in profile.processes] == [(5, "python -c x = 5")]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        speedscope([Sample(1, 7, (("f", 1),))])[:-20],
        speedscope([Sample(1, 7, (("f", 1),))]).replace(b"[[0, 1, 2]]", b"[[0, 1, 3]]"),
        speedscope([Sample(1, 7, (("f", 1),))]).replace(b"[[0, 1, 2]]", b"[[0, 1, -1]]"),
        speedscope([Sample(1, 7, (("f", 1),))]).replace(b"[[0, 1, 2]]", b'[["a"]]'),
    ],
)
def test_damage_is_said_and_counts_nothing(data: bytes) -> None:
    samples = CpuSamples()
    with pytest.raises(InputError):
        samples.add(data, 0, 1)
    assert not seen(resolve_stacks(samples.stacks(ALL, 1, Meta(), [])))


@pytest.mark.deep
def test_memory_does_not_grow_with_time() -> None:
    samples = CpuSamples()
    for second in range(1000):
        data = speedscope([Sample(1, 7, (("f", 1),))])
        samples.add(data, second * SECOND, (second + 1) * SECOND)
    assert len(samples._segments) <= 61
    assert seen(resolve_stacks(samples.stacks(ALL, 1000 * SECOND, Meta(), []))).total() == 1000


def test_more_than_a_run_can_sensibly_bring_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = PySpyRun("/bin/true", 1, tmp_path, 1)
    try:
        (tmp_path / "1.json").write_bytes(b"x" * 100)
        assert run.take() == b"x" * 100
        monkeypatch.setattr(pyspy_run, "_LARGEST", 99)
        assert run.take() == b""
    finally:
        run.kill()
