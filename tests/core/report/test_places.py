"""Where rows lead: to a frame that is in the picture, of as many nanoseconds as the row says."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load, load_all
from flame.core.projection.project import project
from flame.core.projection.selection import select
from flame.core.report.report import Report
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Table
from tests.conftest import TRACES, needs_traces
from tests.support.paths import SAMPLES

SECTIONS = ("phases", "layers", "experts", "iterations", "communication")
PARTIES = ("processes", "devices", "threads", "ranks")


def check(scope: Scope, names: tuple[str, ...]) -> int:
    """The number of rows with a frame, after each has been looked for."""
    found = 0
    for section in Report(scope).sections(names):
        for table in section.tables:
            assert not table.places or len(table.places) == len(table.rows), table.key
            for row, place in zip(table.rows, table.places, strict=False):
                if place is not None and place.frames:
                    check_place(scope, table, row, place)
                    found += 1
    return found


def check_place(scope: Scope, table: Table, row: tuple[object, ...], place: Place) -> None:
    selection = select(place.levels, scope.selection.where, place.metric)
    tree = project(scope.profile, selection)
    node = tree.find(place.frames)
    assert tree.names(node) == place.frames
    keys = [column.key for column in table.columns]
    if (
        place.levels[0] in ("category", "process", "device", "rank", "thread")
        and "gpu_time_ns" in keys
    ):
        assert tree.total[node] == row[keys.index("gpu_time_ns")]


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize(
    "name",
    ["kineto/b200_eager_python.json.gz", "kineto/v100_old_categories.json.gz"],
)
def test_rows_lead_into_the_picture_of_real_traces(name: str) -> None:
    assert check(Scope(load(TRACES / name)), (*SECTIONS, *PARTIES)) > 5


def test_rows_lead_into_the_picture_of_a_sample() -> None:
    path = SAMPLES / "torch_small.pt.trace.json.gz"
    assert check(Scope(load(path)), (*SECTIONS, *PARTIES)) > 3


@pytest.mark.deep
def test_rows_of_ranks_lead_to_their_files(tmp_path: Path) -> None:
    sample = SAMPLES / "torch_small.pt.trace.json.gz"
    paths = [tmp_path / f"{name}.pt.trace.json.gz" for name in ("first", "second")]
    for path in paths:
        path.write_bytes(sample.read_bytes())
    assert check(Scope(load_all(paths)), PARTIES) >= 2
