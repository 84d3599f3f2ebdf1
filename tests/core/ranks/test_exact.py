"""Every node of a summary of real traces is that of the traces loaded as one, in every metric."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
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
Paths = dict[tuple[int | None, str], int]
"""Numbers of paths, the same in all trees: each by the path above it and its last frame."""
Nodes = dict[int, tuple[int, ...]]


@cache
def has_rows(path: Path) -> bool:
    profile = load(path)
    return not profile.resolved and len(profile.activities) > 0


FILES = [*sorted(TRACES.glob("nsys/*.sqlite")), *sorted(TRACES.glob("kineto/*.gz"))]


def nodes_of(tree: StackTree, paths: Paths) -> Nodes:
    """Total, own value and count by path; those of which all are 0 do not tell trees apart."""
    found: Nodes = {}
    path_of: list[int] = []
    shown = [shown_frame(tree, frame) for frame in range(len(tree.text))]
    columns = (tree.parent, tree.frame, tree.total, tree.own, tree.count)
    for parent, frame, *values in zip(*(each.tolist() for each in columns), strict=True):
        before = path_of[parent] if path_of else None
        path = paths.setdefault((before, shown[frame]), len(paths))
        path_of.append(path)
        found[path] = tuple(map(sum, zip(found.get(path, (0, 0, 0)), values, strict=True)))
    return {path: values for path, values in found.items() if any(values)}


def shown_frame(tree: StackTree, frame: int) -> str:
    known = tree.frames[frame]
    return f"{known.kind} {tree.text[frame]} {known.file} {known.line}"


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
        paths: Paths = {}
        assert nodes_of(wanted, paths) == nodes_of(found, paths), selection
        nodes += len(wanted)
    return nodes


@cache
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
