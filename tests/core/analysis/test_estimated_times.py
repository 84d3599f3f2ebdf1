"""What is estimated of summed-up ranks is near what their activities tell."""

from __future__ import annotations

import numpy as np
import pytest

from flame.core.analysis.distribution import distribution
from flame.core.analysis.estimated_times import estimate_percentiles, estimate_times
from flame.core.analysis.frame_totals import percentiles
from flame.core.analysis.node_activities import NodeActivities
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import parse_filters
from flame.core.projection.project import project
from flame.core.projection.selection import select
from flame.core.rank_summary.opened import profile_of
from flame.core.ranks.summarise import summarise
from tests.support.ranks.rank_traces import write_ranks

Opened = tuple[Profile, Profile]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """A rank as a trace, and as a summary."""
    run = write_ranks(tmp_path_factory.mktemp("run"), 1, steps=3, layers=2, odd=0)
    whole = load(run.paths[0])
    return whole, profile_of(summarise(whole, run.paths[0]).summary)


@pytest.mark.parametrize(("metric", "levels"), [("gpu", "nvtx,kernel"), ("host", "nvtx,launch")])
def test_percentiles_are_within_one_per_cent(opened: Opened, metric: str, levels: str) -> None:
    whole, summary = opened
    selection = select(levels, parse_filters(kernel="gemm"), metric=metric)
    selection = selection if metric == "gpu" else select(levels, metric=metric)
    tree, known = project(summary, selection), project(whole, selection)
    frames, known_frames = (np.unique(one.frame[1:]).astype(np.int32) for one in (tree, known))
    found = estimate_percentiles(summary, tree, frames)
    members = NodeActivities.from_tree(whole, known, selection.where)
    values = tree.metric.values(whole.table(tree.metric))
    wanted = percentiles(members, values, known_frames)
    names = {known.text[frame]: at for at, frame in enumerate(known_frames.tolist())}
    order = [names[tree.text[frame]] for frame in frames.tolist()]
    assert found.estimated and (found.maximum == wanted.maximum[order]).all()
    for name in ("p50", "p95", "p99"):
        true = getattr(wanted, name)[order]
        assert (np.abs(getattr(found, name) - true) <= 0.01 * true + 1).all()


def test_times_below_a_node(opened: Opened) -> None:
    whole, summary = opened
    tree, known = (project(one, select("nvtx,kernel")) for one in (summary, whole))
    paths = {known.names(node): node for node in range(len(known))}
    members = NodeActivities.from_tree(summary, tree, ())
    rows = NodeActivities.from_tree(whole, known, ())
    for node in range(len(tree)):
        times = estimate_times(summary, tree, members.groups_below(node))
        below = rows.below(paths[tree.names(node)])
        durations = whole.activities.duration[below]
        wanted = distribution(durations)
        assert times is not None and wanted is not None
        found, bars = times.distribution, times.histogram(12)
        assert (found.count, found.total) == (wanted.count, wanted.total)
        assert (found.minimum, found.maximum) == (wanted.minimum, wanted.maximum)
        for name in ("p50", "p95", "p99"):
            true = getattr(wanted, name)
            assert abs(getattr(found, name) - true) <= 0.01 * true + 1
        assert bars is None or int(bars.counts.sum()) == wanted.count


def test_nothing_is_estimated_of_what_is_not_known(opened: Opened) -> None:
    summary = opened[1]
    for selection in (select("kernel", metric="idle"), select("rank,kernel")):
        tree = project(summary, selection)
        profile = summary
        if "rank" in tree.levels:
            profile = profile_of(summarise(summary, "x").summary, [0])
        frames = np.unique(tree.frame[1:]).astype(np.int32)
        assert not estimate_percentiles(profile, tree, frames).maximum.any()
        assert estimate_times(profile, tree, np.ones(len(tree.node_of_group), bool)) is None
