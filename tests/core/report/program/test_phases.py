"""Phases: each activity is of the first that fits, as plain loops over paths find it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given

from flame.core.errors import InputError, UsageError
from flame.core.loading.many import load
from flame.core.model.activities import ThreadPieces
from flame.core.model.profile import Profile
from flame.core.names.phases import UNMAPPED, parse_phases, read_phases
from flame.core.options import LoadOptions
from flame.core.projection.filters import Kernel, Steps
from flame.core.projection.phases import name_phases
from flame.core.projection.selection import select
from flame.core.report.program.phases import (
    built_in_patterns,
    kernel_families,
    named_phases,
    phases_section,
    user_phases,
)
from flame.core.report.scope import Scope
from tests.conftest import TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.profiles.recorded import Recorded
from tests.support.tiers import examples

TEXT = '{"one": ["SOFT", "kernel:re:^ge.*2$"], "two": ["nvtx:layer"], "three": ["python:step"]}'


def phase_of(names: dict[str, list[str]]) -> str:
    """By hand: the names of a path, by kind."""
    every = [name.lower() for found in names.values() for name in found]
    if any("soft" in name for name in every) or any(
        re.search("^ge.*2$", name) for name in names["kernel"]
    ):
        return "one"
    if any("layer" in name for name in names["nvtx"]):
        return "two"
    return "three" if any("step" in name for name in names["python"]) else UNMAPPED


def path_of(profile: Profile, row: int) -> dict[str, list[str]]:
    table, frames = profile.activities, profile.frames
    found = {
        level: [frames[at].name for at in table.stacks.path(int(getattr(table, level)[row]))]
        for level in ("python", "native", "nvtx")
    }
    kernel, launch = int(table.frame[row]), int(table.launch[row])
    return {**found, "kernel": [frames[kernel].name], "launch": [frames[launch].name]}


@examples(1, [HealthCheck.too_slow])
@given(scripts())
def test_each_activity_is_of_the_first_phase_that_fits(trace_file: Path, script: Script) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    if not len(profile.activities):
        return
    found = user_phases(Scope(name_phases(profile, parse_phases(TEXT))))
    expected = dict.fromkeys(found.names, 0)
    for row in range(len(profile.activities)):
        expected[phase_of(path_of(profile, row))] += int(profile.activities.duration[row])
    assert dict(zip(found.names, found.gpu_time.tolist(), strict=True)) == expected
    assert int(found.activities.sum()) == len(profile.activities)
    layers = moments(profile, profile.ranges, "layer")
    if found.host is not None:
        assert found.host[1] == len(layers)
    else:
        assert not layers


def moments(profile: Profile, pieces: ThreadPieces | None, word: str) -> set[tuple[int, int]]:
    assert pieces is not None
    return {
        (int(pieces.thread[at]), moment)
        for at in range(len(pieces))
        if word in profile.frames[int(pieces.frame[at])].name
        for moment in range(int(pieces.start[at]), int(pieces.end[at]))
    }


# By hand


def serving() -> Recorded:
    """A step of prefill, two of decode with two kernels each, and one kernel in none."""
    trace = Recorded()
    names = ("execute_context_2(512)_generation_0(0)", "execute_context_0(0)_generation_8(8)")
    corr = 0
    for place, name in enumerate((names[0], names[1], names[1])):
        at = 100 * place
        detail = f"phase={'context' if place == 0 else 'generation'}, more"
        trace.range("execute", at, at + 50, detail=detail) if place else trace.range(
            name, at, at + 50
        )
        for kernel, length in (("flash_fwd_kernel", 10), ("gemm", 5 + place)):
            corr += 1
            trace.call("cudaLaunchKernel", at + corr, at + corr + 1, corr)
            trace.kernel(kernel, at + 10 * corr, at + 10 * corr + length, corr)
    trace.kernel("late", 900, 907)
    return trace


def test_names_of_steps_tell_prefill_and_decode() -> None:
    found = named_phases(Scope(serving().profile()))
    assert found is not None
    assert found.names == ("prefill", "decode", UNMAPPED)
    assert found.gpu_time.tolist() == [15, 33, 7]
    assert found.activities.tolist() == [2, 4, 1]
    assert found.host is not None
    assert found.host.tolist() == [50, 100, 0]
    section = phases_section(Scope(serving().profile()))
    assert section.facts["by"] == "ranges"
    assert [table.key for table in section.tables] == ["rows", "families"]


def test_families_add_up_to_what_passes() -> None:
    scope = Scope(serving().profile())
    found = kernel_families(scope)
    told = dict(zip(found.names, found.gpu_time.tolist(), strict=True))
    assert told == {"attention": 30, "matrix product": 18, "other": 7}
    some = kernel_families(Scope(serving().profile(), select(where=(Kernel("gemm"),))))
    assert (int(some.gpu_time.sum()), int(some.activities.sum())) == (18, 3)


def test_per_iteration_is_the_mean_of_those_there_are() -> None:
    trace = Recorded()
    for number in range(4):
        at = 100 * number
        trace.range(f"step {number}", at, at + 90)
        trace.call("cudaLaunchKernel", at + 1, at + 2, number + 1)
        trace.kernel("gemm", at + 10, at + 20 + number, number + 1)
    trace.kernel("gemm", 1_000, 1_030)
    profile = name_phases(trace.profile(), parse_phases('{"mm": ["gemm"]}'))
    found = user_phases(Scope(profile))
    assert found.gpu_time.tolist() == [76, 0]
    assert found.iteration_ns is not None
    assert found.iteration_ns.tolist() == [11, 0], "46 ns in four of them"
    some = user_phases(Scope(profile, select(where=(Steps.of([2, 3]),))))
    assert some.iteration_ns is not None
    assert some.iteration_ns.tolist() == [12, 0], "25 ns in two"


def test_the_file_of_phases_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "phases.json"
    for text, why in (
        ("[", "not JSON"),
        ("[1]", "not an object"),
        ("{}", "not an object"),
        ('{"a": "x"}', "no list of patterns"),
        ('{"a": [1]}', "no list of patterns"),
        ('{"a": ["kernel:"]}', "matches everything"),
        ('{"a": ["re:("]}', "not a regular expression"),
        ('{"a": ["re:"]}', "matches everything"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=why):
            read_phases(str(path))
    path.write_bytes(b'{"a": ["\xff"]}')
    with pytest.raises(UsageError, match="UTF-8"):
        read_phases(str(path))
    path.write_bytes(b" " * (1 << 21))
    with pytest.raises(UsageError, match="larger"):
        read_phases(str(path))
    with pytest.raises(InputError):
        read_phases(str(tmp_path / "none.json"))
    path.write_text(TEXT)
    assert [phase.name for phase in read_phases(str(path))] == ["one", "two", "three"]


def test_a_word_that_is_no_kind_is_part_of_the_name() -> None:
    [phase] = parse_phases('{"a": ["aten::mm", "module:x"]}')
    assert [one.expression.search("see ATEN::MM") is not None for one in phase.patterns] == [
        True,
        False,
    ]
    assert [one.kind for one in phase.patterns] == [None, None]


def test_the_patterns_of_kernels_can_be_read() -> None:
    assert "communication\n    nccl|" in built_in_patterns()
    assert "decode\n    phase=generation" in built_in_patterns()


@needs_traces
def test_a_trace_of_decoding_is_all_generation() -> None:
    scope = Scope(load(TRACES / "kineto" / "mi300_vllm_hipgraph.json.gz"))
    found = named_phases(scope)
    assert found is not None
    assert found.names == ("decode", UNMAPPED)
    assert found.gpu_time.tolist() == [scope.profile.gpu_time, 0]
    families = kernel_families(scope)
    assert int(families.gpu_time.sum()) == scope.profile.gpu_time
    assert np.all(families.gpu_time >= 0)
