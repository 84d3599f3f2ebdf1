"""Several PyTorch profiler traces as one, against naive readings of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import where
from flame.core.projection.filters import Filter
from tests.conftest import TRACES
from tests.support.oracles.kineto import naive_kineto as naive
from tests.support.oracles.kineto.naive_kineto import Work
from tests.support.oracles.kineto.naive_kineto_events import events_of
from tests.support.oracles.kineto.naive_kineto_host import Step, host_times, in_steps, steps_of
from tests.support.oracles.kineto.naive_kineto_tree import METRICS, Stack, found_stacks, grouped
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import examples
from tests.support.writers.kineto_scripts import STEPS, Script, scripts
from tests.support.writers.kinetofile import KinetoFile

LABELS = ("a", "b", "c")
REAL = ("h100_bert_small", "h100_qwen_python", "mi300_vllm_hipgraph")
LEVELS = ("rank", "stream", "python", "launch", "nvtx", "shapes", "kernel")
ORIGINS = st.sampled_from([0, 0, 3, 9])
random_traces = examples(0.3, [HealthCheck.too_slow])
Counts = dict[Stack, tuple[int, int]]


class Part(NamedTuple):
    """One of the files: as flame reads it, and naively."""

    profile: Profile
    works: list[Work]
    steps: list[Step]
    path: Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where random traces are written, one after the other."""
    return tmp_path_factory.mktemp("random")


def part(path: Path) -> Part:
    events = events_of(path)
    return Part(load(path), naive.works(events), steps_of(events), path)


def whole_of(parts: list[Part]) -> Profile:
    return merge_profiles([one.profile for one in parts], LABELS[: len(parts)])


def stacks(found: Profile, metric: str, chosen: tuple[Filter, ...] = ()) -> Counts:
    try:
        return found_stacks(project_tree(found, LEVELS, chosen, metric, kernel_names="demangled"))
    except NoMatchError:
        return {}


def expected(parts: list[Part], metric: str, kept: Callable[[Part, Work], bool]) -> Counts:
    return {
        (("rank", label), *stack): counts
        for label, one in zip(LABELS, parts, strict=False)
        for stack, counts in grouped(
            [work for work in one.works if kept(one, work)], LEVELS[1:], metric, "demangled"
        ).items()
    }


def assert_sums_are_those_of_the_parts(whole: Profile, parts: list[Part]) -> None:
    for metric in METRICS:
        assert stacks(whole, metric) == expected(parts, metric, lambda *_: True)
    labels = zip(LABELS, parts, strict=False)
    times = {label: sum(t.ns for t in host_times(events_of(p.path))) for label, p in labels}
    tree = project_tree(whole, "rank", metric="host")
    found = {tree.name(node): int(tree.own[node]) for node in tree.children(0)}
    assert found == {label: ns for label, ns in times.items() if ns}


@random_traces
@given(some=st.lists(st.tuples(scripts(), ORIGINS), min_size=2, max_size=3))
def test_random_files_together_have_what_each_has(
    some: list[tuple[Script, int]], folder: Path
) -> None:
    files = [one.write(folder / f"{n}.json", origin) for n, (one, origin) in enumerate(some)]
    parts = [part(path) for path in files]
    firsts = [one.offset + min(step["start"] for _, step in one.steps) for one, _ in some]
    origins = [origin + first for (_, origin), first in zip(some, firsts, strict=True)]
    assert [one.profile.meta.origin for one in parts] == origins
    whole = whole_of(parts)
    assert_sums_are_those_of_the_parts(whole, parts)
    for number in range(1, STEPS + 1):
        found = stacks(whole, "gpu", where(step=str(number)))
        inside = lambda one, work: in_steps(work, one.steps, number, number)  # noqa: B023, E731
        assert found == expected(parts, "gpu", inside)
    table = whole.activities
    columns = table.start, table.launch_start, table.launch_end
    found_times = list(zip(*(column.tolist() for column in columns), strict=True))
    assert found_times == list(moments(parts))


def moments(parts: list[Part]) -> Iterable[tuple[int, int, int]]:
    """On the clock of the first file, where all that have times were recorded together."""
    origins = [one.profile.meta.origin or 0 for one in parts]
    spans = [(one.profile.begin, one.profile.end) for one in parts]
    timed = [row for row, span in enumerate(spans) if any(span)]
    first = min((origins[row] for row in timed), default=0)
    shifts = [origins[row] - first if row in timed else 0 for row in range(len(parts))]
    if not together([tuple(time + shifts[row] for time in spans[row]) for row in timed]):
        shifts = [-begin if row in timed else 0 for row, (begin, _) in enumerate(spans)]
    for one, shift in zip(parts, shifts, strict=True):
        table = one.profile.activities
        for row, start in enumerate(table.start.tolist()):
            call = -1, -1
            if table.launched[row]:
                call = int(table.launch_start[row]) + shift, int(table.launch_end[row]) + shift
            yield start + shift, *call


def together(spans: list[tuple[int, ...]]) -> bool:
    """Whether there is no moment between the first and the last at which nothing is recorded."""
    ordered = sorted(spans)
    reached = [max(end for _, end in ordered[: row + 1]) for row in range(len(ordered))]
    return all(begin <= reach for (begin, _), reach in zip(ordered[1:], reached, strict=False))


def test_files_that_touch_were_recorded_together(tmp_path: Path) -> None:
    for origin in (0, 10):
        trace = KinetoFile()
        trace.op("aten::mm", 0, 10)
        trace.kernel("gemm", 2, 5)
        trace.top["baseTimeNanoseconds"] = origin
        trace.write(tmp_path / f"{origin}.json")
    whole = whole_of([part(tmp_path / f"{origin}.json") for origin in (0, 10)])
    assert whole.activities.start.tolist() == [2, 12]


@pytest.mark.deep
def test_real_files_together_have_what_each_has() -> None:
    paths = [TRACES / "kineto" / f"{name}.json.gz" for name in REAL]
    if not all(path.exists() for path in paths):
        pytest.skip("no real traces")
    parts = [part(path) for path in paths]
    whole = whole_of(parts)
    assert_sums_are_those_of_the_parts(whole, parts)
    assert whole.warnings[0].startswith("times are not aligned")
    launches = [one.profile.launches for one in parts]
    sizes = [size for one in launches if one for size in one.bytes.tolist()]
    assert whole.launches is not None and whole.launches.bytes.tolist() == sizes
