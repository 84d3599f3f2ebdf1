"""Functions and ranges nested in time, of real and random traces, against a naive reading."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.columns import Column
from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.frames import Frame, Kind
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from tests.conftest import TRACES, is_small
from tests.support.oracles.facts import differences
from tests.support.oracles.kineto import naive_kineto as naive
from tests.support.oracles.kineto.naive_kineto import FORWARD, Range
from tests.support.oracles.kineto.naive_kineto_events import events_of
from tests.support.oracles.kineto.naive_kineto_tree import python_text, range_text
from tests.support.oracles.kineto.naive_nested import PathOf, Step, nested_paths
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import deep_except, examples
from tests.support.writers.kineto_scripts import Script, scripts

NAMES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))
SMALL = [name for name in NAMES if is_small(TRACES / "kineto" / name)]
random_traces = examples(0.6, [HealthCheck.too_slow])


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where random traces are written, one after the other."""
    return tmp_path_factory.mktemp("random") / "trace.json"


def step_of(frame: Frame) -> Step:
    if frame.kind == Kind.PYTHON:
        return python_text(frame)
    text = range_text(frame)
    return Range(text.name, text.shapes) if text.mark == FORWARD else text


def paths_of(profile: Profile, *columns: Column | None) -> list[PathOf]:
    """The frames of the stacks in ``columns`` below each other, row by row."""
    stacks = profile.activities.stacks
    paths = [stacks.paths(column).T for column in columns if column is not None]
    frames = {frame: step_of(profile.frames[frame]) for frame in set_of(paths)}
    rows = zip(*(step.tolist() for path in paths for step in path), strict=True)
    found = [tuple(frames[frame] for frame in row if frame >= 0) for row in rows]
    return found or [()] * len(profile.activities)


def set_of(paths: list[Column]) -> set[int]:
    return {frame for path in paths for step in path for frame in set(step.tolist())} - {-1}


def nested_of(profile: Profile) -> list[PathOf]:
    found = profile.with_nested
    table = found.activities
    columns = (table.python, table.nvtx) if table.nested is None else (table.nested,)
    return paths_of(found, *columns)


def own_nested_of(profile: Profile) -> list[PathOf]:
    return nested_of(profile.with_nested.unlinked)


def check(profile: Profile, path: Path) -> None:
    events = events_of(path)
    found = naive.works(events, forward=True)
    assert differences(nested_of(profile), nested_paths(found, events, forward=True)) == []
    found = naive.works(events)
    assert differences(own_nested_of(profile), nested_paths(found, events)) == []


@pytest.mark.parametrize("name", deep_except(SMALL, NAMES))
def test_every_activity_is_nested_as_by_a_naive_reading(name: str) -> None:
    path = TRACES / "kineto" / name
    check(load(path, LoadOptions(forward=True)), path)


@random_traces
@given(script=scripts())
def test_random_activities_are_nested_as_by_a_naive_reading(
    script: Script, trace_file: Path
) -> None:
    path = script.write(trace_file)
    check(load(path, LoadOptions(forward=True)), path)


@random_traces
@given(script=scripts(), levels=st.permutations(["nested", "launch", "kernel"]))
def test_sums_over_nested_stacks_are_exact(
    script: Script, levels: list[str], trace_file: Path
) -> None:
    profile = load(script.write(trace_file), LoadOptions(forward=True))
    for forward in (True, False):
        tree = project_tree(profile, tuple(levels), metric="gpu", forward=forward)
        paths = nested_of(profile) if forward else own_nested_of(profile)
        table, weights = profile.activities, Counter[tuple[object, ...]]()
        for row, path in enumerate(paths):
            kernel = profile.frames[int(table.frame[row])].name
            launch = profile.frames[int(table.launch[row])].name
            parts = {"nested": [_name(step) for step in path], "launch": [launch]}
            parts["kernel"] = [kernel]
            weights[tuple(one for level in levels for one in parts[level])] += int(
                table.duration[row]
            )
        own = Counter[tuple[object, ...]]()
        for node in tree.own.nonzero()[0].tolist():
            own[tree.names(node)] += int(tree.own[node])
        assert own == +weights
        assert tree.total[0] == profile.gpu_time


def _name(step: Step) -> str:
    """As a tree calls it: a function without its place."""
    if isinstance(step, Range):
        return step.name
    return step.rpartition("): ")[2] if "): " in step else step


@random_traces
@given(st.lists(scripts(), min_size=2, max_size=3))
def test_merged_traces_are_nested_as_each_alone(
    tmp_path_factory: pytest.TempPathFactory, found: list[Script]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    parts = [
        load(script.write(folder / f"part{place}.json"), LoadOptions(forward=True))
        for place, script in enumerate(found)
    ]
    whole = merge_profiles(parts, ["a", "b", "c"][: len(parts)])
    assert nested_of(whole) == [path for part in parts for path in nested_of(part)]
    assert own_nested_of(whole) == [path for part in parts for path in own_nested_of(part)]


def test_the_variant_without_forward_operators_is_what_is_read_without_links() -> None:
    path = TRACES / "kineto" / "v100_old_categories.json.gz"
    if not path.exists():
        pytest.skip(f"no real trace {path}")
    linked, plain = load(path, LoadOptions(forward=True)), load(path)
    for levels in ("python,nvtx,kernel", "nested,launch,kernel", "nvtx,kernel"):
        tree, same = project_tree(linked, levels, forward=False), project_tree(plain, levels)
        own = {tree.names(node): int(tree.own[node]) for node in tree.own.nonzero()[0].tolist()}
        assert own == {
            same.names(node): int(same.own[node]) for node in same.own.nonzero()[0].tolist()
        }
