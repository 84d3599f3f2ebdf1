"""CUDA graphs that are recorded as a whole, and what CUPTI loses of their nodes."""

from __future__ import annotations

import pytest

from flame.core.live.feed import RecordingFeed
from flame.core.live.window import ALL
from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.options import LoadOptions
from flame.core.readers.fdump.tally import is_empty_dump
from tests.core.live.recordings import Clock, assert_same
from tests.inject.cupti.cupti_recorded import GRAPH, KERNEL, UNTIMED, Record
from tests.inject.cupti.graphs.test_graph_sources import REPLAYED
from tests.support.profiles.project_tree import project_tree

WHOLE = {"FLAME_GRAPHS": "whole"}
LONG = """
graph = instantiate(capture())
for _ in range(int(os.environ["REPLAYS"])): replay(graph)
synchronize()
time.sleep(0.3)
"""


def test_a_launch_of_a_graph_is_one_activity(record: Record) -> None:
    recorded = record(GRAPH + REPLAYED + "check(launch(first, on))\nsynchronize()", **WHOLE)
    runs, kernels = recorded.of["graph_run"], recorded.of["kernel"]
    assert (len(runs), len(kernels)) == (3, 1) and not kernels["graph_node"].any()
    assert {recorded.top(row["python"]) for row in runs} == {"replay"}
    profile = load(recorded.path)
    spent = int((runs["end"] - runs["start"]).sum())
    assert int(profile.activities.duration.sum()) == spent + int(
        (kernels["end"] - kernels["start"]).sum()
    )
    tree = project_tree(profile, "python,kernel")
    [node] = [node for node in range(len(tree)) if tree.kind(node) == Kind.GRAPH]
    assert tree.names(node)[-1] == f"CUDA graph {int(runs['graph'][0])}"
    assert int(tree.total[node]) == spent and "replay" in tree.names(node)
    assert any("record without --graphs whole" in line for line in profile.warnings)


def test_where_cupti_cannot_the_nodes_are_recorded(record: Record) -> None:
    recorded = record(GRAPH + REPLAYED, FAKE_CUPTI="no_graph_trace", **WHOLE)
    assert not len(recorded.of["graph_run"]) and recorded.of["kernel"]["graph_node"].all()
    [note] = recorded.meta["note"]
    assert note == "CUPTI does not report CUDA graphs as a whole here: their nodes are recorded"


@pytest.mark.parametrize(("limit", "lost"), [(2, 380), (60, 0)])
def test_kernels_without_times_in_long_replays_are_told_of_once(
    record: Record,
    limit: int,
    lost: int,
) -> None:
    more = {"FLAME_POOL": str(limit), "FLAME_FLUSH_MS": "2", "REPLAYS": "200"}
    recorded = record(GRAPH + LONG, FAKE_CUPTI="pool:10", **more)
    timed = len(recorded.of["kernel"])
    assert (timed, recorded.dropped()) == (400 - lost, {(UNTIMED, KERNEL): lost} if lost else {})
    told = [line for line in load(recorded.path).warnings if line.startswith("CUPTI has no times")]
    assert len(told) == (1 if lost else 0)
    assert all("flame record --graphs whole" in line for line in told)


def test_the_live_view_shows_the_same(record: Record) -> None:
    recorded = record(GRAPH + REPLAYED, **WHOLE)
    assert not is_empty_dump(recorded.path)
    feed = RecordingFeed(LoadOptions(), Clock())
    feed.add(recorded.path)
    feed.update(60)
    assert_same(feed.snapshot(ALL).profile, load(recorded.path))
    feed.close()
