"""Dumps with PC samples, and what is to be found of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from flame.core.loading.many import load
from flame.core.model.profile import Profile
from tests.support.generated.sampled import per_instruction
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.fdumpfile import STALL_REASON, DumpFile

PREFIX = "smsp__pcsamp_warps_issue_stalled_"
REASONS = {
    1: f"{PREFIX}selected",
    4: f"{PREFIX}long_scoreboard",
    7: f"{PREFIX}wait",
    31: f"{PREFIX}long_scoreboard_not_issued",
}
TITLES = {1: "Selected", 4: "Long Scoreboard", 7: "Wait", 17: "Reason 17"}
NOT_ISSUED = 31
KERNELS = ("gemm", "_Z7softmaxPf", "copy")
NAMES = dict(zip(KERNELS, ("gemm", "softmax", "copy"), strict=True))
CRC = 0x8000000000000001


class Launched(NamedTuple):
    """A kernel that ran; equal correlations are of one launch."""

    kernel: str
    correlation: int
    place: int
    length: int = 10


class Sample(NamedTuple):
    """Samples in a function."""

    function: str
    offset: int
    reason: int
    number: int
    correlation: int = 0
    crc: int = CRC


def dump_of(launched: Iterable[Launched], samples: Iterable[Sample]) -> DumpFile:
    """A dump in which each kernel runs after the one before, launched at line ``place``."""
    dump = DumpFile(rows=3)
    for number, text in REASONS.items():
        dump.name(STALL_REASON, number, text)
    calls: set[int] = set()
    for at, one in enumerate(launched):
        start, python = 100 * at, dump.python(("step", "model.py", one.place))
        if one.correlation not in calls:
            dump.launch(start, start + 5, one.correlation, python=python)
        calls.add(one.correlation)
        dump.kernel(one.kernel, start + 10, start + 10 + one.length, one.correlation)
    for sample in samples:
        record(dump, sample)
    return dump


def record(dump: DumpFile, sample: Sample, **more: int) -> None:
    fields = {"offset": sample.offset, "reason": sample.reason, "samples": sample.number}
    fields |= {"correlation": sample.correlation, "crc": sample.crc} | more
    dump.record("sample", **{"function": dump.text(sample.function)} | fields)


def opened(dump: DumpFile, folder: Path) -> Profile:
    profile = load(dump.write(folder / "100-1.fdump"))
    if profile.sampling is not None:
        check(profile)
    return profile


def check(profile: Profile) -> None:
    """Sums agree, whichever way they are added up; the GPU time is what it was."""
    sampling, groups = profile.sampling, profile.activities.groups
    assert sampling is not None
    assert len(sampling.of_group) == len(groups)
    assert (sampling.samples > 0).all()
    whole = int(sampling.totals.sum())
    assert int(profile.activities.measures["stalls"].sum()) == whole
    for metric, expected in (("stalls", whole), ("gpu", profile.gpu_time)):
        tree = project_tree(profile, "python,kernel,sass,stall", metric=metric)
        assert int(tree.total[0]) == int(tree.own.sum()) == expected
    for number in range(len(sampling)):
        counted = [per_instruction(sampling, number, code) for code in range(len(sampling.codes))]
        assert sum(int(one.sum()) for one in counted) == int(sampling.totals[number])


Found = Counter[tuple[str, ...]]


def found(profile: Profile, levels: str = "kernel,sass,stall") -> Found:
    """Samples by the names on ``levels``."""
    counts: Found = Counter()
    if profile.sampling is None:
        return counts
    tree = project_tree(profile, levels, metric="stalls")
    paths: dict[int, tuple[str, ...]] = {0: ()}
    for node in range(1, len(tree)):
        paths[node] = (*paths[int(tree.parent[node])], tree.name(node))
        counts[paths[node]] += int(tree.own[node])
    return +counts


def instruction(function: str, offset: int) -> str:
    return f"{NAMES.get(function, function)}+0x{offset:x}"


def as_told(samples: Iterable[Sample], kernel: Mapping[str, str] = NAMES) -> Found:
    """The samples by kernel, instruction and reason."""
    counts: Found = Counter()
    for one in samples:
        if one.reason != NOT_ISSUED and one.function in kernel:
            place = instruction(one.function, one.offset)
            counts[kernel[one.function], place, TITLES[one.reason]] += one.number
    return +counts


GEMM, SOFTMAX, COPY = KERNELS
LAUNCHED = [Launched(GEMM, 1, 3), Launched(SOFTMAX, 2, 3), Launched(GEMM, 3, 7, 30)]
SAMPLES = [
    Sample(GEMM, 0x10, 4, 7),
    Sample(GEMM, 0x10, 1, 2),
    Sample(GEMM, 0x30, 4, 1),
    Sample(SOFTMAX, 0, 7, 5),
    Sample(GEMM, 0x10, 4, 3),
]


def warnings(profile: Profile, text: str) -> list[str]:
    return [warning for warning in profile.warnings if text in warning]


def counted(samples: Iterable[Sample]) -> list[Sample]:
    return [one for one in samples if one.number and one.reason != NOT_ISSUED]
