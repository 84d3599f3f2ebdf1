"""PC samples from the GPU into the tree: each that the double gave is in it, where it belongs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flame.core.loading.file import build_profile
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.raw import RawTrace
from flame.core.model.stalls import is_not_issued, stall_of
from flame.core.options import LoadOptions, silent
from flame.core.readers.fdump import reader
from tests.inject.sampling.test_sampling import Sampled
from tests.support.profiles.project_tree import project_tree

pytestmark = pytest.mark.deep

Env = Callable[..., dict[str, str]]
Found = Counter[tuple[str, int, str]]


@pytest.fixture(params=["continuous", "serialized"])
def run(request: pytest.FixtureRequest, tmp_path: Path, injected_env: Env) -> Sampled:
    return Sampled(tmp_path, injected_env, request.param)


def opened(run: Sampled) -> tuple[RawTrace, Profile]:
    raw = reader.read_dump(run.path, LoadOptions(), silent)
    return raw, build_profile(raw)


def given(run: Sampled, correlations: bool) -> dict[int, Found]:
    """What the double says it gave, by launch (0: all): function, offset and reason."""
    reasons = run.reasons()
    found: dict[int, Found] = {}
    for (_, function, offset, reason, correlation, _), count in run.told().items():
        if not is_not_issued(reasons[reason]):
            launch = found.setdefault(correlation if correlations else 0, Counter())
            launch[function, offset, stall_of(reasons[reason]).key] += count
    return found


def entries(profile: Profile, distribution: int) -> Found:
    """The samples of a distribution, likewise."""
    sampling, found = profile.sampling, Found()
    assert sampling is not None
    at = sampling.entries(distribution)
    columns = (sampling.code[at], sampling.place[at], sampling.stall[at], sampling.samples[at])
    for code, place, stall, samples in zip(*(one.tolist() for one in columns), strict=True):
        known = sampling.codes[code]
        reason = profile.frames[stall].get("reason")
        found[known.name, int(known.offset[place]), reason] += samples
    return found


def test_every_sample_is_in_the_tree_once(run: Sampled) -> None:
    _, profile = opened(run)
    assert profile.sampling is not None
    whole: Found = Counter()
    for number in range(len(profile.sampling)):
        whole += entries(profile, number)
    assert whole == given(run, correlations=False)[0]
    tree = project_tree(profile, metric="stalls")
    assert int(tree.total[0]) == int(tree.own.sum()) == whole.total()
    of_stall = [
        n for n in range(len(tree)) if profile.frames[int(tree.frame[n])].kind == Kind.STALL
    ]
    assert sum(int(tree.own[node]) for node in of_stall) == whole.total()


def test_in_serialized_mode_each_launch_has_its_own(tmp_path: Path, injected_env: Env) -> None:
    run = Sampled(tmp_path, injected_env, "serialized")
    raw, profile = opened(run)
    told = given(run, correlations=True)
    assert len(told) == len(raw.activities.correlation)
    values = profile.activities.measures["stalls"]
    for row, correlation in enumerate(raw.activities.correlation.tolist()):
        assert values[row] == told[correlation].total()
    assert profile.sampling is not None
    groups = profile.activities.groups
    for group in range(len(groups)):
        mine = np.flatnonzero(groups.of_row == group)
        expected: Found = Counter()
        for correlation in raw.activities.correlation[mine].tolist():
            expected += told[correlation]
        assert entries(profile, int(profile.sampling.of_group[group])) == expected


def test_the_gpu_time_is_what_it_was(run: Sampled) -> None:
    _, profile = opened(run)
    tree = project_tree(profile, metric="gpu")
    kernels = run.records["kernel"]
    assert int(tree.own.sum()) == int((kernels["end"] - kernels["start"]).sum())
    assert profile.coverage["sass"].percent == 100.0


def test_samples_that_the_gpu_lost_are_told(tmp_path: Path, injected_env: Env) -> None:
    run = Sampled(tmp_path, injected_env, "continuous", FAKE_CUPTI="pc_drop:3")
    _, profile = opened(run)
    assert any("CUPTI dropped them" in warning for warning in profile.warnings)
