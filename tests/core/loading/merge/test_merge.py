"""Several profiles as one: nothing lost, nothing mixed up."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.loading.source_labels import label_sources
from flame.core.model.grouping import process_name
from flame.core.model.meta import Device, Meta, ProfilerSteps
from flame.core.model.metrics import METRICS
from flame.core.projection.filter_options import where
from flame.core.timeline.intervals import timeline
from tests.conftest import TRACES, needs_traces
from tests.core.loading.merge.short_traces import trace
from tests.support.generated.strategies import Script, scripts
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, i8, leaves
from tests.support.tiers import examples

LEVELS = "python,native,launch,nvtx,kernel"
# Small, of different schemas, GPUs and numbers of processes.
REAL = (
    "a100_llm_nvtx.sqlite",
    "cuda_graph_small.sqlite",
    "h100_2gpu_window.sqlite",
    "two_processes_colliding_ids.sqlite",
)


# Filters


@pytest.mark.parametrize(
    ("ranks", "left"),
    [
        ("0", {("rank 0", "gemm")}),
        ("rank 1", {("rank 1", "relu")}),
        ("0,1", {("rank 0", "gemm"), ("rank 1", "relu")}),
        ("rank *", {("rank 0", "gemm"), ("rank 1", "relu")}),
        ("?, 7", {("rank 0", "gemm"), ("rank 1", "relu")}),
    ],
)
def test_ranks_are_chosen_by_number_or_name(ranks: str, left: set[tuple[str, ...]]) -> None:
    parts = [
        replace(one, meta=replace(one.meta, rank=rank))
        for rank, one in enumerate([trace(), trace(gemm="relu")])
    ]
    whole = merge_profiles(parts, label_sources([one.meta for one in parts]))
    assert set(leaves(project_tree(whole, levels="rank,kernel", where=where(rank=ranks)))) == left


def test_a_rank_that_is_not_there_has_nothing() -> None:
    whole = merge_profiles([trace(), trace()], ["a", "b"])
    with pytest.raises(NoMatchError):
        project_tree(whole, where=where(rank="c"))


# Sums


@examples(0.3)
@given(st.lists(scripts(), min_size=2, max_size=3))
def test_every_metric_is_the_sum_of_its_parts(
    tmp_path_factory: pytest.TempPathFactory, parts: list[Script]
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    profiles = [load(one.write(folder / f"{number}")) for number, one in enumerate(parts)]
    labels = [str(number) for number in range(len(profiles))]
    whole = merge_profiles(profiles, labels)
    for metric in METRICS:
        sums = {
            (label,): int(metric.values(one.table(metric)).sum())
            for label, one in zip(labels, profiles, strict=True)
        }
        shown = leaves(project_tree(whole, "rank", metric=metric.key))
        assert {key: value for key, value in shown.items() if value} == {
            key: value for key, value in sums.items() if value
        }


@examples(0.3)
@given(st.lists(scripts(), min_size=2, max_size=3), st.randoms())
def test_the_stacks_of_a_rank_are_those_of_its_file_in_whatever_order(
    tmp_path_factory: pytest.TempPathFactory, parts: list[Script], random: Random
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    profiles = {str(n): load(one.write(folder / f"{n}")) for n, one in enumerate(parts)}
    labels = list(profiles)
    random.shuffle(labels)
    whole = merge_profiles([profiles[label] for label in labels], labels)
    for metric in ("gpu", "host"):
        expected = {
            (label, *stack): value
            for label, one in profiles.items()
            for stack, value in leaves(project_tree(one, LEVELS, metric=metric)).items()
            if stack
        }
        assert leaves(project_tree(whole, f"rank,{LEVELS}", metric=metric)) == expected


@needs_traces
@pytest.mark.parametrize("other", REAL[1:])
def test_real_traces_add_up(other: str) -> None:
    profiles = [load(TRACES / "nsys" / name) for name in (REAL[0], other)]
    whole = merge_profiles(profiles, ["a", "b"])
    assert whole.gpu_time == sum(one.gpu_time for one in profiles)
    assert len(whole.host) == sum(len(one.host) for one in profiles)
    for metric in METRICS:
        sums = [int(metric.values(one.table(metric)).sum()) for one in profiles]
        totals = leaves(project_tree(whole, "rank", metric=metric.key))
        assert [totals.get((label,), 0) for label in ("a", "b")] == sums


# Who is who


def test_equal_numbers_stay_apart_and_say_of_which_file_they_are() -> None:
    whole = merge_profiles([trace(), trace()], ["rank 0", "rank 1"])
    assert [(one.id, one.source) for one in whole.devices] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert leaves(project_tree(whole, "device")) == {
        ("GPU 0 H100 · rank 0",): 20,
        ("GPU 0 H100 · rank 1",): 20,
    }
    assert {name for (name,) in leaves(project_tree(whole, "thread"))} == {
        "main [100] · rank 0",
        "main [100] · rank 1",
    }


def test_names_that_only_one_file_has_stay_as_they_are() -> None:
    other = replace(trace(), devices=(Device(5, "A100"), Device(6)))
    whole = merge_profiles([trace(), other], ["a", "b"])
    assert set(leaves(project_tree(whole, "device"))) == {("GPU 0 H100",), ("GPU 5 A100",)}


def test_work_of_an_unknown_process_has_its_rank_too() -> None:
    recorded = Recorded()
    recorded.kernel("gemm", 0, 7, process=-1)
    whole = merge_profiles([recorded.profile(), trace()], ["lost", "found"])
    assert leaves(project_tree(whole, "rank,process")) == {
        ("lost", "unknown process"): 7,
        ("found", whole.frames[whole.grouping.process[-2]].name): 20,
    }


def test_work_of_an_unknown_process_is_that_of_the_only_one() -> None:
    recorded = Recorded()
    recorded.kernel("gemm", 0, 7, process=-1)
    one = recorded.profile()
    one = replace(one, processes=one.processes[:1], threads=one.threads[:2])
    whole = merge_profiles([one, trace()], ["lost", "found"])
    assert [process.pid for process in whole.processes] == [100, 100, 200]
    assert [one for one in leaves(project_tree(whole, "rank,process")) if one[0] == "lost"] == [
        ("lost", f"{process_name(one.processes[0])} · lost")
    ]


def test_the_usual_levels_begin_with_the_rank() -> None:
    assert project_tree(merge_profiles([trace(), trace()], ["a", "b"])).levels[0] == "rank"
    assert project_tree(trace()).levels[0] != "rank"


def test_filters_on_numbers_choose_them_in_every_file() -> None:
    whole = merge_profiles([trace(), trace()], ["a", "b"])
    assert leaves(project_tree(whole, "rank", where(device=0))) == {("a",): 20, ("b",): 20}


def test_lanes_of_different_files_are_told_apart() -> None:
    whole = merge_profiles([trace(), trace()], ["rank 0", "a very long name of rank 1"])
    labels = [lane.label for lane in timeline(whole).lanes]
    assert labels == [
        *["rank 0 main [100]"] * 2,
        *["…of rank 1 main [100]"] * 2,
        "rank 0 GPU0 stream 7",
        "…of rank 1 GPU0 stream 7",
    ]


# What is worked out later


def test_ranges_keep_their_parents_and_their_order() -> None:
    recorded = Recorded()
    recorded.range("outer", 0, 50)
    recorded.range("inner", 10, 20)
    recorded.range("other", 0, 5, thread=1)
    whole = merge_profiles([recorded.profile(), recorded.profile()], ["a", "b"])
    pieces = whole.ranges
    assert pieces is not None
    names = [whole.frames[frame].name for frame in pieces.frame.tolist()]
    assert names == ["outer", "inner", "other"] * 2
    assert pieces.parent.tolist() == [-1, 0, -1, -1, 3, -1]
    assert pieces.thread.tolist() == [0, 0, 1, 3, 3, 4]


def test_calls_and_functions_are_those_of_all_files_in_new_numbers() -> None:
    path = TRACES / "kineto" / "h100_bert_small.json.gz"
    if not path.exists():
        pytest.skip("no real traces")
    one = load(path)
    whole = merge_profiles([one, trace(), one], ["a", "b", "c"])
    for own, all_ in ((one.calls, whole.calls), (one.functions, whole.functions)):
        assert own is not None and all_ is not None and len(own)
        size = len(own)
        for first in (0, len(all_) - size):
            part = slice(first, first + size)
            assert (np.diff(all_.start[part]) == np.diff(own.start)).all()
            parents = np.where(own.parent >= 0, own.parent + first, -1)
            assert all_.parent[part].tolist() == parents.tolist()
            names = [whole.frames[frame].name for frame in all_.frame[part].tolist()]
            assert names == [one.frames[frame].name for frame in own.frame.tolist()]
        assert (np.diff(all_.thread) >= 0).all()


def test_launches_are_known_where_they_were() -> None:
    paths = [TRACES / "nsys" / name for name in ("cuda_graph_small.sqlite", "ten_streams.sqlite")]
    if not all(path.exists() for path in paths):
        pytest.skip("no real traces")
    profiles = [load(paths[0]), trace(), load(paths[1])]
    found = merge_profiles(profiles, ["a", "b", "c"]).launches
    assert found is not None
    spelled = [found.configs[at] if at >= 0 else None for at in found.config.tolist()]
    expected = []
    for one in profiles:
        own = one.launches
        ids = [-1] * len(one.activities) if own is None else own.config.tolist()
        expected += [own.configs[at] if own and at >= 0 else None for at in ids]
    assert spelled == expected
    assert len(found.bytes) == len(expected)


def test_a_merge_of_traces_that_know_no_launches_knows_none() -> None:
    assert merge_profiles([trace(), trace()], ["a", "b"]).launches is None


def test_profiler_steps_are_those_of_each_rank() -> None:
    step = ProfilerSteps(i8(3), np.zeros(1, np.int32), i8(0), i8(100), np.zeros(1, np.int32))
    profiles = [replace(trace(0, origin), steps=step) for origin in (0, 50)]
    steps = merge_profiles(profiles, ["a", "b"]).steps
    assert steps is not None
    assert (steps.start.tolist(), steps.end.tolist()) == ([0, 50], [100, 150])
    assert (steps.process.tolist(), steps.thread.tolist()) == ([0, 2], [0, 3])


def test_a_profile_survives_the_trip_between_processes(tmp_path: Path) -> None:
    profile = trace()
    there = pickle.loads(pickle.dumps(profile, protocol=5))
    assert leaves(project_tree(there, metric="host")) == leaves(
        project_tree(profile, metric="host")
    )
    assert there.ranges.start.tolist() == [0]


# What is said


def test_a_warning_that_all_have_is_told_once() -> None:
    one, other = trace(), trace()
    profiles = [replace(one, warnings=("x", "y")), replace(other, warnings=("x",))]
    assert merge_profiles(profiles, ["a", "b"]).warnings == ("x", "a: y")


def test_what_is_known_of_the_files_is_kept_by_source() -> None:
    profiles = [replace(trace(), meta=Meta(path=p, format="kineto", origin=0)) for p in "xy"]
    whole = merge_profiles(profiles, ["a", "b"])
    assert [(one.label, one.meta.path) for one in whole.sources] == [("a", "x"), ("b", "y")]
    assert whole.meta.format == "kineto"
