"""Random CUDA programs on the test double: the dump holds what ran, record for record."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import PATIENCE
from tests.support.writers import fdumprecords

WORKLOAD = Path(__file__).with_name("truth_workload.py")
KINDS = {"ok": 1, "version:27": 2, "shuffle": 3}
"""What the double is told, and the seed: CUPTI 13, CUPTI 12.9, records in another order."""
ACTIONS = 60
GPU_NODES = (0, 1, 2)
"""Types of graph nodes that run on the GPU: CUgraphNodeType kernel, memcpy, memset."""
Row = dict[str, Any]
Stack = list[tuple[str, str, int]]


@dataclass(frozen=True)
class Run:
    """What a program did, by the double and by itself, and what its dump says."""

    truth: dict[str, list[Row]]
    log: list[Any]
    dump: Path
    records: dict[str, Any]

    def rows(self, key: str) -> list[Row]:
        """The dump's records of a kind."""
        array = self.records[key]
        return [dict(zip(array.dtype.names, row.tolist(), strict=True)) for row in array]

    def text(self, number: int) -> str:
        """A text of the dump."""
        return fdumprecords.text(self.records, number)

    def stack(self, node: int) -> Stack:
        """The frames of a node of the dump."""
        return fdumprecords.stack(self.records, node)

    def ranges(self, node: int) -> list[str]:
        """The names of the ranges of a node of the dump."""
        return [name for name, _, _ in self.stack(node)]


def record(folder: Path, env: dict[str, str], *command: object) -> Run:
    """Runs a Python program on the double, and reads what it and the double wrote."""
    env |= {"FAKE_TRUTH": str(folder / "truth"), "FAKE_DEVICES": "2"}
    log = folder / "log"
    subprocess.run(
        [sys.executable, *map(str, command), log], env=env, check=True, timeout=2 * PATIENCE
    )
    [dump], [truth] = folder.glob("dump/*.fdump"), folder.glob("truth.*")
    told = defaultdict(list)
    for line in truth.read_text().splitlines():
        row = json.loads(line)
        told[row.pop("what")].append(row)
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    return Run(told, logged, dump, fdumprecords.records(dump))


@pytest.fixture(scope="module", params=KINDS)
def run(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    injected_env: Callable[..., dict[str, str]],
) -> Run:
    """A random program with three threads, in three contexts on two devices."""
    folder = tmp_path_factory.mktemp("truth")
    env = injected_env(folder / "dump", FAKE_CUPTI=request.param)
    return record(folder, env, WORKLOAD, KINDS[request.param], ACTIONS)


