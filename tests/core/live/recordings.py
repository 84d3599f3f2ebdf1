"""Recordings for the tests of the feed: a clock, dumps, and the trees that are shown of them."""

from __future__ import annotations

from flame.core.errors import NoMatchError
from flame.core.model.frames import Kind
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.model.stack_joins import SEPARATING_MARKS
from flame.core.projection.filters import Filter
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.fdumpfile import API, START, DumpFile

Place = tuple[Kind, str, str, tuple[tuple[str, str], ...]]
Tree = dict[tuple[Place, ...], tuple[int, int]]
LAUNCH = 307


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


def tree_of(
    profile: Profile, metric: str, levels: str | None = None, where: tuple[Filter, ...] = ()
) -> Tree:
    """(own value, own number) of each place, by the frames from the root down to it."""
    try:
        tree = project_tree(profile, levels, where, metric)
    except NoMatchError:
        return {}
    found: Tree = {}
    if not tree.count[0]:
        return found
    for node in range(len(tree)):
        path: list[Place] = []
        at = node
        while at >= 0:
            frame = tree.frames[int(tree.frame[at])]
            # Ranges of several domains may be shown as one: which of them has come first differs.
            marks = tuple(pair for pair in frame.extra if pair in SEPARATING_MARKS)
            path.append((frame.kind, tree.text[int(tree.frame[at])], frame.file, marks))
            at = int(tree.parent[at])
        found[tuple(path[::-1])] = int(tree.own[node]), int(tree.own_count[node])
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


def at(dump: DumpFile, *times: int, length: int = 10, first: int = 1, **fields: int) -> DumpFile:
    """``dump`` with a kernel that starts at each of ``times``, ns; its call began 5 ns before."""
    for number, start in enumerate(times, first):
        dump.launch(start - 5, start - 2, number, api=LAUNCH)
        dump.kernel("gemm", start, start + length, number, **fields)
    return dump


def running(pid: int = 100, start: int = START) -> DumpFile:
    """A dump that is still being written."""
    dump = DumpFile(pid, start=start)
    dump.ended = False
    dump.name(API, LAUNCH, "cuLaunchKernel")
    return dump
