"""PC samples of several profiles as one: every rank keeps its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import I8
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from tests.support.generated.sampled import Run, runs
from tests.support.oracles.naive_samples import Part, check, parts
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded
from tests.support.tiers import examples

some_runs = st.lists(runs, min_size=1, max_size=3)
ORDERS = ("kernel,sass,stall", "nvtx,stall", "sass,stall,kernel", "kernel,sass")


def plain() -> Profile:
    """One kernel of which nobody took samples."""
    trace = Recorded()
    trace.call("launch", 0, 5, corr=1)
    trace.kernel("gemm", 10, 20, corr=1)
    return trace.profile()


def whole_of(profiles: Sequence[Profile]) -> tuple[Profile, list[str]]:
    labels = [f"rank {number}" for number in range(len(profiles))]
    return merge_profiles(profiles, labels), labels


@examples(0.5)
@given(some_runs, st.sampled_from(ORDERS), st.sampled_from(["gpu", "count", "stalls"]))
def test_below_its_rank_every_profile_is_split_as_it_is_alone(
    several: list[Run], levels: str, metric: str
) -> None:
    profiles = [run.profile() for run in several]
    whole, labels = whole_of([*profiles, plain()])
    found = []
    for run, profile, label in zip(several, profiles, labels, strict=False):
        weight = metric_of(metric, profile.metrics).values(profile.activities).tolist()
        found += [
            replace(part, path=(("rank", label), *part.path))
            for part in parts(profile, run.rows(), levels.split(","), weight)
        ]
    bare = (("rank", labels[-1]), *((("kernel", "gemm"),) if "kernel" in levels else ()))
    weight = {"gpu": 10, "count": 1, "stalls": 0}[metric]
    found.append(Part(bare, (weight, weight), (1, 1), ()))
    check(project_tree(whole, f"rank,{levels}", metric=metric), found)


@examples(0.5)
@given(some_runs)
def test_nothing_is_lost_and_nothing_is_mixed_up(several: list[Run]) -> None:
    profiles = [run.profile() for run in several]
    whole, _ = whole_of([plain(), *profiles, plain()])
    known = [one.sampling for one in profiles if one.sampling]
    sampling = whole.sampling
    assert sampling is not None
    assert sampling.totals.tolist() == [total for one in known for total in one.totals.tolist()]
    assert sampling.codes == tuple(code for one in known for code in one.codes)
    assert sampling.exact.tolist() == [exact for one in known for exact in one.exact.tolist()]
    for number, code in enumerate(sampling.code.tolist()):
        frame = whole.frames[int(sampling.sass[number])]
        assert [*sampling.codes[code].frames(sampling.place[[number]])] == [frame]
    rows = sampling.of_group[whole.activities.groups.of_row].tolist()
    assert rows == [-1, *_of_rows(profiles), -1]


def _of_rows(profiles: Sequence[Profile]) -> list[int]:
    """The distribution of every activity, numbered through."""
    found: list[int] = []
    first = 0
    for profile in profiles:
        assert profile.sampling is not None
        of: I8 = profile.sampling.of_group[profile.activities.groups.of_row].astype(np.int64)
        found += np.where(of >= 0, of + first, -1).tolist()
        first += len(profile.sampling)
    return found


def test_profiles_without_any_samples_have_none_together() -> None:
    whole, _ = whole_of([plain(), plain()])
    assert whole.sampling is None
    assert "stalls" not in [metric.key for metric in whole.metrics]
