"""Launch geometry and sizes, read from the file when somebody asks."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.loading.many import load
from flame.core.model.launches import UNKNOWN, LaunchConfig, LaunchDetails
from flame.core.options import LoadOptions
from tests.conftest import EVERY_NSYS_TRACE, needs_traces
from tests.support.writers.nsysfile import HTOD, NsysFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three kernels of two configurations, a copy, a memset and a graph, in no order of time."""
    path = tmp_path / "trace.sqlite"
    with NsysFile(path) as trace:
        trace.graph(500, 600)
        trace.memset(300, 310, bytes=64)
        trace.memcpy(HTOD, 200, 240, bytes=4_000)
        for start in (900, 0):
            trace.kernel("gemm", start, start + 10, grid=(128, 4, 1), block=(256, 1, 1))
        trace.kernel("gemm", 50, 70, grid=(128, 4, 1), block=(256, 2, 1))
        trace.db.execute(
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET registersPerThread = 64, clusterX = 2, "
            "clusterY = 1, clusterZ = 1, staticSharedMemory = 1024, dynamicSharedMemory = 2048, "
            "sharedMemoryExecuted = 8192, localMemoryPerThread = 16"
        )
    return path


GEMM = LaunchConfig((128, 4, 1), (256, 1, 1), (2, 1, 1), 64, 1024, 2048, 8192, 16)


def launches(path: Path) -> LaunchDetails:
    """What is read when somebody asks, which is what is read with the activities."""
    found, at_once = (load(path, LoadOptions(launches=one)).launches for one in (False, True))
    assert found is not None
    assert at_once is not None
    assert at_once.configs == found.configs
    assert at_once.config.tolist() == found.config.tolist()
    assert at_once.bytes.tolist() == found.bytes.tolist()
    return found


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def configs(found: LaunchDetails) -> list[LaunchConfig | None]:
    """The configuration of every activity."""
    return [None if at == UNKNOWN else found.configs[at] for at in found.config.tolist()]


def test_each_row_has_its_configuration_or_its_bytes(path: Path) -> None:
    found = launches(path)
    wide = replace(GEMM, block=(256, 2, 1))
    assert configs(found) == [GEMM, GEMM, wide, None, None, None]
    assert found.bytes.tolist() == [UNKNOWN, UNKNOWN, UNKNOWN, 4_000, 64, UNKNOWN]


def test_equal_configurations_are_one(path: Path) -> None:
    found = launches(path)
    assert len(found.configs) == 2
    assert found.config.itemsize + found.bytes.itemsize == 12


def test_products_of_the_dimensions() -> None:
    assert (GEMM.blocks, GEMM.threads) == (512, 256)
    assert (LaunchConfig().blocks, LaunchConfig().threads) == (None, None)


def test_columns_that_an_exporter_does_not_write_are_unknown(path: Path) -> None:
    for column in ("gridY", "registersPerThread", "clusterZ"):
        change(path, f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN {column}")
    change(path, "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN bytes")
    found = launches(path)
    assert configs(found)[0] == LaunchConfig(None, (256, 1, 1), None, None, 1024, 2048, 8192, 16)
    assert found.bytes.tolist()[3] == UNKNOWN


def test_an_export_without_any_geometry_has_no_configurations(tmp_path: Path) -> None:
    path = tmp_path / "bare.sqlite"
    with NsysFile(path) as trace:
        trace.db.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, "end")')
        trace.db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (3, 8)")
    found = launches(path)
    assert (configs(found), found.configs) == ([None], ())


def test_absurd_sizes_are_unknown(path: Path) -> None:
    change(path, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET registersPerThread = -1")
    change(path, "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = -7")
    found = launches(path)
    assert found.configs[0].registers is None
    assert found.bytes.tolist()[3] == UNKNOWN


def test_no_cluster_is_not_a_cluster_of_one(path: Path) -> None:
    change(path, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET clusterX = 1")
    assert launches(path).configs[0].cluster is None


def test_activities_without_times_have_their_geometry_too(path: Path) -> None:
    change(path, f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = {1 << 62}")
    assert configs(launches(path))[0] == GEMM


@pytest.mark.parametrize(("source", "target"), [(0, 2), (1, 2), (2, 0), (2, 6), (7, 255)])
def test_the_memory_of_copies_and_sets(path: Path, source: int, target: int) -> None:
    change(path, f"UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET srcKind = {source}, dstKind = {target}")
    change(path, f"UPDATE CUPTI_ACTIVITY_KIND_MEMSET SET memKind = {target}")
    of_memory = [one for one in configs(launches(path)) if one and one.is_of_memory]
    read, written = KINDS.get(source), KINDS.get(target)
    expected = [LaunchConfig(source=read, target=written), LaunchConfig(target=written)]
    assert of_memory == [one for one in expected if one.is_of_memory]


KINDS = {0: "pageable", 1: "pinned", 2: "device", 6: "managed static"}
"""Of ENUM_CUDA_MEM_KIND."""

CHANGES = {
    "a kernel more": "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
    "SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1",
    "a kernel less": "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start = 0",
    "a graph less": "DELETE FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "as many others": "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start + 1",
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=list(CHANGES))
def test_a_file_that_has_changed_is_refused(path: Path, statement: str) -> None:
    profile = load(path)
    change(path, statement)
    with pytest.raises(InputError, match="has changed since it was opened"):
        _ = profile.launches


def test_a_file_that_has_gone_is_missing(path: Path) -> None:
    profile = load(path)
    path.unlink()
    with pytest.raises(InputError, match="no such file"):
        _ = profile.launches


def test_a_file_that_is_no_trace_any_more_is_damaged(path: Path) -> None:
    profile = load(path)
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 10_000)
    with pytest.raises(InputError, match=str(path)):
        _ = profile.launches


SQL = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "gridX, gridY, gridZ, blockX, blockY, blockZ, "
    "registersPerThread, staticSharedMemory, dynamicSharedMemory",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "bytes",
    "CUPTI_ACTIVITY_KIND_MEMSET": "bytes",
}


@needs_traces
@pytest.mark.parametrize("trace", EVERY_NSYS_TRACE)
def test_real_traces_agree_with_sql(trace: str, nsys_trace: Callable[[str], Path]) -> None:
    path = nsys_trace(trace)
    if "missing_columns" in trace:
        pytest.skip("has not the columns of the query")
    profile = load(path)
    assert profile.launches is not None
    start = profile.activities.start.tolist()
    config, size = configs(profile.launches), profile.launches.bytes.tolist()
    expected = sorted(_by_sql(path))
    found = []
    for at, one in enumerate(config):
        if one and not one.is_of_memory:
            memory = (one.registers, one.static_shared, one.dynamic_shared)
            found.append((start[at], *(one.grid or ()), *(one.block or ()), *memory))
        elif size[at] != UNKNOWN:
            found.append((start[at], size[at]))
    assert sorted(found) == expected


def _by_sql(path: Path) -> list[tuple[int, ...]]:
    rows = []
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        for table, columns in SQL.items():
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
                rows += db.execute(f"SELECT start, {columns} FROM {table}").fetchall()
    return rows
