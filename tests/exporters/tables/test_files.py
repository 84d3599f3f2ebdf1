"""The table of frames: sums that a plain loop finds too, in CSV, JSON and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from flame.core.errors import UsageError
from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import where
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.core.report.table import Table
from flame.exporters.tables import files as tables
from flame.exporters.tables.frame_table import FrameColumns
from tests.exporters.profiles import Row, profile_of, some_rows
from tests.support.paths import SAMPLES

LEVELS = ("python", "nvtx", "kernel")


def made(profile: Profile, selection: Selection, by: str = "self") -> Table:
    tree = project(profile, selection)
    found = FrameColumns(profile, tree, selection)
    return found.table(found.rows(by))


def by_frame(table: Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    keys = [column.key for column in table.columns]
    rows = [dict(zip(keys, row, strict=True)) for row in table.rows]
    return {(row["name"], row["level"], row.get("file"), row.get("line")): row for row in rows}


def expected(rows: list[Row]) -> dict[tuple[Any, ...], list[tuple[int, bool]]]:
    """By frame the durations below it, and whether each ends there; each activity once."""
    found = defaultdict[tuple[Any, ...], list[tuple[int, bool]]](list)
    for row in rows:
        path: list[tuple[Any, ...]] = [
            *((name, "python", file or None, line or None) for name, file, line in row.python),
            *((name, "nvtx", None, None) for name in row.nvtx if name),
        ]
        path += [(row.kernel, "kernel", None, None)] if row.kernel else []
        for frame in set(path):
            found[frame].append((row.duration, frame == path[-1]))
    return found


@given(some_rows)
def test_sums_and_percentiles_are_those_of_a_plain_loop(rows: list[Row]) -> None:
    rows = [row for row in rows if row.kernel and all(row.nvtx) and all(p[0] for p in row.python)]
    if not any(row.duration for row in rows):
        return
    found = by_frame(made(profile_of(rows), Selection(LEVELS)))
    wanted = expected(rows)
    assert found.keys() == wanted.keys()
    for frame, row in found.items():
        below = sorted(duration for duration, _ in wanted[frame])
        assert row["total_ns"] == sum(below)
        assert row["self_ns"] == sum(duration for duration, ends in wanted[frame] if ends)
        assert row["count"] == len(below)
        assert row["mean_ns"] == pytest.approx(sum(below) / len(below))
        assert row["max_ns"] == below[-1]
        for percent in (50, 95, 99):
            rank = max(-(-percent * len(below) // 100), 1)  # nearest rank
            assert row[f"p{percent}_ns"] == below[rank - 1]


def test_rows_come_by_the_column_that_is_asked_for() -> None:
    profile = profile_of([Row("often", 1)] * 9 + [Row("long", 5), Row("mid", 4), Row("mid", 2)])

    def order(by: str) -> list[Any]:
        return [row[0] for row in made(profile, Selection(("kernel",)), by).rows]

    assert order("self") == order("total") == ["often", "mid", "long"]
    assert order("count") == ["often", "mid", "long"]
    assert order("mean") == order("max") == order("p99") == ["long", "mid", "often"]


def test_rows_may_be_of_one_level() -> None:
    profile = profile_of([Row("gemm", 2, nvtx=("step",))])
    tree = project(profile, Selection(("nvtx", "kernel")))
    found = FrameColumns(profile, tree, Selection(("nvtx", "kernel")))
    assert [row[0] for row in found.table(found.rows("self", Kind.NVTX)).rows] == ["step"]


def test_filters_hold_for_percentiles_too() -> None:
    profile = profile_of([Row("gemm", 2), Row("gemm", 8), Row("copy", 7)])
    [row] = made(profile, Selection(("kernel",), where(kernel="gemm"))).rows
    assert row[0] == "gemm"
    assert 8 in row and 7 not in row


def test_a_metric_without_times_has_no_mean() -> None:
    profile = profile_of([Row("gemm", 2)])
    table = made(profile, Selection(("kernel",), metric="count"))
    assert [column.key for column in table.columns] == [
        *("name", "level", "self", "self_percent", "total", "total_percent", "count"),
    ]


def test_csv_has_all_rows_and_no_formula() -> None:
    table = made(profile_of([Row("=1+1", 2), Row('a "b", c', 3), Row("k\udcff", 1)]), Selection())
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(table))))
    names = [row["name"] for row in rows if row["level"] == "kernel"]
    assert names == ['a "b", c', "'=1+1", r"k\udcff"]
    assert sum(int(row["self_ns"]) for row in rows) == 6


def test_json_says_what_is_measured() -> None:
    profile = load(SAMPLES / "decode_small.sqlite")
    tree = project(profile)
    document = json.loads(tables.as_json(made(profile, Selection()), tree, "decode"))
    rows = document.pop("rows")
    assert document == {
        "flame_top": tables.CONTRACT,
        "title": "decode",
        "metric": {"key": "gpu", "title": "GPU time", "unit": "ns"},
        "levels": list(tree.levels),
        "total": profile.gpu_time,
        "frames": len(rows),
    }
    assert sum(row["self_ns"] for row in rows) == profile.gpu_time


def test_parquet_has_the_same_cells(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    profile = load(SAMPLES / "decode_small.sqlite")
    table, path = made(profile, Selection()), tmp_path / "x.parquet"
    with path.open("wb") as file:
        tables.write_parquet(table, project(profile), "decode", file)
    read = parquet.read_table(path)
    assert read.column_names == [column.key for column in table.columns]
    assert list(zip(*read.to_pydict().values(), strict=True)) == list(table.rows)
    assert read.schema.metadata[b"flame.metric"] == b"gpu"


def test_parquet_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    profile = profile_of([Row("gemm", 2)])
    with pytest.raises(UsageError, match="pip install pyarrow"):
        tables.write_parquet(made(profile, Selection()), project(profile), "x", io.BytesIO())


def test_shares_of_frames_that_end_are_one_whole() -> None:
    profile = load(SAMPLES / "decode_small.sqlite")
    table = made(profile, Selection())
    at = [column.key for column in table.columns].index("self_percent")
    assert np.sum([row[at] for row in table.rows]) == pytest.approx(100)
