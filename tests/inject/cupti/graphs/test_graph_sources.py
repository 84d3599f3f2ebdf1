"""Where work of CUDA graphs comes from, however little CUPTI tells of how they were made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from flame.core.loading.many import load
from tests.inject.cupti.cupti_recorded import GRAPH, Record
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.fdumprecords import records

REPLAYED = """
graph = instantiate(capture())
for _ in range(3): replay(graph)
synchronize()
"""
OF_A_CLONE = """
graph = instantiate(make(lambda clone: cuda.cuGraphClone(clone, capture())))
for _ in range(3): replay(graph)
synchronize()
"""
WITHIN = """
def child():
    whole = make(cuda.cuGraphCreate, 0)
    make(cuda.cuGraphAddChildGraphNode, whole, None, ctypes.c_size_t(0), capture())
    return whole
graph = instantiate(child())
for _ in range(3): replay(graph)
synchronize()
"""
# What CUPTI does not tell, or tells besides.
TOLD = {
    "all of it": "",
    "copies as if they had been made": "quiet_clones",
    "sources of nodes": "version:130400",
    "sources, as if they had been made": "version:130400,quiet_clones",
}


def captured_by(dump: Path) -> Counter[str]:
    """How often work of graphs ran, by the function that it was captured in."""
    tree = project_tree(load(dump), "python,kernel", metric="count")
    found: Counter[str] = Counter()
    for node in range(1, len(tree)):
        frames = [name for name in tree.names(node) if "layer_" in name]
        if own := int(tree.own[node]):
            found[frames[-1] if frames else "?"] += own
    return +found


def layers(found: Counter[str]) -> dict[str, int]:
    return {("one" if "one" in name else "two"): count for name, count in found.items()}


@pytest.mark.parametrize("script", [REPLAYED, OF_A_CLONE, WITHIN], ids=["graph", "clone", "child"])
@pytest.mark.parametrize("faults", TOLD.values(), ids=TOLD)
def test_work_is_where_its_node_was_captured(record: Record, faults: str, script: str) -> None:
    recorded = record(GRAPH + script, FAKE_CUPTI=faults)
    assert captured_by(recorded.path) == {"layer_one": 3, "layer_two": 6}


def test_ids_tell_where_copies_are_not_told(record: Record) -> None:
    recorded = record(GRAPH + REPLAYED, FAKE_CUPTI="no_clones")
    assert not recorded.of["graph_node"]["original"].any()
    [made] = recorded.of["graph_exec"]
    assert set((recorded.of["kernel"]["graph_node"] >> 32).tolist()) == {int(made["exec"])}
    assert captured_by(recorded.path) == {"layer_one": 3, "layer_two": 6}


def test_a_source_that_was_changed_is_told_from_then_on(record: Record) -> None:
    recorded = record(
        GRAPH
        + """
def other():
    check(cuda.cuStreamBeginCapture_v2(on, 0))
    layer_other()
    layer_two()
    return make(lambda graph: cuda.cuStreamEndCapture(on, graph))
def layer_other(): check(launch(first, on))
graph = instantiate(capture())
replay(graph)
result = (ctypes.c_void_p * 3)()
check(cuda.cuGraphExecUpdate_v2(graph, other(), result))
for _ in range(2): replay(graph)
synchronize()
""",
        FAKE_CUPTI="version:130400",
    )
    found = captured_by(recorded.path)
    assert found == {"layer_one": 1, "layer_other": 2, "layer_two": 6}


def test_names_of_failed_launches_are_not_read(record: Record) -> None:
    recorded = record(
        """
good, bad = None, None
context()
good, bad = kernel("good"), kernel("fail_bad")
assert launch(bad) != 0
check(launch(good))
check(cuda.cuCtxSetCurrent(None))
assert launch(good) != 0
""",
        FAKE_CUPTI="wild_names",
    )
    assert [bool(row["symbol"]) for row in records(recorded.path)["launch"]] == [False, True, False]
