"""How long collectives waited, of every node and rank, against plain loops over the traces.

Some collectives are alike on all ranks, some lack a rank, some are broadcasts, and all of a layer
are in one group.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from flame.core.errors import NoMatchError, UsageError
from flame.core.frame import PART_KINDS
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.projection.filter_options import parse_filters
from flame.core.projection.filters import MinShare
from flame.core.projection.project import project
from flame.core.projection.selection import Selection, select
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.opened import profile_of
from flame.core.rank_summary.rank_values import values_of_ranks
from flame.core.rank_summary.rank_waits import RankWaitTable
from flame.core.rank_summary.summary import RankSummary
from flame.core.rank_summary.summary_check import holds_together
from flame.core.rank_summary.summary_file import pack_summary, unpack_summary
from flame.core.ranks.communication.summary_waits import with_waits
from flame.core.ranks.communication.waits import waits_of
from flame.core.ranks.summarise import MOST_CELLS, summarise
from tests.support.ranks.rank_traces import COLLECTIVE, RankRun, write_ranks

RANKS = 4
GEMM = "sm90_xmma_gemm_o"
BROADCAST = COLLECTIVE.replace("AllReduce_Sum_bf16", "Broadcast")


Names = tuple[str, ...]


def change(path: Path, rank: int) -> None:
    """Make every fourth collective a broadcast, and every fourth of a stream that lacks a rank."""
    with closing(sqlite3.connect(path)) as file, file:
        (name,) = file.execute("SELECT id FROM StringIds WHERE value = ?", (COLLECTIVE,)).fetchone()
        file.execute("INSERT INTO StringIds VALUES (9001, ?)", (BROADCAST,))
        (other,) = file.execute("SELECT id FROM StringIds WHERE value = ?", (GEMM,)).fetchone()
        table = "CUPTI_ACTIVITY_KIND_KERNEL"
        query = f"SELECT rowid FROM {table} WHERE shortName = ? ORDER BY start"
        for at, (row,) in enumerate(file.execute(query, (name,)).fetchall()):
            renamed = 9001 if at % 4 == 1 else other if at % 4 == 2 and not rank else name
            stream = 77 if at % 4 == 2 and rank else 20
            file.execute(
                f"UPDATE {table} SET shortName = ?, demangledName = ?, streamId = ? "
                "WHERE rowid = ?",
                (renamed, renamed, stream, row),
            )


class Made(NamedTuple):
    """The traces, their summary, and how long each rank waited where, by plain loops.

    ``waiting`` and ``transfer`` are by (rank, path of names).
    """

    profiles: list[Profile]
    summary: RankSummary
    waiting: dict[tuple[int, Names], int]
    transfer: dict[tuple[int, Names], int]


def summed_up(run: RankRun, profiles: list[Profile], most: int = MOST_CELLS) -> RankSummary:
    parts = [summarise(one, path, most) for one, path in zip(profiles, run.paths, strict=True)]
    merged = merge_summaries([part.summary for part in parts])
    measured = [waits_of(part.arrivals[0], merged.collectives, RANKS) for part in parts]
    return with_waits(merged, measured)


def loops(profiles: list[Profile]) -> tuple[dict[tuple[int, Names], int], ...]:
    """Match the collectives of stream 20 by their order, and nothing else."""
    calls = []
    for profile in profiles:
        table, found = profile.activities, []
        for row in np.argsort(table.start, kind="stable").tolist():
            name = profile.frames[int(table.frame[row])].name
            if name == COLLECTIVE and int(table.stream[row]) == 20:
                found.append((path_of(profile, row), int(table.duration[row])))
        calls.append(found)
    waiting, transfer = (
        defaultdict[tuple[int, Names], int](int),
        defaultdict[tuple[int, Names], int](int),
    )
    for met in zip(*calls, strict=True):
        least = min(duration for _, duration in met)
        for rank, (path, duration) in enumerate(met):
            waiting[rank, path] += duration - least
            transfer[rank, path] += least
    return waiting, transfer


def path_of(profile: Profile, row: int) -> Names:
    """The ranges and the name of an activity."""
    table = profile.activities
    stack = int(table.groups.nvtx[table.groups.of_row[row]])
    names: list[str] = []
    while stack > 0:
        names.append(profile.frames[int(table.stacks.frame[stack])].name)
        stack = int(table.stacks.parent[stack])
    return (*reversed(names), profile.frames[int(table.frame[row])].name)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RankRun:
    run = write_ranks(tmp_path_factory.mktemp("run"), RANKS, steps=5, layers=3, straggler=2)
    for rank, path in enumerate(run.paths):
        change(path, rank)
    return run


@pytest.fixture(scope="module")
def made(run: RankRun) -> Made:
    profiles = [load(path) for path in run.paths]
    return Made(profiles, summed_up(run, profiles), *loops(profiles))


def named(tree: StackTree) -> dict[Names, int]:
    return {tree.names(node): node for node in range(len(tree))}


def expected(made: Made, split: bool) -> dict[tuple[int, Names], int]:
    """GPU time by rank and path of ranges and kernels; waiting and transfer below, if split."""
    found = defaultdict[tuple[int, Names], int](int)
    for rank, profile in enumerate(made.profiles):
        for row in range(len(profile.activities)):
            found[rank, path_of(profile, row)] += int(profile.activities.duration[row])
    for name, parts in (("[waiting]", made.waiting), ("[transfer]", made.transfer)):
        for (rank, path), value in parts.items() if split else ():
            found[rank, path] -= value
            if value:
                found[rank, (*path, name)] += value
    return found


def check(summary: RankSummary, tree: StackTree, wanted: dict[tuple[int, Names], int]) -> None:
    """Compare all nodes of ``tree`` with sums of ``wanted``, all ranks together and one by one."""
    sums = defaultdict[tuple[int, Names], int](int)
    for (rank, path), value in wanted.items():
        for end in range(len(path) + 1):
            sums[rank, path[:end]] += value
    nodes = named(tree)
    assert {path for (_, path), value in sums.items() if value} <= set(nodes)
    values = values_of_ranks(summary, tree, np.arange(len(tree)))
    for path, node in nodes.items():
        of_ranks = [sums[rank, path] for rank in range(RANKS)]
        assert values[node].tolist() == of_ranks, path
        assert int(tree.total[node]) == sum(of_ranks)


def test_every_node_has_what_its_collectives_waited(made: Made) -> None:
    tree = project(profile_of(made.summary), select("nvtx,kernel", metric="wait"))
    check(made.summary, tree, made.waiting)
    assert made.summary.waits is not None
    assert int(tree.total[0]) == sum(made.waiting.values()) == made.summary.waits.wait.sum()
    assert int(tree.count[0]) == RANKS * sum(1 for at in range(15) if at % 4 in (0, 3))


def test_gpu_time_is_waiting_transfer_and_what_is_not_known(made: Made) -> None:
    opened = profile_of(made.summary)
    tree = project(opened, select("nvtx,kernel,wait"))
    check(made.summary, tree, expected(made, split=True))
    # Some collectives of a group are not split: that is the kernel's own.
    assert any(
        tree.own[node] > 0 and tree.end[node] > node + 1
        for path, node in named(tree).items()
        if path and path[-1] == COLLECTIVE
    )
    whole = project(opened, select("nvtx,kernel"))
    for path, node in named(whole).items():
        split = named(tree)[path]
        assert (whole.total[node], whole.count[node]) == (tree.total[split], tree.count[split])


@pytest.mark.parametrize("metric", ["gpu", "wait"])
@pytest.mark.parametrize("levels", ["wait,kernel", "kernel,wait,nvtx", "wait"])
def test_the_level_may_stand_anywhere(levels: str, metric: str, made: Made) -> None:
    places = {"nvtx": slice(0, -1), "kernel": slice(-1, None)}
    parts = {"[waiting]": made.waiting, "[transfer]": made.transfer}
    tree = project(profile_of(made.summary), select(levels, metric=metric))
    wanted = defaultdict[tuple[int, Names], int](int)
    for (rank, path), value in expected(made, split=True).items():
        name = path[-1] if path[-1] in parts else ""
        if metric == "wait" and name != "[waiting]":
            continue
        names = {level: path[: len(path) - bool(name)][at] for level, at in places.items()}
        names["wait"] = (name,) if name else ()
        wanted[rank, tuple(one for level in levels.split(",") for one in names[level])] += value
    check(made.summary, tree, wanted)


@pytest.mark.parametrize("layout", [TreeLayout(inverted=True), TreeLayout(collapsed=True)])
def test_ranks_have_their_part_however_stacks_are_turned(made: Made, layout: TreeLayout) -> None:
    tree = project(profile_of(made.summary), select("nvtx,kernel,wait", layout=layout))
    wanted = expected(made, split=True)
    if layout.inverted:
        wanted = {(rank, path[::-1]): value for (rank, path), value in wanted.items()}
    check(made.summary, tree, wanted)


def test_filters_on_frames_see_the_parts(made: Made) -> None:
    opened, whole = profile_of(made.summary), expected(made, split=True)
    cases: tuple[tuple[dict[str, Any], Callable[[Names], bool]], ...] = (
        ({"show_stacks": r"^\[waiting\]$"}, lambda path: path[-1] == "[waiting]"),
        ({"hide_stacks": r"^\[transfer\]$"}, lambda path: path[-1] != "[transfer]"),
        ({"show_stacks": r"layers\.1"}, lambda path: any("layers.1" in one for one in path)),
        ({"kernel": COLLECTIVE}, lambda path: COLLECTIVE in path),
    )
    for where, passes in cases:
        selection = select("nvtx,kernel,wait", parse_filters(**where))
        wanted = {key: value for key, value in whole.items() if passes(key[1])}
        check(made.summary, project(opened, selection), wanted)
        waiting = {key: value for key, value in wanted.items() if key[1][-1] == "[waiting]"}
        try:
            tree = project(opened, replace(selection, metric="wait"))
        except NoMatchError:
            assert not waiting
        else:
            check(made.summary, tree, waiting)


def test_folded_layers_are_added_up(made: Made) -> None:
    tree = project(profile_of(made.summary), select("nvtx,kernel,wait", fold=True))
    wanted = defaultdict[tuple[int, Names], int](int)
    for (rank, path), value in expected(made, split=True).items():
        wanted[rank, tuple(re.sub(r"layers\.\d", "layers.*", one) for one in path)] += value
    check(made.summary, tree, wanted)


@pytest.mark.parametrize("most", [MOST_CELLS, 4])
def test_single_ranks_are_exact_whatever_cells_are_kept(
    made: Made, run: RankRun, most: int
) -> None:
    summary = summed_up(run, made.profiles, most)
    assert most == MOST_CELLS or len(summary.cell_group) < len(made.summary.cell_group)
    opened = profile_of(summary)
    tree = project(opened, select("rank,nvtx,kernel", metric="wait"))
    wanted = {(r, (f"rank {r}", *path)): value for (r, path), value in made.waiting.items()}
    check(summary, tree, wanted)
    check(summary, project(opened, select("nvtx,kernel", metric="wait")), made.waiting)
    for some in combinations(range(RANKS), 2):
        where = parse_filters(rank=",".join(map(str, some)))
        tree = project(opened, select("kernel,wait", where))
        own = {path[-1]: node for path, node in named(tree).items() if path}
        for name, parts in (("[waiting]", made.waiting), ("[transfer]", made.transfer)):
            assert tree.total[own[name]] == sum(v for (r, _), v in parts.items() if r in some)


def test_parts_say_nothing_of_counts_and_are_merged_where_they_are_small(made: Made) -> None:
    opened = profile_of(made.summary)
    tree = project(opened, Selection())
    assert tree.levels[-1] == "wait"
    counted = [node for node in range(len(tree)) if tree.kind(node) not in PART_KINDS]
    bare = project(opened, Selection(levels=tree.levels[:-1]))
    assert {tree.names(node): int(tree.count[node]) for node in counted} == {
        bare.names(node): int(bare.count[node]) for node in range(len(bare))
    }
    pruned = project(opened, Selection(where=(MinShare(30.0),)))
    assert pruned.total[0] == tree.total[0]


@pytest.mark.parametrize("metric", ["count", "launch", "queue", "idle", "host"])
def test_other_metrics_are_not_split(made: Made, metric: str) -> None:
    opened = profile_of(made.summary)
    level = "launch" if metric == "host" else "kernel"
    tree = project(opened, select(f"{level},wait", metric=metric))
    bare = project(opened, select(level, metric=metric))
    assert tree.total.tolist() == bare.total.tolist()


def test_a_file_keeps_it(made: Made) -> None:
    data = pack_summary(made.summary)
    again = unpack_summary(data, "run.flamesum")
    assert pack_summary(again) == data
    check(again, project(profile_of(again), select("nvtx,kernel", metric="wait")), made.waiting)


def test_how_many_have_no_waiting_is_told(made: Made) -> None:
    notes = [one for one in profile_of(made.summary).warnings if "waiting" in one]
    of_rank = 15 - 4  # and 4 broadcasts: every fourth from the second on
    unmatched = (RANKS - 1) * 4
    assert notes == [
        f"waiting is known of {RANKS * 7} of {RANKS * of_rank + unmatched} collectives: "
        f"{unmatched} do not match over ranks, {RANKS * 4} do not bring all ranks together"
    ]


# Where it is not known


@pytest.mark.parametrize(
    ("ranks", "why"),
    [(1, "the files of all ranks"), (2, "not read in one go")],
)
def test_the_metric_is_absent_with_the_reason(made: Made, ranks: int, why: str) -> None:
    summary = merge_summaries(
        [summarise(one, f"r{at}").summary for at, one in enumerate(made.profiles[-ranks:])]
    )
    opened = profile_of(summary)
    assert "wait" not in [one.key for one in opened.metrics]
    assert "wait" not in project(opened, Selection()).levels
    with pytest.raises(UsageError, match=why) as refused:
        project(opened, Selection(metric="wait"))
    assert "flame ranks" in str(refused.value) and "\n" not in str(refused.value)
    assert len(project(opened, select("kernel,wait"))) == len(project(opened, select("kernel")))


def test_of_ranks_that_were_not_all_measured_it_is_absent(made: Made, run: RankRun) -> None:
    parts = [summarise(*one) for one in zip(made.profiles, run.paths, strict=True)]
    merged = merge_summaries([part.summary for part in parts])
    some = [waits_of(part.arrivals[0], merged.collectives, RANKS) for part in parts[:-1]]
    with pytest.raises(UsageError, match="summed up before"):
        project(profile_of(with_waits(merged, some)), Selection(metric="wait"))


def test_a_trace_says_that_it_takes_a_summary(made: Made) -> None:
    with pytest.raises(UsageError, match="only of a summary of the ranks"):
        project(made.profiles[0], Selection(metric="wait"))


# What a file may not claim


@pytest.mark.parametrize(
    ("name", "change_"),
    [
        ("group_wait", lambda column: column + 1),
        ("group_transfer", lambda column: column + (1 << 40)),
        ("group_calls", lambda column: column + 1_000),
        ("group_calls", lambda column: -column),
        ("group_wait", lambda column: column[:-1]),
        ("group", lambda column: np.roll(column, 1)),
        ("wait", lambda column: column + 1),
    ],
)
def test_waits_that_cannot_be_are_refused(made: Made, name: str, change_: object) -> None:
    waits = made.summary.waits
    assert waits is not None and callable(change_)
    assert holds_together(made.summary)
    broken: RankWaitTable = waits._replace(**{name: change_(getattr(waits, name))})
    assert not holds_together(replace(made.summary, waits=broken))


def test_waits_of_groups_without_a_cell_are_refused(made: Made) -> None:
    summary = made.summary
    waits = summary.waits
    assert waits is not None
    lacking = np.setdiff1d(np.flatnonzero(summary.groups.host == 0), waits.group)[:1]
    first = int(waits.group_start[1])
    group = np.sort(np.append(waits.group[: first - 1], lacking))
    moved = waits._replace(group=np.concatenate([group, waits.group[first:]]))
    low, high = summary.cell_start[:2].tolist()
    there = summary.cell_group[low:high] == lacking[0]
    assert there.any()
    dropped = replace(
        summary,
        waits=moved,
        cell_group=np.delete(summary.cell_group, low + int(np.flatnonzero(there)[0])),
        cell=np.delete(summary.cell, low + int(np.flatnonzero(there)[0]), axis=1),
        cell_start=np.concatenate([summary.cell_start[:1], summary.cell_start[1:] - 1]),
    )
    assert not holds_together(dropped)
