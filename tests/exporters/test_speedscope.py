"""speedscope files: what stands in them, and that a viewer reads the tree's own numbers."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given

from flame._version import __version__
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.names.rename import parse_rename
from flame.core.projection.filter_options import where
from flame.core.projection.labels import Naming
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.exporters import speedscope
from flame.exporters.speedscope_format import (
    SCHEMA,
    SampledProfile,
    SpeedscopeFile,
    SpeedscopeFrame,
)
from tests.conftest import NSYS_TRACES
from tests.exporters.profiles import Place, Row, chain, fan, profile_of, some_rows
from tests.support.generated.sampled import Run
from tests.support.paths import SAMPLES
from tests.support.profiles.project_tree import project_tree

FORWARD = Row("gemm", 70, nvtx=("forward",), launch="cudaLaunchKernel", launch_ns=9)
LOOSE = Row("memset", 5)


def export(profile: Profile, selection: Selection | None = None, name: str = "trace") -> bytes:
    file = io.BytesIO()
    speedscope.write(profile, selection or Selection(), file, name=name)
    return file.getvalue()


def checked(data: bytes) -> SpeedscopeFile:
    """The file, decoded as the published schema has it, and held to the viewer's own rules."""
    file = msgspec.json.decode(data, type=SpeedscopeFile)
    assert file.schema == SCHEMA
    assert file.profiles
    for profile in file.profiles:
        assert isinstance(profile, SampledProfile)
        assert len(profile.samples) == len(profile.weights)
        assert all(weight > 0 for weight in profile.weights)
        assert all(0 <= i < len(file.shared.frames) for stack in profile.samples for i in stack)
        assert (profile.start_value, profile.end_value) == (0, sum(profile.weights))
    return file


def sampled(file: SpeedscopeFile, index: int = 0) -> SampledProfile:
    profile = file.profiles[index]
    assert isinstance(profile, SampledProfile)
    return profile


def stacks(file: SpeedscopeFile, index: int = 0) -> list[tuple[tuple[str, ...], float]]:
    """Names, outermost first, and weight of every sample."""
    profile, frames = sampled(file, index), file.shared.frames
    paths = [tuple(frames[i].name for i in stack) for stack in profile.samples]
    return list(zip(paths, profile.weights, strict=True))


def added_up(pairs: Iterable[tuple[tuple[Any, ...], float]]) -> dict[tuple[Any, ...], float]:
    values: Counter[tuple[Any, ...]] = Counter()
    for stack, value in pairs:
        values[stack] += value  # type: ignore[assignment]  # floats that hold whole numbers
    return {stack: value for stack, value in values.items() if value}


def test_stacks_are_root_first_and_widest_first() -> None:
    file = checked(export(profile_of([LOOSE, FORWARD])))
    assert stacks(file) == [
        (("cudaLaunchKernel", "forward", "gemm"), 70),
        (("[no launch recorded]", "memset"), 5),
    ]


def test_every_gpu_metric_that_is_not_zero_is_a_profile() -> None:
    file = checked(export(profile_of([LOOSE, FORWARD], host=[Row("", 3, launch="cuInit")])))
    assert [(one.name, one.unit, one.end_value) for one in file.profiles] == [
        ("GPU time", "nanoseconds", 75),
        ("GPU activities", "none", 2),
        ("launch API time", "nanoseconds", 9),
    ]


def test_the_selected_metric_comes_first() -> None:
    file = checked(export(profile_of([LOOSE, FORWARD]), Selection(metric="launch")))
    assert [one.name for one in file.profiles][:2] == ["launch API time", "GPU time"]
    assert file.active_profile_index == 0


def test_the_selected_metric_is_there_even_if_it_is_zero() -> None:
    first = sampled(checked(export(profile_of([FORWARD]), Selection(metric="idle"))))
    assert (first.name, first.end_value, first.samples) == ("GPU idle before", 0, [])


