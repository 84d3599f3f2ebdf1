"""Where rows lead: to a frame that is in the picture, of as many nanoseconds as the row says."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load, load_all
from flame.core.projection.filters import Time
from flame.core.projection.project import project
from flame.core.projection.selection import select
from flame.core.report.report import Report
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Table
from tests.conftest import TRACES, needs_traces
from tests.support.paths import SAMPLES
from tests.support.writers.nsysfile import NsysFile

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
    if table.key == "by_host_frame":  # to where it was longest at a stretch
        assert place.frames[-1] == row[keys.index("frame")]
        assert tree.total[node] >= row[keys.index("longest_ns")]
    elif place.metric == "waiting":
        assert tree.total[node] == row[keys.index("ns")]


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


def test_causes_lead_to_what_the_host_did(tmp_path: Path) -> None:
    sample = SAMPLES / "torch_small.pt.trace.json.gz"
    assert check(Scope(load(sample)), ("idle",)) > 1
    with NsysFile(tmp_path / "trace.sqlite") as file:
        for device in (0, 1):
            file.kernel("first", 0, 10, corr=None, device=device)
            file.kernel("second", 30 + device, 40, corr=1, device=device)
        file.api("cudaLaunchKernel_v7000", 20, 25, corr=1)
    window = (Time(5, 28),)
    for where in ((), window):
        scope = Scope(load(tmp_path / "trace.sqlite"), select(where=where))
        assert check(scope, ("idle",)) > 3
