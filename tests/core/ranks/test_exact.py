"""Every node of a summary of real traces is that of the traces loaded as one, in every metric."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from flame.core.errors import FlameError
from flame.core.loading.many import load, load_all
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.project import project
from flame.core.projection.selection import Selection, select
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.opened import profile_of
from flame.core.rank_summary.summary import METRICS, RankSummary
from flame.core.rank_summary.summary_file import pack_summary, unpack_summary
from flame.core.ranks.summarise import summarise
from tests.conftest import TRACES, needs_traces

pytestmark = [pytest.mark.deep, needs_traces]

EVERY = 1 << 30
LEVELS = (
    "kernel",
    "nvtx,kernel",
    "launch,nvtx,kernel",
    "python,native,nvtx,launch,kernel",
    "kernel,nvtx,python",
)
HOST_LEVELS = ("python,nvtx,launch", "launch,nvtx")
NAMINGS: tuple[dict[str, object], ...] = ({}, {"fold": True}, {"kernel_names": "demangled"})
Nodes = Counter[tuple[str, ...]]


def has_rows(path: Path) -> bool:
    profile = load(path)
    return not profile.resolved and len(profile.activities) > 0


FILES = [*sorted(TRACES.glob("nsys/*.sqlite")), *sorted(TRACES.glob("kineto/*.gz"))]


def nodes_of(tree: StackTree) -> tuple[Nodes, Nodes, Nodes]:
    """Totals, own values and counts by paths of frames."""
    found: tuple[Nodes, Nodes, Nodes] = (Counter(), Counter(), Counter())
    paths: list[tuple[str, ...]] = []
    for node in range(len(tree)):
        before = paths[int(tree.parent[node])] if node else ()
        frame = tree.frames[int(tree.frame[node])]
        paths.append((*before, f"{frame.kind} {tree.name(node)} {frame.file} {frame.line}"))
        for column, values in zip(found, (tree.total, tree.own, tree.count), strict=True):
            column[paths[-1]] += int(values[node])
    return found


def selections() -> Iterator[Selection]:
    for metric in METRICS:
        of_metric = HOST_LEVELS if metric == "host" else LEVELS
        for levels, naming in itertools.product(of_metric, NAMINGS):
            yield select(levels, metric=metric, **naming)  # type: ignore[arg-type]


def tree_of(profile: Profile, selection: Selection) -> StackTree | str:
    try:
        return project(profile, selection)
    except FlameError as error:
        return type(error).__name__


def check(whole: Profile, opened: Profile) -> int:
    """Compare all nodes of all trees; return how many there are."""
    nodes = 0
    for selection in selections():
        wanted, found = tree_of(whole, selection), tree_of(opened, selection)
        if isinstance(wanted, str) or isinstance(found, str):
            assert wanted == found, selection
            continue
        assert nodes_of(wanted) == nodes_of(found), selection
        nodes += len(wanted)
    return nodes


def summed_up(path: Path) -> RankSummary:
    return summarise(load(path), path, EVERY).summary


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_node_of_a_trace(path: Path) -> None:
    assert check(load(path), profile_of(summed_up(path))) or not has_rows(path)


def together(paths: Sequence[Path]) -> None:
    parts = [summed_up(path) for path in paths]
    merged = unpack_summary(pack_summary(merge_summaries(parts)), "x")
    assert check(load_all(paths), profile_of(merged))


@pytest.mark.parametrize("seed", range(4))
def test_every_node_of_several_traces(seed: int) -> None:
    draw = random.Random(seed)
    together(draw.sample([path for path in FILES if has_rows(path)], 4))


def test_every_node_of_all_of_a_format() -> None:
    together([path for path in FILES if path.suffix == ".sqlite" and has_rows(path)])


def test_each_rank_has_the_nodes_of_its_trace() -> None:
    """In the summary of all, which keeps every cell here."""
    parts = {path: summed_up(path) for path in FILES if has_rows(path)}
    merged = merge_summaries(list(parts.values()))
    ranks = Counter(merged.rank.tolist())
    alone = [path for path, part in parts.items() if len(part) == 1 == ranks[int(part.rank[0])]]
    assert len(alone) > 3
    for path in alone:
        assert check(load(path), profile_of(merged, [int(parts[path].rank[0])]))


@pytest.mark.parametrize("seed", range(3))
def test_any_order_and_tree_gives_the_same_bytes(seed: int) -> None:
    parts = [summed_up(path) for path in FILES if has_rows(path)]
    whole, draw = pack_summary(merge_summaries(parts)), random.Random(seed)
    while len(parts) > 1:
        draw.shuffle(parts)
        some = draw.randint(1, min(5, len(parts)))
        parts = [*parts[some:], merge_summaries(parts[:some])]
    assert pack_summary(parts[0]) == whole
