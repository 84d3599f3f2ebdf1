"""Live recordings: dumps that grow, seen through snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flame
from flame.core.errors import InputError
from flame.core.live import feed as feed_module
from flame.core.live.feed import Feed
from flame.core.live.status import State
from flame.core.live.window import ALL, LAST_10, LAST_60, LONGEST, SECOND, SINCE_MARK
from flame.core.metrics import METRICS
from flame.core.options import LoadOptions
from flame.core.profile import Profile
from flame.core.where import where
from tests.fdumpfile import API, DEVICE, START, DumpFile
from tests.fdumpscripts import Program, Step, scripts

Tree = dict[tuple[object, ...], tuple[int, int]]
LAUNCH = 307


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def feed(clock: Clock) -> Iterator[Feed]:
    feed = Feed(LoadOptions(), clock)
    yield feed
    feed.close()


def tree_of(profile: Profile, metric: str, levels: str | None = None) -> Tree:
    """(own value, own number) of each place, by the frames from the root down to it."""
    tree = profile.tree(levels, metric=metric)
    found: Tree = {}
    for node in range(len(tree)):
        path, at = [], node
        while at >= 0:
            frame = tree.frames[int(tree.frame[at])]
            path.append((frame.kind, tree.text[int(tree.frame[at])], frame.file, frame.extra))
            at = int(tree.parent[at])
        found[tuple(path)] = int(tree.own[node]), int(tree.own_count[node])
    return found


LEVELS = "rank,process,thread,device,stream,python,launch,nvtx,kernel"


def assert_same(live: Profile, loaded: Profile) -> None:
    """They show the same, frame by frame, whatever it is weighed by."""
    for metric in METRICS:
        if metric.table == "gpu" and (len(loaded.activities) or live.size):
            levels = LEVELS
            assert tree_of(live, metric.key, levels) == tree_of(loaded, metric.key, levels)
    assert live.gpu_time == loaded.gpu_time
    assert live.counts == loaded.counts
    assert live.coverage == loaded.coverage
    assert live.graph_nodes == loaded.graph_nodes
    assert live.size == len(loaded.activities)


def kernels(dump: DumpFile, times: range, length: int = 10, **fields: int) -> None:
    """Launched kernels that start at ``times``, ns; each by a call 5 ns before it."""
    for at, start in enumerate(times, 1 + len(times) * fields.pop("first", 0)):
        dump.launch(start - 5, start - 2, at, api=LAUNCH)
        dump.kernel("gemm", start, start + length, at, **fields)


@given(scripts, st.lists(st.integers(0, 30), max_size=4), st.sampled_from([1, 2, None]))
@settings(max_examples=60)
def test_all_of_a_dump_is_what_a_load_of_it_shows(
    tmp_path_factory: pytest.TempPathFactory, script: list[Step], cuts: list[int], rows: int | None
) -> None:
    path = tmp_path_factory.mktemp("live") / "100-1.fdump"
    dump = DumpFile(rows=rows)
    dump.ended = False
    program = Program(dump)
    feed = Feed(LoadOptions(), Clock())
    feed.add(dump.write(path))
    for at, (name, *values) in enumerate(script):
        getattr(program, name)(*values)
        if at in cuts:
            dump.write(path)
            feed.update()
            feed.snapshot(ALL)
    program.end()
    dump.ended = True
    dump.write(path)
    feed.update(60)
    assert_same(feed.snapshot(ALL).profile, flame.load(path))
    feed.close()
