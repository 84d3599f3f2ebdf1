"""What a report says of a memory snapshot: whose the memory was, and what is wrong with it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flame.cli.main import main
from flame.core.errors import UsageError
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.filters import At, Devices
from flame.core.projection.project import project
from flame.core.projection.selection import Selection, select
from flame.core.report.gate.decide import decide, read_condition
from flame.core.report.report import Report
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table
from flame.tui.report.places import node_at
from flame.tui.session.session import project as shown_of
from tests.support.writers.snapshotfile import SnapshotFile

MIB = 1 << 20
SEGMENT = 2 * MIB


def scope_of(file: SnapshotFile, tmp_path: Path, *where: Any) -> Scope:
    return Scope(profile_of(file, tmp_path), select(where=where))


def profile_of(file: SnapshotFile, tmp_path: Path) -> Profile:
    return load(file.write(tmp_path / "snapshot.pickle"))


def table(section: Section, key: str) -> list[dict[str, Any]]:
    found: Table = next(one for one in section.tables if one.key == key)
    keys = [column.key for column in found.columns]
    return [dict(zip(keys, row, strict=True)) for row in found.rows]


def findings(scope: Scope) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in table(Report(scope).section("findings"), "rows")}


def two_gpus() -> SnapshotFile:
    """The second GPU holds more, at another moment; some is given back on the first."""
    file = SnapshotFile(2)
    file.alloc(300, ("main", "weights"))
    gone = file.alloc(500, ("main", "forward", "matmul"))
    file.alloc(2_000, ("main", "cache"), device=1)
    file.free(gone)
    file.alloc(1_000, ("main", "cache"), device=1)
    return file


def grow(steps: int) -> SnapshotFile:
    file = SnapshotFile()
    for _ in range(steps):
        file.alloc(MIB, ("main", "log"))
        file.free(file.alloc(MIB, ("main", "backward")))
        file.end_step()
    return file


def in_pieces(request: int, device_free: int = 0) -> SnapshotFile:
    """Three segments, in each of which a little is in use; then a request fails."""
    file = SnapshotFile()
    for _ in range(3):
        file.alloc(1_000, ("main", "small"))
    file.fail(request, device_free)
    return file


def test_of_each_gpu_what_it_held_at_its_own_peak(tmp_path: Path) -> None:
    section = Report(scope_of(two_gpus(), tmp_path)).section("memory")
    gpus = table(section, "gpus")
    assert [(one["gpu"], one["peak_bytes"], one["live_bytes"]) for one in gpus] == [
        ("GPU0", 800, 300),
        ("GPU1", 3_000, 3_000),
    ]
    stacks = [(one["gpu"], one["path"], one["bytes"]) for one in table(section, "peak_stacks")]
    assert stacks == [
        ("GPU1", "main;cache", 3_000),
        ("GPU0", "main;forward;matmul", 500),
        ("GPU0", "main;weights", 300),
    ]
    churn = table(section, "churn_stacks")
    assert [(one["path"], one["bytes"], one["percent"]) for one in churn] == [
        ("main;forward;matmul", 500, 100.0)
    ]
    assert section.facts["memory"] == {
        "peak": {"bytes": {"GPU0": 800, "GPU1": 3_000}, "stacks": 3},
        "live": {"bytes": {"GPU0": 300, "GPU1": 3_000}, "stacks": 2},
        "churn": {"bytes": {"GPU0": 500}, "stacks": 1},
    }


def test_parts_add_up_to_what_is_reserved(tmp_path: Path) -> None:
    section = Report(scope_of(two_gpus(), tmp_path)).section("memory")
    sums = Counter[str]()
    for row in table(section, "reserved"):
        sums[row["gpu"]] += row["bytes"]
    assert dict(sums) == {one["gpu"]: one["reserved_bytes"] for one in table(section, "gpus")}


def test_rows_lead_to_frames_of_as_many_bytes(tmp_path: Path) -> None:
    scope = scope_of(two_gpus(), tmp_path)
    for found in Report(scope).section("memory").tables:
        for row, place in zip(found.rows, found.places, strict=bool(found.places)):
            assert place is not None
            tree = project(scope.profile, select(place.levels, (), place.metric))
            node = tree.find(place.frames)
            assert tree.names(node) == place.frames
            assert tree.total[node] == row[1], found.key  # the bytes stand after the GPU


def test_a_filter_by_gpu_chooses(tmp_path: Path) -> None:
    section = Report(scope_of(two_gpus(), tmp_path, Devices((0,)))).section("memory")
    assert {row["gpu"] for key in ("gpus", "peak_stacks") for row in table(section, key)} == {
        "GPU0"
    }


@pytest.mark.parametrize(
    ("request_size", "device_free", "verdict", "advice"),
    [
        (3 * MIB, MIB, "fragmented", "expandable_segments"),
        (8 * MIB, MIB, "full", "smaller batches"),
        (8 * MIB, 7 * MIB, "enough was free", "smaller batches"),
    ],
)
def test_a_request_that_failed_is_severe(
    request_size: int, device_free: int, verdict: str, advice: str, tmp_path: Path
) -> None:
    scope = scope_of(in_pieces(request_size, device_free), tmp_path)
    found = findings(scope)["out-of-memory"]
    assert (found["severity"], found["gpu"]) == ("high", "GPU0")
    assert advice in found["advice"]
    assert (verdict in found["title"]) == (verdict != "enough was free")
    (row,) = table(Report(scope).section("memory"), "failed")
    assert (row["verdict"], row["bytes"], row["stack"]) == (verdict, request_size, "too_much")


def test_what_was_free_before_more_happened_is_not_judged(tmp_path: Path) -> None:
    file = in_pieces(3 * MIB)
    file.alloc(1_000)
    scope = scope_of(file, tmp_path)
    (row,) = table(Report(scope).section("memory"), "failed")
    assert row["verdict"] == "not known"
    assert findings(scope)["out-of-memory"]["confidence_note"]


def test_free_pieces_are_told_from_empty_segments(tmp_path: Path) -> None:
    assert {*findings(scope_of(in_pieces(1), tmp_path))} == {"out-of-memory", "memory-split"}
    empty = SnapshotFile()
    for which in [empty.alloc(SEGMENT) for _ in range(3)]:
        empty.free(which)
    empty.alloc(SEGMENT)
    found = findings(scope_of(empty, tmp_path))
    assert {*found} == {"memory-cached"}
    assert found["memory-cached"]["severity"] == "info"


def test_stacks_that_grow_are_told_with_steps_enough(tmp_path: Path) -> None:
    scope = scope_of(grow(5), tmp_path)
    assert "log ‹ main by 4.19 MB" in findings(scope)["memory-growth"]["claim"]
    (row,) = table(Report(scope).section("memory"), "growing")
    assert (row["path"], row["bytes"], row["per_step_bytes"]) == ("main;log", 4 * MIB, MIB)


def test_with_few_steps_there_is_no_verdict_on_growth(tmp_path: Path) -> None:
    scope = scope_of(grow(2), tmp_path)
    assert "memory-growth" not in findings(scope)
    abstained: Any = Report(scope).section("findings").facts["abstained"]
    assert [one["id"] for one in abstained] == ["memory-growth"]
    assert "2 ends of steps recorded, 3 are needed" in abstained[0]["why"]
    assert any("not known" in note for note in Report(scope).section("memory").notes)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("memory.peak > 2kB and memory.peak < 4kB", True),
        ("memory.live >= 3kB", True),
        ("memory.reserved > 4.1MB", True),
        ("memory.split > 99%", True),
        ("memory.releasable > 10%", True),
        ("memory.failed > 0", False),
        ("memory.grown > 0kB", None),
        ("findings.high > 0", False),
        ("kernels > 0", None),
    ],
)
def test_conditions(condition: str, holds: bool | None, tmp_path: Path) -> None:
    scope = scope_of(two_gpus(), tmp_path)
    assert decide(scope, read_condition(condition)).holds is holds


def test_a_condition_on_bytes_needs_a_size(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a size, with kB, MB or GB"):
        decide(scope_of(two_gpus(), tmp_path), read_condition("memory.peak > 2999"))


def test_all_formats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(in_pieces(3 * MIB).write(Path("snapshot.pickle")))
    assert main(["report", path]) == 0
    text = capsys.readouterr().out
    assert "A request for memory failed: fragmented" in text
    assert f"flame view {path}" in text and "--metric peak --at oom" in text
    assert "a memory snapshot knows no activities of GPUs" in " ".join(text.split())
    assert main(["report", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["memory"]["failed"][0]["verdict"] == "fragmented"
    assert found["memory"]["gpus"][0]["peak_bytes"] == 3_000
    assert main(["report", path, "--md"]) == 0
    assert "stacks at the peak" in capsys.readouterr().out
    assert main(["report", path, "--csv", str(tmp_path / "csv")]) == 0
    assert "main;small" in (tmp_path / "csv" / "memory_peak_stacks.csv").read_text()
    assert main(["report", path, "--html", str(tmp_path / "page.html")]) == 0
    assert "memory at the peak" in (tmp_path / "page.html").read_text()
    assert main(["report", path, "--fail-on", "memory.failed > 0"]) == 5


def test_rows_lead_to_siblings_of_one_name_by_their_lines(tmp_path: Path) -> None:
    """Two lines of one function allocate, and so does a function of the same name elsewhere."""
    file = SnapshotFile()
    for place, size in (("model.py:10", 300), ("model.py:20", 500), ("other.py:10", 400)):
        name, line = place.split(":")
        file.alloc(size, ("main", "step", "grow"))
        file.traces[0][-1]["frames"][1] |= {"filename": name, "line": int(line)}
    shown = shown_of(profile_of(file, tmp_path), Selection(metric="peak"))
    section = Report(Scope(shown.profile, Selection())).section("memory")
    stacks = next(one for one in section.tables if one.key == "peak_stacks")
    nodes = [node_at(shown, place) for place in stacks.places if place is not None]
    tree = shown.view.tree
    assert [int(tree.total[node]) for node in nodes] == [500, 400, 300]
    assert {tree.names(node) for node in nodes} == {("main", "step", "grow")}


def test_what_lived_when_a_request_failed_or_is_asked_for_is_told(tmp_path: Path) -> None:
    """And the tables of the peak and of the end stay what their titles say."""
    file = SnapshotFile()
    much = file.alloc(900_000, ("main", "forward"))
    file.free(much)
    file.alloc(300_000, ("main", "cache"))
    file.fail(5_000_000, 80)
    file.alloc(100_000, ("main", "last"))
    expected = {"moment_stacks": 300_000, "peak_stacks": 900_000, "end_stacks": 400_000}
    for where in ((), (At("oom"),)):
        section = Report(scope_of(file, tmp_path, *where)).section("memory")
        sums = {key: sum(row["bytes"] for row in table(section, key)) for key in expected}
        assert sums == expected
        found = next(one for one in section.tables if one.key == "moment_stacks")
        assert found.title == "stacks at the last failed request"
        assert {place.moment for place in found.places if place} == {"oom"}
    section = Report(scope_of(file, tmp_path, At("end"))).section("memory")
    assert sum(row["bytes"] for row in table(section, "moment_stacks")) == 400_000
    without = Report(scope_of(two_gpus(), tmp_path)).section("memory")
    assert "moment_stacks" not in {one.key for one in without.tables}


def test_a_table_of_one_of_several_gpus_names_it(tmp_path: Path) -> None:
    """A column that says one thing is not shown to people."""
    file = two_gpus()
    file.fail(5_000_000, 80, device=1)
    titles = {
        one.key: one.title for one in Report(scope_of(file, tmp_path)).section("memory").tables
    }
    assert titles["failed"] == "requests that failed: GPU1"
    assert titles["churn_stacks"].endswith("given back: GPU0")
    assert titles["peak_stacks"] == "stacks at the peak"
