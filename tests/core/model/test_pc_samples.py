"""Code, samples and whose they are; profiles that are given some."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from flame.core.errors import UsageError
from flame.core.model.frames import FrameBuilder, Kind
from flame.core.model.metrics import metric_of
from flame.core.model.pc_samples import Code, CodeSamples, Sampling, SamplingBuilder
from flame.core.model.profile import Profile
from flame.core.projection.labels import Naming
from flame.core.projection.levels import default_levels, recorded_levels
from flame.core.sampling.attach import attach_sampling
from tests.support.generated.sampled import CODES, REASONS, Run, per_instruction, runs
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, i8

GEMM, OTHER, SOFTMAX = CODES


def samples(code: Code, *entries: tuple[int, int, int]) -> CodeSamples:
    """Samples by (place, reason, number)."""
    place, reason, number = zip(*entries, strict=True)
    return CodeSamples(
        code, np.array(place, np.int32), np.array(reason, np.int32), i8(*number), REASONS
    )


def trace() -> Recorded:
    """Two kernels of 30 and 10 ns of which samples are known, and one of 60 ns without."""
    recorded = Recorded()
    recorded.range("step", 0, 50)
    for place, (name, length) in enumerate([("gemm", 30), ("gemm", 10), ("copy", 60)]):
        recorded.call("launch", 10 * place, 10 * place + 5, corr=place + 1)
        recorded.kernel(name, 1_000 * place, 1_000 * place + length, corr=place + 1)
    return recorded


def sampled(*, exact: bool = False, own: list[int] | None = None) -> Profile:
    """The `trace` with 7 samples in gemm; `own` says of which activities these are."""
    plain = trace().profile()
    frames = FrameBuilder.from_table(plain.frames)
    builder = SamplingBuilder(frames)
    builder.add([samples(GEMM, (0, 0, 4), (3, 3, 1)), samples(SOFTMAX, (1, 0, 2))], exact)
    names = [plain.frames[frame].name for frame in plain.activities.groups.frame.tolist()]
    of_group = np.array([0 if name == "gemm" else -1 for name in names], np.int32)
    return attach_sampling(
        plain, frames, builder.build(of_group), None if own is None else i8(*own)
    )


# Code


def test_an_instruction_is_called_by_its_offset_and_its_text() -> None:
    assert GEMM.instruction(1) == "+0x0010 HFMA2 R0, R1"
    assert Code("k", i8(0x12345), ("EXIT",), *NOWHERE).instruction(0) == "+0x12345 EXIT"


def test_without_text_it_is_called_after_its_kernel() -> None:
    assert [SOFTMAX.instruction(place) for place in range(3)] == [
        "softmax+0x0",
        "softmax+0x40",
        "softmax+0x400",
    ]


NOWHERE = np.full((2, 1), -1, np.int32)


def test_a_frame_knows_its_line_where_the_code_does() -> None:
    known, unknown = GEMM.frames(np.array([0, 4]))
    assert (known.kind, known.file, known.line) == (Kind.SASS, "gemm.cu", 7)
    assert (unknown.file, unknown.line) == ("", 0)
    assert known.get("function") == "gemm"


# Distributions


def built(*distributions: list[CodeSamples]) -> tuple[Sampling, FrameBuilder]:
    frames = FrameBuilder()
    builder = SamplingBuilder(frames)
    numbers = [
        builder.add(parts, exact=place % 2 == 0) for place, parts in enumerate(distributions)
    ]
    assert numbers == list(range(len(distributions)))
    return builder.build(np.zeros(0, np.int32)), frames


def test_distributions_are_kept_apart_and_code_is_kept_once() -> None:
    first = [samples(GEMM, (0, 0, 4), (3, 3, 1)), samples(SOFTMAX, (1, 0, 2))]
    sampling, frames = built(first, [], [samples(GEMM, (0, 0, 5))])
    assert len(sampling) == 3
    assert sampling.totals.tolist() == [7, 0, 5]
    assert sampling.exact.tolist() == [True, False, True]
    assert sampling.codes == (GEMM, SOFTMAX)
    assert [sampling.entries(number) for number in range(3)] == [
        slice(0, 3),
        slice(3, 3),
        slice(3, 4),
    ]
    names = [frames[frame].name for frame in sampling.sass.tolist()]
    assert names == ["+0x0000 LDG.E R2, [R4]", "+0x0030 BAR.SYNC", "softmax+0x40", names[0]]
    # One instruction at two places is one frame, and so is a reason.
    assert sampling.sass[0] == sampling.sass[3]
    assert sampling.stall.tolist() == [
        sampling.stall[0],
        sampling.stall[1],
        *[sampling.stall[0]] * 2,
    ]


def test_equal_instructions_of_two_kernels_are_two() -> None:
    other = replace(GEMM, name="relu")
    sampling, _ = built([samples(GEMM, (0, 0, 1)), samples(other, (0, 0, 1))])
    assert sampling.sass[0] != sampling.sass[1]


def test_samples_by_instruction_are_those_of_one_distribution_and_code() -> None:
    sampling, _ = built(
        [samples(GEMM, (0, 0, 4), (0, 1, 3), (3, 3, 1)), samples(SOFTMAX, (1, 0, 2))],
        [samples(GEMM, (0, 0, 50))],
    )
    assert per_instruction(sampling, 0, 0).tolist() == [7, 0, 0, 1, 0]
    assert per_instruction(sampling, 0, 1).tolist() == [0, 2, 0]
    assert per_instruction(sampling, 1, 0).tolist() == [50, 0, 0, 0, 0]
    assert per_instruction(sampling, 1, 1).tolist() == [0, 0, 0]


def test_no_distribution_at_all_is_a_sampling_too() -> None:
    sampling, _ = built()
    assert (len(sampling), sampling.totals.tolist()) == (0, [])


# Profiles


def test_a_profile_with_samples_has_their_levels_and_their_metric() -> None:
    profile = sampled()
    gpu, stalls = metric_of("gpu", profile.metrics), metric_of("stalls", profile.metrics)
    for metric in (gpu, stalls):
        assert default_levels(profile, metric, Naming())[-3:] == ("kernel", "sass", "stall")
        assert recorded_levels(profile, metric) >= {"sass", "stall"}
    assert recorded_levels(profile, metric_of("host")).isdisjoint({"sass", "stall"})
    assert default_levels(profile, metric_of("host"), Naming())[-1] == "launch"
    assert profile.coverage["sass"].ns == 40
    assert profile.coverage["sass"].percent == 40.0


def test_a_profile_without_samples_says_how_to_get_some() -> None:
    profile = trace().profile()
    assert "sass" not in profile.coverage
    assert recorded_levels(profile, metric_of("gpu")).isdisjoint({"sass", "stall"})
    with pytest.raises(UsageError, match=r"no PC samples here.*--ncu"):
        project_tree(profile, metric="stalls")


def test_samples_of_all_launches_are_spread_over_these_by_time() -> None:
    assert sampled().activities.measures["stalls"].tolist() == [5, 2, 0]


def test_samples_of_each_launch_are_its_own() -> None:
    profile = sampled(exact=True, own=[1, 6, 0])
    assert profile.activities.measures["stalls"].tolist() == [1, 6, 0]
    assert project_tree(profile, "kernel", metric="stalls").total[0] == 7


def test_what_a_profile_has_stays() -> None:
    plain, profile = trace().profile(), sampled()
    assert profile.frames.frames[: len(plain.frames)] == plain.frames.frames
    assert profile.activities.groups.of_row.tolist() == plain.activities.groups.of_row.tolist()
    assert len(profile.grouping.shapes) == len(profile.frames)
    for levels in ("nvtx,kernel", "shapes,launch"):
        assert (
            project_tree(profile, levels).total.tolist()
            == project_tree(plain, levels).total.tolist()
        )


@given(runs)
def test_all_samples_of_distributions_in_use_are_somewhere(run: Run) -> None:
    profile = run.profile()
    assert profile.sampling is not None
    used = np.unique(profile.sampling.of_group)
    expected = profile.sampling.totals[used[used >= 0]].sum()
    assert profile.activities.measures["stalls"].sum() == expected
    assert project_tree(profile, "kernel", metric="stalls").total[0] == expected