def by_correlation(rows: list[Row]) -> dict[int, Row]:
    """The rows by correlation id, which no two have."""
    found = {row["correlation"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def by_operation(rows: list[Row]) -> dict[tuple[int, int], Row]:
    """The rows by correlation id and graph node, which no two have."""
    found = {(row["correlation"], row["graph_node"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_every_call_is_recorded_once(run: Run) -> None:
    assert len(run.truth["launch"]) > ACTIONS
    told, found = by_correlation(run.truth["launch"]), by_correlation(run.rows("launch"))
    assert told.keys() == found.keys()
    apis = {row["id"]: run.text(row["text"]) for row in run.rows("name") if row["kind"] == 5}
    for number, call in told.items():
        row = found[number]
        assert (row["api"], apis[row["api"]]) == (call["cbid"], call["api"])
        assert (row["tid"], row["context"]) == (call["tid"], call["context"])
        assert run.text(row["symbol"]) == ("" if call["failed"] else call["symbol"])
        assert row["flags"] & 1 == call["failed"]
        assert call["start"] <= row["start"] <= row["end"] <= call["end"]


def test_every_call_has_the_stack_and_ranges_that_the_program_was_in(run: Run) -> None:
    told, found = calls_by_thread(run.truth["launch"]), by_correlation(run.rows("launch"))
    logged = defaultdict(list)
    for tid, *entry in run.log:
        logged[tid].append(entry)
    assert told.keys() == logged.keys()
    assert any(status for entries in logged.values() for *_, status in entries), "none failed"
    for tid, calls in told.items():
        for call, (api, frames, ranges, status) in zip(calls, logged[tid], strict=True):
            row = found[call["correlation"]]
            assert (call["api"], call["failed"]) == (api, status != 0)
            assert row["flags"] >> 1 & 0x7FFF == status
            assert run.stack(row["python"]) == [tuple(frame) for frame in frames]
            assert run.ranges(row["nvtx"]) == ranges


def test_every_call_that_may_block_is_recorded_once(run: Run) -> None:
    """In the order in which each thread made them: they have no number of their own."""
    told, found = calls_by_thread(run.truth["call"]), calls_by_thread(run.rows("call"))
    assert told.keys() == found.keys() and len(run.truth["call"]) > ACTIONS / 4
    apis = {row["id"]: run.text(row["text"]) for row in run.rows("name") if row["kind"] == 5}
    for tid, calls in told.items():
        for call, row in zip(calls, found[tid], strict=True):
            assert (row["api"], apis[row["api"]]) == (call["cbid"], call["api"])
            assert (row["context"], row["result"] != 0) == (call["context"], call["failed"])
            assert call["start"] <= row["start"] <= row["end"] <= call["end"]


def test_calls_do_not_overlap_on_their_thread(run: Run) -> None:
    for calls in calls_by_thread(run.rows("launch") + run.rows("call")).values():
        ends = [call["end"] for call in calls]
        assert all(end <= call["start"] for end, call in zip(ends, calls[1:], strict=False))


def calls_by_thread(calls: list[Row]) -> dict[int, list[Row]]:
    """The calls of each thread in their order."""
    found = defaultdict(list)
    for call in sorted(calls, key=lambda call: call["start"]):
        found[call["tid"]].append(call)
    return found


KERNEL_FIELDS = (
    *("start", "end", "tid", "device", "context", "stream", "graph"),
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("cluster_x", "cluster_y", "cluster_z", "registers", "static_shared", "dynamic_shared"),
    "local",
)


def test_every_kernel_is_recorded_once_with_what_launched_it(run: Run) -> None:
    assert any(row["graph_node"] for row in run.truth["kernel"])
    told, found = by_operation(run.truth["kernel"]), by_operation(run.rows("kernel"))
    assert told.keys() == found.keys()
    launches = by_correlation(run.rows("launch"))
    for key, kernel in told.items():
        row, launch = found[key], launches[kernel["correlation"]]
        assert [row[name] for name in KERNEL_FIELDS] == [kernel[name] for name in KERNEL_FIELDS]
        assert run.text(row["symbol"]) == kernel["symbol"]
        assert (row["python"], row["nvtx"]) == (launch["python"], launch["nvtx"])


MEMOP_FIELDS = (
    *("start", "end", "bytes", "tid", "device", "context", "stream", "graph"),
    *("copy_kind", "source", "target"),
)


def test_every_copy_and_set_is_recorded_once_with_what_asked_for_it(run: Run) -> None:
    copies, sets = by_operation(run.truth["memcpy"]), by_operation(run.truth["memset"])
    found = by_operation(run.rows("memop"))
    assert copies and sets and found.keys() == copies.keys() | sets.keys()
    launches = by_correlation(run.rows("launch"))
    for key, row in found.items():
        told, launch = (copies | sets)[key], launches[row["correlation"]]
        assert row["kind"] == (key in sets)
        assert [row[name] for name in MEMOP_FIELDS] == [told[name] for name in MEMOP_FIELDS]
        assert (row["python"], row["nvtx"]) == (launch["python"], launch["nvtx"])


def test_every_graph_node_is_recorded_once_with_its_origin(run: Run) -> None:
    told = {row["node"]: row for row in run.truth["graph_node"] if row["type"] in GPU_NODES}
    found = {row["node"]: row for row in run.rows("graph_node")}
    assert told and len(found) == len(run.rows("graph_node")) and told.keys() == found.keys()
    for number, node in told.items():
        row = found[number]
        same = ("original", "graph", "tid")
        assert [row[name] for name in same] == [node[name] for name in same]
        assert node["start"] <= row["time"] <= node["end"]
    assert all(row["original"] in found for row in found.values() if row["original"])


def test_captured_nodes_have_the_stack_and_ranges_of_the_captured_call(run: Run) -> None:
    launches, captured = run.rows("launch"), 0
    for node in run.rows("graph_node"):
        for call in launches:
            inside = call["start"] <= node["time"] <= call["end"] and call["tid"] == node["tid"]
            if inside and not node["original"]:
                captured += 1
                assert run.stack(node["python"]) == run.stack(call["python"])
                assert run.ranges(node["nvtx"]) == run.ranges(call["nvtx"])
    assert captured


def test_the_rest_of_the_dump_is_true(run: Run) -> None:
    head = fdumprecords.header(run.dump)
    assert (head["state"], head["flags"], head["dropped"]) == (1, 0, 0)
    assert not len(run.records["drop"]) and not len(run.records["sample"])
    same = ("crc", "size", "context", "module")
    modules = [[row[name] for name in same] for row in run.rows("module")]
    assert sorted(modules) == sorted([row[name] for name in same] for row in run.truth["module"])
    devices = {row["id"]: run.text(row["text"]) for row in run.rows("name") if row["kind"] == 4}
    used = {row["device"] for row in run.truth["kernel"] + run.truth["memcpy"]}
    assert devices == {number: f"Simulated GPU {number}" for number in used}


def test_lost_records_are_counted(
    tmp_path: Path, injected_env: Callable[..., dict[str, str]]
) -> None:
    env = injected_env(tmp_path / "dump", FAKE_CUPTI="drop:7")
    run = record(tmp_path, env, WORKLOAD, 4, ACTIONS)
    lost = {(row["correlation"], row["graph_node"]) for row in run.truth["dropped"]}
    ran = by_operation(run.truth["kernel"] + run.truth["memcpy"] + run.truth["memset"])
    found = by_operation(run.rows("kernel") + run.rows("memop"))
    assert lost and found.keys() == ran.keys() - lost
    assert sum(row["count"] for row in run.rows("drop")) == len(lost)
    assert fdumprecords.header(run.dump)["dropped"] == len(lost)
