"""Dumps read by flame say what the plain reading of their records says."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.model.frames import Frame, Kind
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from tests.support.oracles.naive_fdump import NONE, Dump, Row
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import examples
from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.fdumpscripts import Step, recorded, scripts

BY_TIME = LoadOptions(nvtx_start_end=True)


def rows_of(profile: Profile) -> list[Row]:
    """The activities of ``profile`` as the plain reader spells them."""
    table, frames = profile.activities, profile.frames
    return [
        Row(
            Kind(int(table.kind[row])).title,
            frames[table.frame[row]].name,
            int(table.start[row]),
            int(table.duration[row]),
            profile.threads[table.thread[row]].tid if table.thread[row] >= 0 else 0,
            frames[table.launch[row]].name,
            tuple(
                (frame.name, frame.file, frame.line, bool(frame.get("captured")))
                for frame in path(profile, int(table.python[row]))
            ),
            tuple(
                (frame.name, bool(frame.get("captured")))
                for frame in path(profile, int(table.nvtx[row]))
            ),
            profile.devices[table.device[row]].id if table.device[row] >= 0 else NONE,
            int(table.stream[row]),
        )
        for row in range(len(table))
    ]


def path(profile: Profile, stack: int) -> list[Frame]:
    return [profile.frames[frame] for frame in profile.activities.stacks.path(stack)]


@contextmanager
def written(script: list[Step], rows: int | None = None) -> Iterator[Path]:
    """The dump of a program, in chunks of ``rows`` records."""
    with tempfile.TemporaryDirectory() as folder:
        yield recorded(script, DumpFile(rows=rows)).write(Path(folder) / "x.fdump")


@examples(0.8)
@given(scripts, st.sampled_from([None, 1, 3]))
def test_activities_are_those_of_the_plain_reading(script: list[Step], rows: int | None) -> None:
    with written(script, rows) as dump:
        profile, expected = load(dump), Dump(dump).rows()
    assert sorted(rows_of(profile)) == sorted(expected)
    total = sum(row.duration for row in expected)
    assert profile.gpu_time == total
    if expected:
        tree = project_tree(profile)
        assert int(tree.total[0]) == total == int(tree.own.sum())


@examples(0.8)
@given(scripts)
def test_nesting_by_time_gives_the_recorded_paths(script: list[Step]) -> None:
    with written(script) as dump:
        as_recorded, by_time = load(dump), load(dump, BY_TIME)
        expected = Dump(dump, by_time=True).rows()
    assert rows_of(as_recorded) == rows_of(by_time)
    assert sorted(rows_of(by_time)) == sorted(expected)


def test_coverage_counts_what_has_frames(tmp_path: Path) -> None:
    file = DumpFile()
    python, nvtx = file.python(("f", "f.py", 1)), file.nvtx("r")
    file.kernel("a", 0, 30, 0, python=python, nvtx=nvtx, tid=100)
    file.kernel("b", 30, 40, 0)
    profile = load(file.write(tmp_path / "x.fdump"))
    assert {key: share.ns for key, share in profile.coverage.items()} == {
        "launch": 0,
        "nvtx": 30,
        "python": 30,
        "native": 0,
    }
    assert np.flatnonzero(profile.activities.launched).size == 0
