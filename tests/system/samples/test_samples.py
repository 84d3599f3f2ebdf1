"""The samples are deterministic, small, labelled, and say what their generators know."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.generate import generate
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.model.tree import Node, StackTree
from flame.core.options import LoadOptions
from samples import make_samples, make_torch_sample
from tests.support.profiles.project_tree import project_tree

TORCH = Path(make_torch_sample.__file__).with_name(make_torch_sample.NAME)
SAMPLE = Path(make_samples.__file__).with_name("decode_small.sqlite")
ACTIVITIES = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
)
OPEN_END = 2**62

NvtxPath = tuple[str, ...]


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{SAMPLE.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        yield connection


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("samples") / "fresh.sqlite"
    make_samples.write(path)
    return path


@pytest.fixture(scope="module")
def truth() -> make_samples.Expected:
    return make_samples.expected()


@pytest.fixture(scope="module")
def profile() -> Profile:
    return load(SAMPLE, LoadOptions(nvtx_names="raw"))


def scalar(db: sqlite3.Connection, sql: str) -> int:
    value = db.execute(sql).fetchone()[0]
    assert isinstance(value, int)
    return value


def content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


def test_two_runs_write_the_same_bytes(fresh: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.sqlite"
    make_samples.write(again)
    assert again.read_bytes() == fresh.read_bytes()


def test_committed_sample_is_what_the_script_writes(fresh: Path) -> None:
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


def test_flame_finds_the_same_paths(profile: Profile, truth: make_samples.Expected) -> None:
    assert own_by_path(project_tree(profile, levels="nvtx")) == truth.paths
    assert profile.gpu_time == truth.gpu_ns


def test_flame_counts_what_it_cannot_trace_back(
    profile: Profile, truth: make_samples.Expected
) -> None:
    nodes = profile.graph_nodes
    assert nodes.activities - nodes.captured == truth.unmapped_nodes
    assert int((~profile.activities.launched).sum()) == truth.no_launch


def test_flame_sees_python_frames_of_the_prefill_only(profile: Profile) -> None:
    tree = project_tree(profile, levels="nvtx,python")
    steps = [step for step in tree.root.children if step.name.startswith("execute_")]
    with_python = {step.name for step in steps if "GptOssModel.forward" in names_below(step)}
    prefill = {step.name for step in steps if not step.name.startswith("execute_context_0")}
    assert with_python == prefill


def test_every_layer_has_its_share(truth: make_samples.Expected) -> None:
    assert sorted(truth.layers) == list(range(24))
    assert max(truth.layers, key=lambda layer: truth.layers[layer]) == 17
    assert sum(truth.layers.values()) > 0.9 * truth.gpu_ns


def test_large_file_generator_keeps_its_proportions(tmp_path: Path) -> None:
    path = tmp_path / "large.sqlite"
    generate(path, 1_500, opid=True)
    with closing(sqlite3.connect(path)) as db:
        assert scalar(db, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL") == 2_000
        assert scalar(db, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME") == 2_600
        assert scalar(db, "SELECT count(*) FROM NVTX_EVENTS") == 3_608
        assert scalar(db, "SELECT count(textId) FROM NVTX_EVENTS") == 546
        assert scalar(db, "SELECT count(DISTINCT globalTid) FROM NVTX_EVENTS") == 4
        numbered = "FROM NVTX_EVENTS WHERE text LIKE '%op_id%'"
        count = scalar(db, f"SELECT count(*) {numbered}")
        assert scalar(db, f"SELECT count(DISTINCT text) {numbered}") == count > 1_500
    profile = load(path)
    assert profile.coverage["nvtx"].ns == profile.coverage["launch"].ns == profile.gpu_time


# The trace of PyTorch


@pytest.fixture(scope="module")
def trained() -> make_torch_sample.Expected:
    return make_torch_sample.expected()


@pytest.fixture(scope="module")
def training() -> Profile:
    return load(TORCH, LoadOptions(nvtx_names="raw"))


def test_committed_trace_is_what_the_script_writes(tmp_path: Path) -> None:
    # Not byte for byte: another zlib packs it otherwise.
    assert gzip.decompress(TORCH.read_bytes()).decode() == make_torch_sample.text()
    make_torch_sample.write(tmp_path / "again.gz")
    assert (
        gzip.decompress((tmp_path / "again.gz").read_bytes()).decode() == make_torch_sample.text()
    )


def test_trace_is_under_60_kb_labelled_and_valid() -> None:
    assert TORCH.stat().st_size < 60_000
    trace = json.loads(make_torch_sample.text())
    assert trace["FLAME_SYNTHETIC"] == "true, made by samples/make_torch_sample.py"
    assert load(TORCH).meta.synthetic
    assert [one["name"] for one in trace["deviceProperties"]] == [
        "NVIDIA H100 80GB HBM3 (synthetic)"
    ]


def test_flame_finds_the_operators_of_the_trace(
    training: Profile, trained: make_torch_sample.Expected
) -> None:
    assert own_by_path(project_tree(training, levels="nvtx")) == trained.ranges
    assert training.gpu_time == trained.gpu_ns
    assert training.counts["kernel"] == sum(trained.kernels.values())
    assert training.steps is not None
    assert tuple(training.steps.number.tolist()) == trained.steps


def test_flame_finds_the_python_functions_of_the_trace(
    training: Profile, trained: make_torch_sample.Expected
) -> None:
    expected: Counter[NvtxPath] = Counter()
    for path, ns in trained.python.items():
        expected[tuple(map(function, path))] += ns
    assert own_by_path(project_tree(training, levels="python")) == expected
    lines = {(frame.name, frame.file, frame.line) for frame in training.frames.frames}
    assert ("attention", "model.py", 33) in lines


def function(name: str) -> str:
    """What is called so in the trace: without its file, or without its address."""
    return re.sub(r"^\S+\(\d+\): | at 0x[0-9a-f]+", "", name)


def test_one_graph_launch_has_all_kernels_of_a_decode_step(training: Profile) -> None:
    tree = project_tree(training, levels="launch,kernel")
    (replays,) = [one for one in tree.root.children if one.name == "cudaGraphLaunch"]
    assert replays.count == 3 * 16 and len(replays.children) == 4


def test_work_of_the_backward_pass_has_a_forward_operator(
    trained: make_torch_sample.Expected,
) -> None:
    backward = sum(
        ns for path, ns in trained.ranges.items() if path and path[0].startswith("autograd")
    )
    linked = load(TORCH, LoadOptions(forward=True))
    roots = {one.name for one in project_tree(linked, levels="nvtx").root.children}
    assert roots == {"ProfilerStep"} and backward > trained.gpu_ns / 3
    assert linked.gpu_time == trained.gpu_ns


def own_by_path(tree: StackTree) -> Counter[NvtxPath]:
    paths: Counter[NvtxPath] = Counter()
    path: NvtxPath = ()
    for node in range(len(tree)):
        path = (*path[: int(tree.depth[node])], tree.name(node))
        if tree.own[node]:
            paths[path[1:]] += int(tree.own[node])
    return paths


def names_below(node: Node) -> set[str]:
    return {node.name}.union(*map(names_below, node.children))


def attribute(db: sqlite3.Connection) -> Counter[NvtxPath]:
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
    captured: dict[tuple[int, int | None], NvtxPath] = {}
    paths: Counter[NvtxPath] = Counter()
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


def _open_at(ranges: Ranges, thread: int, time: int) -> NvtxPath:
    return tuple(text for start, end, text in ranges.get(thread, ()) if start <= time <= end)


def _captured(ranges: Ranges, nodes: Nodes, pid: int, node: int | None) -> NvtxPath:
    while node is not None and (pid, node) in nodes:
        node, thread, start = nodes[pid, node]
        if node is None:
            return _open_at(ranges, thread, start)
    return ()
