"""Phases as a level and a filter: each activity is of one, and sums are those of all else."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given

from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.many import load, load_all
from flame.core.model.activities import Activities
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.names.phases import UNMAPPED, parse_phases
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import parse_filters
from flame.core.projection.levels import recorded_levels
from flame.core.projection.phases import (
    name_phases,
    phase_frames,
    phase_names,
    tell_phases,
)
from flame.core.projection.project import project
from flame.core.projection.selection import select
from tests.conftest import TRACES, needs_traces
from tests.core.reopening.conftest import find, keep
from tests.support.generated.strategies import Script, scripts
from tests.support.profiles.recorded import Recorded
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

TEXT = '{"one": ["SOFT", "kernel:re:^ge.*2$"], "two": ["nvtx:layer"], "three": ["python:step"]}'
LEVELS = ("phase", "python", "native", "launch", "nvtx", "kernel")


def phase_of(profile: Profile, table: Activities, row: int) -> str:
    """By hand: the first phase that any frame of the path is of."""
    frames = profile.frames
    ids = {
        level: [*table.stacks.path(int(getattr(table, level)[row]))]
        for level in ("python", "native", "nvtx")
    }
    ids["launch"] = [one for one in (int(table.launch[row]),) if one >= 0]
    ids["kernel"] = [one for one in (int(table.frame[row]),) if one >= 0]
    names = {level: [frames[one].name.lower() for one in found] for level, found in ids.items()}
    kernels = [
        name
        for one, name in zip(ids["kernel"], names["kernel"], strict=True)
        if frames[one].kind == Kind.KERNEL
    ]
    if any("soft" in name for found in names.values() for name in found):
        return "one"
    if any(re.search("^ge.*2$", name) for name in kernels):
        return "one"
    if any("layer" in name for name in names["nvtx"]):
        return "two"
    return "three" if any("step" in name for name in names["python"]) else UNMAPPED


def top_sums(tree: StackTree) -> dict[str, tuple[int, int]]:
    return {
        tree.name(node): (int(tree.total[node]), int(tree.count[node])) for node in tree.children(0)
    }


def by_hand(profile: Profile) -> dict[str, tuple[int, int]]:
    table, sums = profile.activities, dict[str, tuple[int, int]]()
    for row in range(len(table)):
        name = phase_of(profile, table, row)
        ns, count = sums.get(name, (0, 0))
        sums[name] = ns + int(table.duration[row]), count + 1
    return sums


@pytest.mark.deep
@examples(1, [HealthCheck.too_slow])
@given(scripts())
def test_each_activity_stands_below_its_phase(trace_file: Path, script: Script) -> None:
    plain = load(script.write(trace_file), LoadOptions("raw"))
    if not len(plain.activities):
        return
    profile = name_phases(plain, parse_phases(TEXT))
    expected = by_hand(profile)
    tree = project(profile, select(LEVELS, metric="gpu"))
    assert top_sums(tree) == expected
    assert int(tree.total[0]) == plain.gpu_time
    nested = project(profile, select(("phase", "nested", "kernel"), metric="gpu"))
    assert top_sums(nested) == expected
    parts = 0
    for name, (ns, _) in expected.items():
        chosen = select(where=parse_filters(phase=name), metric="gpu")
        parts += int(project(profile, chosen).total[0])
        assert int(project(profile, chosen).total[0]) == ns
    assert parts == plain.gpu_time


def program() -> Profile:
    """A product within a layer, a softmax in none, and a copy."""
    trace = Recorded()
    trace.range("layers.0", 0, 50)
    for corr, (at, name, length) in enumerate(
        ((1, "gemm", 10), (60, "softmax", 20), (70, "gemm", 5)), 1
    ):
        trace.call("cudaLaunchKernel", at, at + 2, corr)
        trace.kernel(name, at + 100, at + 100 + length, corr)
    return trace.profile()


def test_without_a_file_phases_are_what_kernels_compute() -> None:
    profile = program()
    both = (project(profile, select((level, "kernel"))) for level in ("phase", "category"))
    assert [top_sums(tree) for tree in both] == 2 * [
        {"normalisation and reduction": (20, 1), "matrix product": (15, 2)}
    ]
    assert set(phase_names(profile)) == {"normalisation and reduction", "matrix product"}
    assert "phase" in recorded_levels(profile, project(profile).metric)
    chosen = project(profile, select(where=parse_filters(phase="matrix*")))
    assert int(chosen.total[0]) == 15


def serving() -> Profile:
    """Steps of TensorRT-LLM, vLLM and SGLang, a range within one, and a kernel in none."""
    trace = Recorded()
    steps = (
        ("[Executor] _forward_step 1: 2 ctx reqs, 0 gen reqs", 1),
        ("execute_context_0(0)_generation_8(8)", 2),
        ("[Executor] _forward_step 2: 1 ctx reqs, 8 gen reqs", 4),
        ("step[EXTEND bs=2 toks=12]", 8),
        ("step[DECODE bs=2]", 16),
        ("decode step 3", 32),
    )
    for corr, (name, length) in enumerate(steps, 1):
        at = 100 * corr
        trace.range(name, at, at + 50)
        trace.range("model.layers.0", at + 1, at + 40)
        trace.call("cudaLaunchKernel", at + 2, at + 3, corr)
        trace.kernel("gemm", at + 10, at + 10 + length, corr)
    trace.kernel("late", 900, 964)
    return trace.profile()


def test_ranges_of_serving_engines_tell_prefill_and_decode() -> None:
    plain = serving()
    profile = tell_phases(plain)
    tree = project(profile, select(("phase", "kernel")))
    expected = {"prefill": (9, 2), "decode": (50, 3), "mixed": (4, 1), UNMAPPED: (64, 1)}
    assert top_sums(tree) == expected
    assert set(phase_names(profile)) == expected.keys()
    assert int(project(profile, select(where=parse_filters(phase="decode"))).total[0]) == 50
    assert tell_phases(profile) is profile
    named = name_phases(plain, parse_phases('{"mm": ["gemm"]}'))
    assert tell_phases(named) is named


def test_the_innermost_range_tells_the_phase() -> None:
    trace = Recorded()
    trace.range("step[EXTEND bs=2 toks=12]", 0, 50)
    trace.range("step[DECODE bs=2]", 10, 40)
    for corr, at in enumerate((5, 15, 45), 1):
        trace.call("cudaLaunchKernel", at, at + 1, corr)
        trace.kernel("gemm", 100 * corr, 100 * corr + corr, corr)
    tree = project(tell_phases(trace.profile()), select(("phase",)))
    assert top_sums(tree) == {"prefill": (4, 2), "decode": (2, 1)}


@pytest.mark.parametrize("names", [("decode", "load"), ("decode", "decode 2")])
def test_decoding_without_prefill_may_be_of_images(names: tuple[str, ...]) -> None:
    trace = Recorded()
    for corr, name in enumerate(names, 1):
        trace.range(name, 100 * corr, 100 * corr + 9)
        trace.call("cudaLaunchKernel", 100 * corr, 100 * corr + 1, corr)
        trace.kernel("gemm", 1000 * corr, 1000 * corr + 1, corr)
    profile = trace.profile()
    assert tell_phases(profile) is profile


def test_a_trace_from_the_cache_has_the_same_phases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with NsysFile(tmp_path / "trace.sqlite") as file:
        for corr, (name, length) in enumerate((("step[EXTEND bs=2]", 3), ("step[DECODE]", 5)), 1):
            file.nvtx(name, 100 * corr, 100 * corr + 50)
            file.api("cudaLaunchKernel_v7000", 100 * corr, 100 * corr + 1, corr=corr)
            file.kernel("gemm", 100 * corr, 100 * corr + length, corr=corr)
    before, found = keep(tmp_path / "trace.sqlite"), find(tmp_path / "trace.sqlite")
    assert found is not None
    for profile in (before, found):
        tree = project(tell_phases(profile), select(("phase", "kernel")))
        assert top_sums(tree) == {"prefill": (3, 1), "decode": (5, 1)}


@needs_traces
def test_a_trace_of_vllm_has_phases_at_once() -> None:
    profile = load(TRACES / "kineto" / "mi300_vllm_hipgraph.json.gz")
    assert phase_names(profile) == ("decode", UNMAPPED)
    sums = top_sums(project(profile, select(("phase",))))
    assert sum(ns for ns, _ in sums.values()) == profile.gpu_time


def test_a_level_of_phases_may_stand_anywhere() -> None:
    profile = name_phases(program(), parse_phases('{"mm": ["kernel:gemm"]}'))
    tree = project(profile, select(("nvtx", "phase", "kernel")))
    paths = {tree.names(node): int(tree.own[node]) for node in range(len(tree)) if tree.own[node]}
    assert paths == {
        ("layers.0", "mm", "gemm"): 10,
        ("mm", "gemm"): 5,
        (UNMAPPED, "softmax"): 20,
    }
    assert tree.kind(tree.find(("layers.0", "mm"))) == Kind.PHASE


def test_phases_of_the_host_are_those_of_its_frames() -> None:
    profile = name_phases(program(), parse_phases('{"in layers": ["nvtx:layers"]}'))
    tree = project(profile, select(("phase", "nvtx", "launch"), metric="host"))
    plain = project(profile, select(("nvtx", "launch"), metric="host"))
    inside = plain.total[plain.find(("layers.0",))]
    assert top_sums(tree)["in layers"][0] == inside
    assert int(tree.total[0]) == int(plain.total[0])


def test_names_that_are_shown_change_no_phase() -> None:
    profile = name_phases(program(), parse_phases('{"mm": ["gemm"]}'))
    sums = {
        naming: top_sums(project(profile, select(("phase",), kernel_names=naming)))
        for naming in ("base", "short", "demangled", "mangled")
    }
    assert all(found == sums["base"] for found in sums.values())


def test_kernels_are_matched_by_their_short_and_their_base_name(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    full = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >()"
    )
    with NsysFile(path) as file:
        file.kernel("vectorized_elementwise_kernel", 0, 100, demangled=full)
    for pattern, name in (
        ("kernel:functor_add", "a"),
        ("kernel:re:elementwise_kernel$", "a"),
        ("void at::native", UNMAPPED),
    ):
        profile = name_phases(load(path), parse_phases(f'{{"a": ["{pattern}"]}}'))
        assert top_sums(project(profile, select(("phase",)))) == {name: (100, 1)}


def test_several_phases_and_wildcards_are_chosen() -> None:
    rules = parse_phases('{"a1": ["kernel:gemm"], "a2": ["kernel:softmax"], "b": ["x"]}')
    profile = name_phases(program(), rules)
    chosen = {
        text: int(project(profile, select(where=parse_filters(phase=text))).total[0])
        for text in ("a1", "a1,a2", "a*", "a?", "a1, unmapped")
    }
    assert chosen == {"a1": 15, "a1,a2": 35, "a*": 35, "a?": 35, "a1, unmapped": 15}
    with pytest.raises(NoMatchError, match=r"its phases are a1, a2, b, unmapped$"):
        project(profile, select(where=parse_filters(phase="c")))
    with pytest.raises(NoMatchError, match=r"matches the selection$"):
        project(profile, select(where=parse_filters(phase="b")))
    with pytest.raises(UsageError, match="--phase ',': no phase given"):
        parse_filters(phase=",")


def test_a_phase_that_is_called_as_the_rest_is() -> None:
    profile = name_phases(program(), parse_phases(f'{{"{UNMAPPED}": ["gemm"], "b": ["soft"]}}'))
    assert top_sums(project(profile, select(("phase",)))) == {UNMAPPED: (15, 2), "b": (20, 1)}


def test_frames_of_stacks_have_phases_where_a_file_names_some(tmp_path: Path) -> None:
    path = tmp_path / "x.folded"
    path.write_text("main;train;forward 5\nmain;load 7\nmain;train 1\n")
    plain = load(path)
    assert "phase" not in recorded_levels(plain, plain.metrics[0])
    profile = name_phases(plain, parse_phases('{"training": ["train"]}'))
    assert "phase" in recorded_levels(profile, profile.metrics[0])
    tree = project(profile, select(("phase", "stack")))
    assert {name: ns for name, (ns, _) in top_sums(tree).items()} == {"training": 6, UNMAPPED: 7}


@pytest.mark.deep
def test_a_file_of_phases_is_read_with_the_traces(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.folded" for name in "ab"]
    for path in paths:
        path.write_text("main;train 5\nmain;load 7\n")
    phases = tmp_path / "phases.json"
    phases.write_text('{"training": ["train"]}')
    profile = load_all(paths, LoadOptions(phases=str(phases)))
    assert phase_names(profile) == ("training", UNMAPPED)
    names = [profile.frames[at].name for at in phase_frames(profile, profile.activities).tolist()]
    assert sorted(names) == ["training", "training", UNMAPPED, UNMAPPED]
    phases.write_text("[")
    with pytest.raises(UsageError, match="not JSON"):
        load_all([tmp_path / "none"], LoadOptions(phases=str(phases)))


@needs_traces
def test_phases_of_a_real_trace_add_up() -> None:
    plain = load(TRACES / "nsys" / "a100_llm_nvtx.sqlite")
    rules = parse_phases('{"loading": ["nvtx:init_model"], "warm-up": ["nvtx:warmup"]}')
    profile = name_phases(plain, rules)
    sums = top_sums(project(profile, select(("phase", "nvtx", "kernel"))))
    ranges = top_sums(project(plain, select(("nvtx", "kernel"))))
    assert sums["loading"] == ranges["init_model"]
    assert sums["warm-up"] == ranges["warmup"]
    assert sum(ns for ns, _ in sums.values()) == plain.gpu_time
    assert np.array_equal(plain.activities.groups.frame, profile.activities.groups.frame)
