"""The sample is deterministic, small, labelled, and says what its generator knows."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from samples import make_samples

SAMPLE = Path(make_samples.__file__).with_name("decode_small.sqlite")
ACTIVITIES = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
)
OPEN_END = 2**62

Path_ = tuple[str, ...]


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{SAMPLE.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        yield connection


@pytest.fixture(scope="module")
def truth() -> make_samples.Expected:
    return make_samples.expected()


def scalar(db: sqlite3.Connection, sql: str) -> int:
    value = db.execute(sql).fetchone()[0]
    assert isinstance(value, int)
    return value


def content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


def test_two_runs_write_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first.sqlite", tmp_path / "second.sqlite"
    make_samples.write(first)
    make_samples.write(second)
    assert first.read_bytes() == second.read_bytes()


def test_committed_sample_is_what_the_script_writes(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.sqlite"
    make_samples.write(fresh)
    # Not byte for byte: SQLite writes its own version into the file's header.
    assert content(fresh) == content(SAMPLE)


def test_sample_is_under_2_mb() -> None:
    assert SAMPLE.stat().st_size < 2_000_000


def test_sample_is_labelled_synthetic(db: sqlite3.Connection) -> None:
    labels = dict(db.execute("SELECT name, value FROM META_DATA_EXPORT"))
    assert labels["FLAME_SYNTHETIC"] == "true, made by samples/make_samples.py"
    assert labels["EXPORT_PRODUCT_VERSION"] == "synthetic"
    names = {name for (name,) in db.execute("SELECT name FROM TARGET_INFO_GPU")}
    assert names == {"NVIDIA H100 80GB HBM3 (synthetic)"}


def test_sample_holds_no_environment(db: sqlite3.Connection) -> None:
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert "TARGET_INFO_SYSTEM_ENV" not in tables
    sql = "SELECT count(*) FROM META_DATA_CAPTURE WHERE name LIKE '%ENVIRONMENT%'"
    assert scalar(db, sql) == 0


def test_counts_and_gpu_time(db: sqlite3.Connection, truth: make_samples.Expected) -> None:
    counts = [scalar(db, f"SELECT count(*) FROM {table}") for table in ACTIVITIES]
    times = [scalar(db, f"SELECT sum(end - start) FROM {table}") for table in ACTIVITIES]
    assert counts == [truth.kernels, truth.memcpys, truth.memsets]
    assert sum(times) == truth.gpu_ns == sum(truth.paths.values())


def test_activities_on_one_stream_never_overlap(db: sqlite3.Connection) -> None:
    rows = " UNION ALL ".join(
        f"SELECT start, end, globalPid, streamId FROM {t}" for t in ACTIVITIES
    )
    sql = (
        "SELECT count(*) FROM (SELECT start, lag(end) OVER"
        f" (PARTITION BY globalPid, streamId ORDER BY start) AS before FROM ({rows}))"
        " WHERE start < before"
    )
    assert scalar(db, sql) == 0


def test_a_decode_step_takes_6_to_8_ms_and_a_prefill_40(db: sqlite3.Connection) -> None:
    sql = (
        "SELECT text, end - start FROM NVTX_EVENTS"
        " WHERE text LIKE 'execute_context%' AND end IS NOT NULL ORDER BY 2"
    )
    rows = db.execute(sql).fetchall()
    decode = [ns for text, ns in rows if text.startswith("execute_context_0")]
    prefill = [ns for text, ns in rows if not text.startswith("execute_context_0")]
    *usual, slow, slowest = decode
    assert all(6_000_000 < ns < 8_300_000 for ns in usual)
    assert slow > 9_000_000 and slowest > 9_000_000
    assert all(38_000_000 < ns < 45_000_000 for ns in prefill)


def test_some_kernels_lead_nowhere(db: sqlite3.Connection, truth: make_samples.Expected) -> None:
    calls = set(
        db.execute("SELECT globalTid >> 24, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME")
    )
    nodes = set(db.execute("SELECT globalTid >> 24, graphNodeId FROM CUDA_GRAPH_NODE_EVENTS"))
    kernels = db.execute(
        "SELECT globalPid >> 24, correlationId, graphNodeId FROM CUPTI_ACTIVITY_KIND_KERNEL"
    ).fetchall()
    unlaunched = [pid for pid, correlation, _ in kernels if (pid, correlation) not in calls]
    unmapped = [pid for pid, _, node in kernels if node and (pid, node) not in nodes]
    assert len(unlaunched) == truth.no_launch > 0
    assert len(unmapped) == truth.unmapped_nodes > 0


def test_correlation_ids_collide_between_the_processes(db: sqlite3.Connection) -> None:
    sql = (
        "SELECT count(*) FROM (SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"
        " GROUP BY correlationId HAVING count(DISTINCT globalTid >> 24) > 1)"
    )
    assert scalar(db, sql) > 1000


def test_graph_node_ids_collide_between_the_processes(db: sqlite3.Connection) -> None:
    sql = (
        "SELECT count(*) FROM (SELECT graphNodeId FROM CUDA_GRAPH_NODE_EVENTS"
        " GROUP BY graphNodeId HAVING count(DISTINCT globalTid >> 24) > 1)"
    )
    assert scalar(db, sql) > 500


def test_odd_ranges_are_there(db: sqlite3.Connection) -> None:
    kinds = dict(db.execute("SELECT eventType, count(*) FROM NVTX_EVENTS GROUP BY eventType"))
    assert (kinds[34], kinds[60], kinds[75]) == (1, 16, 2)
    assert scalar(db, "SELECT count(*) FROM NVTX_EVENTS WHERE end IS NULL AND eventType = 59") == 1
    assert scalar(db, "SELECT min(start) FROM NVTX_EVENTS") < 0


def test_the_file_leads_to_the_paths_that_the_generator_knows(
    db: sqlite3.Connection, truth: make_samples.Expected
) -> None:
    assert attribute(db) == truth.paths


def test_every_layer_has_its_share(truth: make_samples.Expected) -> None:
    assert sorted(truth.layers) == list(range(24))
    assert max(truth.layers, key=lambda layer: truth.layers[layer]) == 17
    assert sum(truth.layers.values()) > 0.9 * truth.gpu_ns


def attribute(db: sqlite3.Connection) -> Counter[Path_]:
    """GPU ns by NVTX path, row by row: the launch's ranges, then those of the node's capture."""
    ranges = _ranges(db)
    calls = {
        (thread >> 24, correlation): _open_at(ranges, thread, start)
        for thread, correlation, start in db.execute(
            "SELECT globalTid, correlationId, start FROM CUPTI_ACTIVITY_KIND_RUNTIME"
        )
    }
    nodes = {
        (thread >> 24, node): (original, thread, start)
        for node, original, thread, start in db.execute(
            "SELECT graphNodeId, originalGraphNodeId, globalTid, start FROM CUDA_GRAPH_NODE_EVENTS"
        )
    }
    captured: dict[tuple[int, int | None], Path_] = {}
    paths: Counter[Path_] = Counter()
    for table in ACTIVITIES:
        for pid, correlation, node, ns in db.execute(
            f"SELECT globalPid >> 24, correlationId, graphNodeId, end - start FROM {table}"
        ):
            if (pid, node) not in captured:
                captured[pid, node] = _captured(ranges, nodes, pid, node)
            paths[calls.get((pid, correlation), ()) + captured[pid, node]] += ns
    return paths


Ranges = dict[int, list[tuple[int, int, str]]]
Nodes = dict[tuple[int, int], tuple[int | None, int, int]]


def _ranges(db: sqlite3.Connection) -> Ranges:
    ranges: Ranges = {}
    for thread, start, end, text in db.execute(
        f"SELECT globalTid, start, coalesce(end, {OPEN_END}), coalesce(text, value)"
        " FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId WHERE eventType = 59"
        " ORDER BY start, end DESC"
    ):
        ranges.setdefault(thread, []).append((start, end, text))
    return ranges


def _open_at(ranges: Ranges, thread: int, time: int) -> Path_:
    return tuple(text for start, end, text in ranges.get(thread, ()) if start <= time <= end)


def _captured(ranges: Ranges, nodes: Nodes, pid: int, node: int | None) -> Path_:
    while node is not None and (pid, node) in nodes:
        node, thread, start = nodes[pid, node]
        if node is None:
            return _open_at(ranges, thread, start)
    return ()