def test_host_time_stands_alone() -> None:
    profile = profile_of([FORWARD], host=[Row("", 3, nvtx=("prepare",), launch="cuInit")])
    file = checked(export(profile, Selection(metric="host")))
    assert [one.name for one in file.profiles] == ["host self time"]
    assert stacks(file) == [(("main [101]", "prepare", "cuInit"), 3)]


def test_all_profiles_share_levels_filters_and_names() -> None:
    naming = Naming(rename=(parse_rename("gemm=matmul"),))
    selection = Selection(("kernel", "nvtx"), where(kernel="gemm"), None, naming)
    file = checked(export(profile_of([FORWARD, LOOSE]), selection))
    for index in range(len(file.profiles)):
        assert [stack for stack, _ in stacks(file, index)] == [("matmul", "forward")]


def test_a_filter_that_leaves_nothing_is_an_error() -> None:
    with pytest.raises(NoMatchError):
        export(profile_of([FORWARD]), Selection(where=where(kernel="softmax")))


def test_activities_without_any_frame_keep_their_weight() -> None:
    file = checked(export(profile_of([FORWARD, LOOSE]), Selection(("nvtx",))))
    assert stacks(file) == [((), 5), (("forward",), 70)]


def test_a_python_frame_has_its_place_and_every_other_one_its_level() -> None:
    python: tuple[Place, ...] = (("main", "app.py", 3), ("step", "", 0), ("run", "lib.py", 0))
    row = Row("gemm", 1, nvtx=("forward",), python=python, launch="cuLaunchKernel")
    assert checked(export(profile_of([row]))).shared.frames == [
        SpeedscopeFrame("main", "app.py", 3),
        SpeedscopeFrame("step", "python"),
        SpeedscopeFrame("run", "lib.py"),
        SpeedscopeFrame("cuLaunchKernel", "launch"),
        SpeedscopeFrame("forward", "nvtx"),
        SpeedscopeFrame("gemm", "kernel"),
    ]


def test_frames_are_one_by_name_and_place() -> None:
    rows = [
        Row("a", 1, nvtx=("a", "a"), python=(("a", "x.py", 1), ("a", "x.py", 2))),
        Row("a", 2, python=(("a", "x.py", 1),)),
    ]
    found = checked(export(profile_of(rows), Selection(("python", "nvtx", "kernel"))))
    assert Counter(found.shared.frames) == Counter(
        [
            SpeedscopeFrame("a", "x.py", 1),
            SpeedscopeFrame("a", "x.py", 2),
            SpeedscopeFrame("a", "nvtx"),
            SpeedscopeFrame("a", "kernel"),
        ]
    )


def test_what_is_not_known_is_absent_not_null() -> None:
    data = json.loads(export(profile_of([LOOSE])))
    assert data["$schema"] == SCHEMA
    assert data["exporter"] == f"flame@{__version__}"
    assert data["name"] == "trace"
    assert all(frame.keys() == {"name", "file"} for frame in data["shared"]["frames"])


def test_names_are_exact_and_only_surrogates_are_spelled_out() -> None:
    name = 'f<"é\\;">\n\0' + "x" * 100_000
    rows = [Row(name, 2), Row("k\udcff", 1)]
    file = checked(export(profile_of(rows), Selection(("kernel",)), "caf\udce9.sqlite"))
    assert [frame.name for frame in file.shared.frames] == [name, r"k\udcff"]
    assert file.name == r"caf\udce9.sqlite"


def test_a_tree_is_a_file_of_one_profile() -> None:
    file = io.BytesIO()
    tree = project_tree(profile_of([FORWARD, LOOSE]), levels="kernel", metric="count")
    assert speedscope.write_tree(tree, file, "trace") == []
    found = checked(file.getvalue())
    assert [one.name for one in found.profiles] == ["GPU activities"]
    assert stacks(found) == [(("gemm",), 1), (("memset",), 1)]


