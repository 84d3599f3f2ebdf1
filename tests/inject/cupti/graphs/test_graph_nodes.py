"""Nodes of CUDA graphs lead back to where they were captured or added."""

from __future__ import annotations

from collections import Counter

from tests.inject.cupti.cupti_recorded import GRAPH, Record, by


def test_nodes_of_a_graph_lead_back_to_where_they_were_captured(record: Record) -> None:
    recorded = record(f"""{GRAPH}
graph = instantiate(capture())
for _ in range(3): replay(graph)
synchronize()
""")
    of = recorded.of
    nodes = by(of["graph_node"], "node")
    captured = {node: row for node, row in nodes.items() if not row["original"]}
    assert len(captured) == 3 and len(nodes) == 6
    made_in: dict[int, str] = {}
    for node, row in nodes.items():
        if row["original"]:
            made_in[node] = recorded.top(captured[int(row["original"])]["python"])
            assert recorded.top(row["python"]) == "instantiate"
    work = [*of["kernel"], *of["memop"]]
    assert Counter(made_in[int(row["graph_node"])] for row in work) == {
        "layer_one": 3,
        "layer_two": 6,
    }
    assert {recorded.top(row["python"]) for row in work} == {"replay"}
    replays = [row for row in of["launch"] if recorded.top(row["python"]) == "replay"]
    correlations = Counter(int(row["correlation"]) for row in work)
    assert correlations == {int(row["correlation"]): 3 for row in replays}
    # What was captured did not run: only the replays did.
    assert len(of["launch"]) == 3 + 3 and len(work) == 9


def test_nodes_that_are_added_by_hand(record: Record) -> None:
    recorded = record(f"""{GRAPH}
class Parameters(ctypes.Structure):
    _fields_ = [("function", pointer), ("size", ctypes.c_uint * 7), ("arguments", pointer),
                ("extra", pointer), ("kernel", pointer), ("context", pointer)]
def by_hand():
    graph = make(cuda.cuGraphCreate, 0)
    wanted = Parameters(first, (2, 1, 1, 32, 1, 1, 0))
    make(cuda.cuGraphAddEmptyNode, graph, None, ctypes.c_size_t(0))
    add = cuda.cuGraphAddKernelNode_v2
    node = pointer()
    check(add(ctypes.byref(node), graph, None, ctypes.c_size_t(0), ctypes.byref(wanted)))
    return graph
replay(instantiate(by_hand()))
synchronize()
""")
    of = recorded.of
    made, clone = of["graph_node"]
    assert (int(made["original"]), clone["original"]) == (0, made["node"])
    assert recorded.top(made["python"]) == "by_hand" and made["graph"] != clone["graph"]
    (row,) = of["kernel"]
    assert (row["graph_node"], row["graph"]) == (clone["node"], clone["graph"])
