"""The forms in which snapshots have been written, and what makes no sense in them."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flame
from flame.core.errors import InputError, NoMatchError
from flame.core.model.profile import Profile
from flame.core.projection.filters import Filter, Steps, Time
from flame.core.projection.project import project
from flame.core.projection.selection import select
from tests.support.writers.snapshotfile import START_US, STEP_US, SnapshotFile

FIRST_US = START_US + STEP_US
"""The time of the first event, at which the clock of a profile is 0."""

METRICS = ("peak", "live", "alloc", "churn", "held")


@pytest.fixture
def file() -> SnapshotFile:
    file = SnapshotFile(2)
    weights = file.alloc(1_000, ("main", "init"))
    file.alloc(2_000, ("main", "forward"), device=1)
    file.free(file.alloc(500, ("main", "forward")))
    file.alloc(700, ("main", "forward"))
    assert weights == 0
    return file


def load(path: Path, data: bytes) -> Profile:
    path.write_bytes(data)
    return flame.load(path).profile


def peak_of(profile: Profile, **how: Any) -> dict[tuple[str, ...], int]:
    tree = project(profile, select(metric="peak", **how))
    return {tree.names(node): int(tree.own[node]) for node in range(len(tree)) if tree.own[node]}


def test_the_stack_at_the_peak_is_that_of_the_fullest_device(
    file: SnapshotFile, tmp_path: Path
) -> None:
    profile = flame.load(file.write(tmp_path / "x.pickle")).profile
    assert peak_of(profile) == {("main", "forward"): 2_000}
    assert peak_of(profile, levels="device,python") == {
        ("GPU 0", "main", "init"): 1_000,
        ("GPU 0", "main", "forward"): 700,
        ("GPU 1", "main", "forward"): 2_000,
    }


FORMS: dict[str, Callable[[Any], bytes]] = {
    "gzipped": lambda document: gzip.compress(pickle.dumps(document)),
    "JSON": lambda document: json.dumps(document).encode(),
    "gzipped JSON": lambda document: gzip.compress(json.dumps(document).encode()),
    "protocol 2": lambda document: pickle.dumps(document, 2),
    "without settings": lambda document: pickle.dumps(
        {key: document[key] for key in ("segments", "device_traces")}
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_tell_the_same(form: str, file: SnapshotFile, tmp_path: Path) -> None:
    expected = flame.load(file.write(tmp_path / "x.pickle")).profile
    found = load(tmp_path / "snapshot", FORMS[form](file.document()))
    for metric in METRICS:
        selection = select("device,python", metric=metric)
        totals = project(expected, selection).total, project(found, selection).total
        assert totals[0].tolist() == totals[1].tolist()
    assert (expected.memory and expected.memory.devices) == (found.memory and found.memory.devices)


def test_segments_alone_tell_what_lived_at_the_end(file: SnapshotFile, tmp_path: Path) -> None:
    profile = load(tmp_path / "x.pickle", pickle.dumps(file.segments()))
    assert peak_of(profile, levels="device,python") == {
        ("GPU 0", "main", "init"): 1_000,
        ("GPU 0", "main", "forward"): 700,
        ("GPU 1", "main", "forward"): 2_000,
    }
    assert any("no history was recorded" in one for one in profile.warnings)
    assert not profile.timed


def test_blocks_of_2022_lie_side_by_side_and_have_a_history(tmp_path: Path) -> None:
    frames = [{"name": "f", "filename": "a.py", "line": 1}]
    blocks = [
        {"size": 512, "state": "inactive"},
        {"size": 1_024, "state": "active_allocated", "history": [{"addr": 612, "frames": frames}]},
    ]
    segment = {"device": 0, "address": 100, "total_size": 1_536, "stream": 0, "blocks": blocks}
    freed = {"action": "free_requested", "addr": 612, "size": 1_024}
    document = {"segments": [segment], "device_traces": [[]]}
    assert peak_of(load(tmp_path / "a", pickle.dumps(document))) == {("f",): 1_024}
    # The block at 612 was given back and is there again: it was allocated since, unseen.
    document["device_traces"] = [[freed]]
    found = load(tmp_path / "b", pickle.dumps(document))
    assert sum(peak_of(found).values()) >= 1_024


def test_what_is_from_before_the_recording_has_a_frame_of_its_own(tmp_path: Path) -> None:
    file = SnapshotFile()
    file.alloc(1_000, ("main", "init"))
    file.alloc(700)
    data = pickle.dumps(file.document(first=2, with_frames=False))
    assert peak_of(load(tmp_path / "x", data)) == {
        ("[allocated before recording]",): 1_000,
        ("main",): 700,
    }


def test_allocations_without_python_frames_say_so(tmp_path: Path) -> None:
    native = {"name": "at::empty(long)", "filename": "??", "line": 0}
    python = {"name": "forward", "filename": "C:\\model.py", "line": 3}
    unwinder = {"name": "torch::unwind::unwind()", "filename": "??", "line": 0}
    stacks = [[unwinder, native], [unwinder, native, python, native], []]
    trace = [
        {"action": "alloc", "addr": at, "size": 10, "stream": 0, "frames": frames}
        for at, frames in enumerate(stacks, 1)
    ]
    document = {"segments": [], "device_traces": [trace]}
    profile = load(tmp_path / "x", pickle.dumps(document))
    assert peak_of(profile, levels="python,native") == {
        ("[no Python frames]", "at::empty(long)"): 10,
        ("forward", "at::empty(long)"): 10,
        ("[no stack recorded]",): 10,
    }


@pytest.mark.parametrize(
    "entry",
    [
        {"action": "alloc", "addr": -1, "size": 1},
        {"action": "alloc", "addr": 1, "size": 1 << 63},
        {"action": "alloc", "addr": 1, "size": 1.5},
        {"action": "alloc", "addr": True, "size": 1},
        {"action": "alloc", "addr": "1", "size": 1},
        {"action": "alloc", "addr": 1, "size": None},
        {"action": ["alloc"], "addr": 1, "size": 1},
        {"action": "quantum_leap", "addr": 1, "size": 1},
        "alloc",
        None,
    ],
)
def test_events_that_make_no_sense_are_left_out_and_counted(
    entry: object, file: SnapshotFile, tmp_path: Path
) -> None:
    expected = peak_of(flame.load(file.write(tmp_path / "x.pickle")).profile)
    document = file.document()
    document["device_traces"][1].append(entry)
    found = load(tmp_path / "y.pickle", pickle.dumps(document))
    assert peak_of(found) == expected
    assert any(one.startswith("1 events and blocks make no sense") for one in found.warnings)


def test_sums_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    trace = [
        {"action": "alloc", "addr": at, "size": (1 << 63) - 1, "stream": 0} for at in range(1, 4)
    ]
    document = {"segments": [], "device_traces": [trace]}
    with pytest.raises(InputError, match="64 bits"):
        load(tmp_path / "x", pickle.dumps(document))


def total_within(profile: Profile, metric: str, *filters: Filter) -> int:
    return int(project(profile, select(where=filters, metric=metric)).total[0])


def test_windows_cut_what_each_metric_measures(tmp_path: Path) -> None:
    """Allocated and given back in it; the most that lived in it; what lives at its end."""
    file = SnapshotFile()
    early = file.alloc(1_000)
    begin = (file.now_us - FIRST_US + 1) * 1_000
    file.free(file.alloc(400))
    file.alloc(50)
    file.free(early)
    end = (file.now_us - FIRST_US + 1) * 1_000
    file.alloc(10_000)
    profile = flame.load(file.write(tmp_path / "x")).profile
    window = Time(begin, end)
    sizes = {metric: total_within(profile, metric, window) for metric in METRICS}
    assert sizes["peak"] == 1_400
    assert (sizes["live"], sizes["alloc"], sizes["churn"]) == (50, 450, 400)
    assert 50 < sizes["held"] < 1_400
    assert total_within(profile, "peak", Time(None, begin)) == 1_000
    assert total_within(profile, "peak", Time(end, None)) == 10_050


def test_steps_that_are_not_there_leave_nothing(file: SnapshotFile, tmp_path: Path) -> None:
    profile = flame.load(file.write(tmp_path / "x")).profile
    with pytest.raises(NoMatchError, match="no steps"):
        project(profile, select(where=(Steps.of([3]),)))