def test_deeper_than_the_viewer_reads_is_warned_about() -> None:
    assert speedscope.write_tree(chain(1_000), io.BytesIO(), "") == []
    [warning] = speedscope.write_tree(chain(1_001), io.BytesIO(), "")
    assert "1,001 frames" in warning
    assert "1,000" in warning


@pytest.mark.deep
def test_more_stacks_than_the_viewer_bears_are_warned_about() -> None:
    assert speedscope.write_tree(fan(200_000), io.BytesIO(), "") == []
    [warning] = speedscope.write_tree(fan(200_001), io.BytesIO(), "")
    assert "200,001 stacks" in warning
    assert "200,000" in warning


@given(some_rows)
def test_samples_are_those_of_a_naive_walk(rows: list[Row]) -> None:
    def encodable(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name.encode("utf-8", "backslashreplace").decode() for name in names)

    file = checked(export(profile_of(rows), Selection(metric="gpu")))
    values = {"GPU time": "duration", "launch API time": "launch_ns", "GPU idle before": "idle"}
    assert any(profile.name in values for profile in file.profiles)
    for index, profile in enumerate(file.profiles):
        if profile.name in values:
            own = ((encodable(row.names()), getattr(row, values[profile.name])) for row in rows)
            assert added_up(stacks(file, index)) == added_up(own)


@pytest.mark.parametrize("trace", NSYS_TRACES)
def test_real_traces_add_up(trace: str, nsys_trace: Callable[[str], Path]) -> None:
    profile = load(nsys_trace(trace))
    totals = {
        metric.title: int(project(profile, Selection(metric=metric.key)).total[0])
        for metric in METRICS
    }
    for metric in ("gpu", "host"):
        file = checked(export(profile, Selection(metric=metric)))
        assert {one.name: one.end_value for one in file.profiles}.items() <= totals.items()


@pytest.mark.parametrize(
    ("metric", "titles"),
    [
        (
            "gpu",
            ["GPU time", "GPU activities", "launch API time", "queue delay", "GPU idle before"],
        ),
        ("exposed", ["exposed time", "GPU time", "GPU activities", "launch API time"]),
        ("waiting", ["GPU waiting"]),
    ],
)
def test_what_is_made_when_asked_for_is_there_only_then(metric: str, titles: list[str]) -> None:
    profile = load(SAMPLES / "decode_small.sqlite")
    file = checked(export(profile, Selection(metric=metric)))
    assert [one.name for one in file.profiles][: len(titles)] == titles
    assert ("exposed time" in titles) == any(one.name == "exposed time" for one in file.profiles)


SAMPLED = Run((((), (), "gemm", 70),), (((0, 0, 0, 4), (0, 3, 3, 3)),), (0,))


def test_an_instruction_has_the_line_that_it_was_made_of() -> None:
    file = checked(export(SAMPLED.profile()))
    assert set(file.shared.frames) >= {
        SpeedscopeFrame("+0x0000 LDG.E R2, [R4]", "gemm.cu", 7),
        SpeedscopeFrame("+0x0030 BAR.SYNC", "sass"),
        SpeedscopeFrame("Long Scoreboard", "stall"),
    }


def test_instructions_and_reasons_stand_below_their_kernel_under_every_metric() -> None:
    file = checked(export(SAMPLED.profile(), Selection(metric="stalls")))
    loaded = ("launch", "gemm", "+0x0000 LDG.E R2, [R4]", "Long Scoreboard")
    waited = ("launch", "gemm", "+0x0030 BAR.SYNC", "Barrier")
    titles = [profile.name for profile in file.profiles]
    assert titles[:2] == ["PC samples", "GPU time"]
    assert sampled(file).unit == "none"
    assert stacks(file) == [(loaded, 4), (waited, 3)]
    assert stacks(file, 1) == [(loaded, 40), (waited, 30)]
