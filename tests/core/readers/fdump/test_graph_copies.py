"""Where copies of graph nodes come from that were not told of: loaded, and while it is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flame.core.live.feed import RecordingFeed
from flame.core.live.window import ALL
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.fdumpfile import DumpFile

GRAPH, EXEC, OTHER = 3, 5, 8


def node(graph: int, number: int) -> int:
    return graph << 32 | number


def captured(*numbers: int, graph: int = GRAPH) -> DumpFile:
    """A dump with a graph of these nodes, each captured in a range of its own."""
    dump = DumpFile()
    for number in numbers:
        dump.graph_node(node(graph, number), 0, number, tid=100, nvtx=dump.nvtx(f"layer {number}"))
    return dump


def replay(dump: DumpFile, *nodes: int) -> None:
    for place, one in enumerate(nodes):
        dump.launch(1000 + 20 * place, 1005 + 20 * place, place + 1)
        dump.kernel("gemm", 1010 + 20 * place, 1015 + 20 * place, place + 1, graph_node=one)


@pytest.fixture
def feed() -> Iterator[RecordingFeed]:
    feed = RecordingFeed(LoadOptions())
    yield feed
    feed.close()


def ranges(dump: DumpFile, folder: Path, feed: RecordingFeed) -> list[str]:
    """The range that each kernel was captured in, and that a snapshot says the same."""
    path = dump.write(folder / "100-1.fdump")
    feed.add(path)
    feed.update(60)
    found = []
    for profile in (load(path), feed.snapshot(ALL).profile):
        tree = project_tree(profile, "nvtx,kernel", metric="count")
        named = {tree.names(at)[0]: int(tree.own[at]) for at in range(1, len(tree)) if tree.own[at]}
        found.append(sorted(name for name, count in named.items() for _ in range(count)))
    assert found[0] == found[1]
    return found[0]


ONE, TWO, NONE = "layer 1", "layer 2", "gemm"


def test_they_are_those_with_their_number(tmp_path: Path, feed: RecordingFeed) -> None:
    dump = captured(1, 2)
    dump.record("graph_exec", exec=EXEC, graph=GRAPH)
    replay(dump, node(EXEC, 1), node(EXEC, 2), node(EXEC, 2), node(EXEC, 7), node(OTHER, 1))
    assert ranges(dump, tmp_path, feed) == sorted([ONE, TWO, TWO, NONE, NONE])


def test_what_was_told_comes_first(tmp_path: Path, feed: RecordingFeed) -> None:
    dump = captured(1, 2)
    dump.record("graph_exec", exec=EXEC, graph=GRAPH)
    dump.graph_node(node(EXEC, 1), node(GRAPH, 1), 10)
    dump.graph_node(node(EXEC, 2), node(GRAPH, 1), 10)
    dump.graph_node(node(EXEC, 2), node(GRAPH, 2), 10)
    replay(dump, node(EXEC, 1), node(EXEC, 2))
    assert ranges(dump, tmp_path, feed) == sorted([NONE, ONE])


def test_one_copy_that_is_told_otherwise_refutes_the_rule(
    tmp_path: Path, feed: RecordingFeed
) -> None:
    dump = captured(1, 2)
    dump.record("graph_exec", exec=EXEC, graph=GRAPH)
    dump.graph_node(node(EXEC, 2), node(GRAPH, 1), 10)
    replay(dump, node(EXEC, 1), node(EXEC, 2))
    assert ranges(dump, tmp_path, feed) == sorted([NONE, ONE])


def test_numbers_of_executable_graphs_may_be_their_own(tmp_path: Path, feed: RecordingFeed) -> None:
    dump = captured(1, 2)
    dump.graph_node(node(EXEC, 1), 0, 10, tid=100, nvtx=dump.nvtx("layer 2"))
    dump.record("graph_exec", exec=EXEC, graph=GRAPH)
    replay(dump, node(EXEC, 1), node(EXEC, 2))
    assert ranges(dump, tmp_path, feed) == sorted([NONE, TWO])


def test_a_copy_that_is_told_of_twice_is_one(tmp_path: Path, feed: RecordingFeed) -> None:
    dump = captured(1, 2)
    for time in (10, 20):
        dump.graph_node(node(EXEC, 1), node(GRAPH, 1), time, tid=time, nvtx=dump.nvtx("clone"))
    replay(dump, node(EXEC, 1))
    assert ranges(dump, tmp_path, feed) == [ONE]


def test_an_executable_graph_of_two_graphs_is_of_none(tmp_path: Path, feed: RecordingFeed) -> None:
    dump = captured(1, 2)
    for graph in (GRAPH, OTHER):
        dump.record("graph_exec", exec=EXEC, graph=graph)
    replay(dump, node(EXEC, 1))
    assert ranges(dump, tmp_path, feed) == [NONE]


def test_circles_lead_nowhere(tmp_path: Path, feed: RecordingFeed) -> None:
    dump = captured(1)
    dump.record("graph_exec", exec=EXEC, graph=OTHER)
    dump.record("graph_exec", exec=OTHER, graph=EXEC)
    dump.record("graph_exec", exec=(1 << 32) - 1, graph=(1 << 32) - 1)
    replay(dump, node(EXEC, 1), node((1 << 32) - 1, 1))
    assert ranges(dump, tmp_path, feed) == [NONE, NONE]
