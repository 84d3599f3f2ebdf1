"""PC samples of dumps: whose they are, against a plain count, and what is left out of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load, load_all
from flame.core.model.pc_samples import Code
from flame.core.model.profile import Profile
from flame.core.sass.code_files import write_codes
from flame.core.sass.module_lives import CubinId
from tests.support.project_tree import project_tree
from tests.support.sampled import per_instruction
from tests.support.tiers import examples
from tests.support.writers.fdumpfile import STALL_REASON, DumpFile, layouts

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


def test_samples_of_all_launches(tmp_path: Path) -> None:
    profile = opened(dump_of(LAUNCHED, SAMPLES), tmp_path)
    assert found(profile) == as_told(SAMPLES)
    assert profile.sampling is not None
    assert not profile.sampling.exact.any()
    # By the time that each took: 10 and 30 ns.
    assert profile.activities.measures["stalls"].tolist() == [3, 5, 10]


def test_samples_of_each_launch(tmp_path: Path) -> None:
    samples = [
        Sample(GEMM, 0x10, 4, 7, 1),
        Sample(GEMM, 0x20, 1, 2, 3),
        Sample(SOFTMAX, 0, 7, 5, 2),
        Sample(GEMM, 0x10, 4, 100, 3),
    ]
    profile = opened(dump_of(LAUNCHED, samples), tmp_path)
    assert profile.sampling is not None
    assert profile.sampling.exact.all()
    assert profile.activities.measures["stalls"].tolist() == [7, 5, 102]
    by_place = found(profile, "python,sass")
    assert by_place == {
        ("step", "gemm+0x10"): 107,
        ("step", "gemm+0x20"): 2,
        ("step", "softmax+0x0"): 5,
    }
    assert found(profile) == as_told(samples)


def test_not_issued_samples_are_counted_elsewhere_already(tmp_path: Path) -> None:
    more = [*SAMPLES, Sample(GEMM, 0x10, NOT_ISSUED, 1000)]
    assert found(opened(dump_of(LAUNCHED, more), tmp_path)) == as_told(SAMPLES)
    alone = opened(dump_of(LAUNCHED, more[-1:]), tmp_path)
    assert alone.sampling is None
    assert "stalls" not in alone.activities.measures


def test_a_reason_without_a_name(tmp_path: Path) -> None:
    profile = opened(dump_of(LAUNCHED, [Sample(GEMM, 0, 17, 3)]), tmp_path)
    assert found(profile) == {("gemm", "gemm+0x0", "Reason 17"): 3}


def warnings(profile: Profile, text: str) -> list[str]:
    return [warning for warning in profile.warnings if text in warning]


def test_functions_of_no_recorded_kernel_are_told(tmp_path: Path) -> None:
    more = [*SAMPLES, Sample("_Z5otherv", 0, 1, 1234), Sample("third", 0, 1, 1)]
    profile = opened(dump_of(LAUNCHED, more), tmp_path)
    assert found(profile) == as_told(SAMPLES)
    [warning] = warnings(profile, "no recorded kernel")
    assert warning.startswith("1,235 PC samples are in functions of no recorded kernel (")
    assert "other" in warning and "third" in warning
    alone = opened(dump_of([], [Sample(GEMM, 0, 1, 1)]), tmp_path)
    assert alone.sampling is None
    assert warnings(alone, "1 PC sample is in functions of no recorded kernel (gemm)")


def test_a_function_that_a_kernel_calls_is_of_its_launch(tmp_path: Path) -> None:
    samples = [Sample(GEMM, 0, 1, 5, 1), Sample("_Z6calledv", 16, 4, 2, 1)]
    profile = opened(dump_of(LAUNCHED, samples), tmp_path)
    assert profile.activities.measures["stalls"].tolist() == [7, 0, 0]
    assert found(profile, "kernel,sass") == {("gemm", "gemm+0x0"): 5, ("gemm", "called+0x10"): 2}


def test_a_launch_that_was_not_recorded(tmp_path: Path) -> None:
    others = [Sample(GEMM, 0x40, 1, 6, 99)]
    alone = opened(dump_of(LAUNCHED, others), tmp_path)
    assert found(alone) == as_told(others)
    assert alone.sampling is not None and not alone.sampling.exact.any()
    own = [Sample(GEMM, 0, 1, 5, 1)]
    both = opened(dump_of(LAUNCHED, own + others), tmp_path)
    assert found(both) == as_told(own)
    assert warnings(both, "6 PC samples are of launches that were not recorded: left out")


def test_where_some_do_not_know_their_launch_all_are_of_all(tmp_path: Path) -> None:
    samples = [Sample(GEMM, 0, 1, 5, 1), Sample(GEMM, 0, 1, 9), Sample(SOFTMAX, 0, 1, 4, 2)]
    profile = opened(dump_of(LAUNCHED, samples), tmp_path)
    assert found(profile) == as_told(samples)
    assert profile.sampling is not None
    exact = profile.sampling.exact[profile.sampling.of_group[profile.activities.groups.of_row]]
    assert exact.tolist() == [False, True, False]


def test_several_kernels_of_one_launch(tmp_path: Path) -> None:
    launched = [Launched(GEMM, 1, 3), Launched(SOFTMAX, 1, 3), Launched(GEMM, 1, 3, 30)]
    samples = [Sample(GEMM, 0, 1, 4, 1), Sample(SOFTMAX, 0, 1, 3, 1)]
    profile = opened(dump_of(launched, samples), tmp_path)
    assert found(profile) == as_told(samples)
    assert profile.activities.measures["stalls"].tolist() == [1, 3, 3]


def test_kernels_of_one_launch_at_several_places_cannot_be_told_apart(tmp_path: Path) -> None:
    dump = DumpFile()
    dump.name(STALL_REASON, 1, REASONS[1])
    # Two nodes of a graph, captured in different ranges, replayed by one launch.
    for node, name in ((11, "layer 0"), (12, "layer 1")):
        dump.graph_node(node, 0, node, nvtx=dump.nvtx(name))
    dump.launch(100, 110, 1)
    dump.kernel(GEMM, 120, 130, 1, graph_node=11)
    dump.kernel(GEMM, 140, 170, 1, graph_node=12)
    record(dump, Sample(GEMM, 0, 1, 8, 1))
    profile = opened(dump, tmp_path)
    assert len(profile.activities.groups) == 2
    assert profile.sampling is not None
    assert profile.sampling.of_group.tolist() == [0, 0]
    assert profile.sampling.exact.tolist() == [False]
    assert sorted(profile.activities.measures["stalls"].tolist()) == [2, 6]


def test_two_cubins_with_a_function_of_one_name(tmp_path: Path) -> None:
    samples = [Sample(GEMM, 0, 1, 5, crc=1), Sample(GEMM, 0, 1, 2, crc=2), Sample(GEMM, 0, 1, 1)]
    profile = opened(dump_of(LAUNCHED, samples), tmp_path)
    assert profile.sampling is not None
    assert [code.name for code in profile.sampling.codes] == [GEMM] * 3
    assert found(profile) == as_told(samples)


def test_samples_at_no_known_instruction_are_kept(tmp_path: Path) -> None:
    known = Code(
        GEMM,
        np.array([0, 16, 32]),
        ("LDC R1, c[0x0]", "@P0 EXIT", "NOP"),
        np.array([0, 0, -1], np.int32),
        np.array([3, 4, 0], np.int32),
        ("a.cu",),
    )
    (tmp_path / "cubins").mkdir()
    folder = os.open(tmp_path / "cubins", os.O_RDONLY)
    write_codes(folder, f"{CRC:016x}.sass", "13", {GEMM: known})
    os.close(folder)
    samples = [Sample(GEMM, offset, 1, 2) for offset in (16, 24, 4096)]
    profile = opened(dump_of(LAUNCHED, samples), tmp_path)
    names = ("+0x0010 @P0 EXIT", "gemm+0x18", "gemm+0x1000")
    assert found(profile, "kernel,sass") == {("gemm", name): 2 for name in names}
    assert profile.sampling is not None
    [code] = profile.sampling.codes
    assert code.offset.tolist() == [0, 16, 24, 32, 4096]
    assert code.file.tolist() == [0, 0, -1, -1, -1]
    assert code.line.tolist() == [3, 4, 0, 0, 0]


# Cubins that share a checksum


def keep(folder: Path, cubin: CubinId, *texts: str) -> None:
    """Puts instructions of GEMM beside the dump."""
    (folder / "cubins").mkdir(exist_ok=True)
    size = len(texts)
    nowhere, none = np.full(size, -1, np.int32), np.zeros(size, np.int32)
    code = Code(GEMM, np.arange(size, dtype=np.int64) * 16, texts, nowhere, none)
    opened = os.open(folder / "cubins", os.O_RDONLY)
    write_codes(opened, f"{cubin.stem}.sass", "13", {GEMM: code})
    os.close(opened)


def load_module(dump: DumpFile, content: int, time: int, module: int, context: int = 1) -> None:
    fields = {"hash": content, "time": dump.time(time), "module": module, "context": context}
    dump.record("module", crc=CRC, **fields)


def colliding(folder: Path) -> DumpFile:
    """Two cubins of one checksum: the first is unloaded when the second is loaded."""
    dump = dump_of(LAUNCHED, [])
    load_module(dump, 5, 1_000, 1)
    dump.record("module_end", time=dump.time(90_000), module=1, context=1)
    load_module(dump, 6, 100_000, 2)
    keep(folder, CubinId(CRC, 5), "NOP", "ADD 5")
    keep(folder, CubinId(CRC, 6), "NOP", "ADD 6")
    return dump


DIFFER = ["+0x0000 NOP", "+0x0010 [2 cubins differ]"]
WHEN = {
    "the first": (50_000, 10, 1, ["+0x0000 NOP", "+0x0010 ADD 5"]),
    "the second": (150_000, 10, 1, ["+0x0000 NOP", "+0x0010 ADD 6"]),
    "either": (110_000, 30, 1, DIFFER),
    "not known since when": (150_000, 0, 1, DIFFER),
    "in no known context": (110_000, 30, 0, DIFFER),
    "in another context": (110_000, 30, 2, ["gemm+0x0", "gemm+0x10"]),
    "before any": (500, 0, 1, ["gemm+0x0", "gemm+0x10"]),
}


@pytest.mark.parametrize(("time", "span", "context", "shown"), WHEN.values(), ids=WHEN)
def test_the_cubin_that_was_loaded_is_meant(
    tmp_path: Path, time: int, span: int, context: int, shown: list[str]
) -> None:
    dump = colliding(tmp_path)
    for offset in (0, 16):
        when = {"time": dump.time(time), "span": span, "context": context}
        record(dump, Sample(GEMM, offset, 1, 2), **when)
    profile = opened(dump, tmp_path)
    assert sorted(name for _, name in found(profile, "kernel,sass")) == sorted(shown)
    shared = warnings(profile, "2 cubins share CUPTI's checksum")
    assert len(shared) == (shown == DIFFER)
    assert len(warnings(profile, "which cubin they are of was not recorded")) == ("g" in shown[0])


def test_samples_of_both_lives_are_apart(tmp_path: Path) -> None:
    dump = colliding(tmp_path)
    for time in (50_000, 150_000):
        record(dump, Sample(GEMM, 16, 1, 2), time=dump.time(time), span=10, context=1)
    profile = opened(dump, tmp_path)
    names = {"+0x0010 ADD 5", "+0x0010 ADD 6"}
    assert found(profile, "kernel,sass") == {("gemm", name): 2 for name in names}


def test_older_dumps_know_cubins_by_their_checksum_alone(tmp_path: Path) -> None:
    records = dict(layouts())
    del records["module_end"]
    for key, new in (("module", "hash"), ("sample", "span")):
        number, fields = records[key]
        records[key] = number, [field for field in fields if field[0] != new]
    dump = DumpFile(records=records)
    dump.name(STALL_REASON, 1, REASONS[1])
    dump.kernel(GEMM, 10, 20, 1)
    dump.record("module", crc=CRC, size=100, context=3)
    record(dump, Sample(GEMM, 16, 1, 2), time=dump.time(15), context=4)
    keep(tmp_path, CubinId(CRC), "NOP", "ADD 7")
    assert found(opened(dump, tmp_path), "kernel,sass") == {("gemm", "+0x0010 ADD 7"): 2}


def test_processes_have_their_own(tmp_path: Path) -> None:
    paths = []
    for pid, count in ((100, 5), (101, 7)):
        dump = dump_of(LAUNCHED, [Sample(GEMM, 0, 1, count)])
        dump.pid = pid
        paths.append(dump.write(tmp_path / f"{pid}-1.fdump"))
    profile = load_all(paths)
    check(profile)
    assert sorted(found(profile, "process,kernel").values()) == [5, 7]


def test_nothing_is_said_of_dumps_without_samples(tmp_path: Path) -> None:
    profile = opened(dump_of(LAUNCHED, []), tmp_path)
    assert profile.sampling is None
    assert not warnings(profile, "PC samples")


# Against a plain count

kernels = st.builds(
    Launched,
    st.sampled_from(KERNELS),
    st.integers(1, 4),
    st.integers(1, 2),
    st.sampled_from([0, 1, 10, 33]),
)
all_samples = st.lists(
    st.builds(
        Sample,
        st.sampled_from([*KERNELS, "called"]),
        st.sampled_from([0, 0x10, 0x18, 0x5000]),
        st.sampled_from([*TITLES, NOT_ISSUED]),
        st.integers(0, 5),
        st.sampled_from([0, 1, 2, 3, 9]),
        st.sampled_from([0, CRC]),
    ),
    max_size=10,
)


def kept(launched: list[Launched], samples: list[Sample]) -> list[Sample]:
    """The samples that are not left out, by the rules."""
    shared = {one.function for one in samples if not one.correlation}
    runs = {(one.kernel, one.correlation) for one in launched}
    own = [one for one in samples if (one.function, one.correlation) in runs]
    launches = {one.function for one in own} - shared
    return [one for one in samples if one.function not in launches or one in own]


def counted(samples: Iterable[Sample]) -> list[Sample]:
    return [one for one in samples if one.number and one.reason != NOT_ISSUED]


def left_out(profile: Profile) -> int:
    """How many samples the warnings say are left out."""
    return sum(int(one.split()[0].replace(",", "")) for one in warnings(profile, "left out"))


@examples(1.5)
@given(st.lists(kernels, max_size=6), all_samples)
def test_every_sample_is_somewhere_or_told(
    tmp_path_factory: pytest.TempPathFactory, launched: list[Launched], samples: list[Sample]
) -> None:
    profile = opened(dump_of(launched, samples), tmp_path_factory.mktemp("dump"))
    whole = sum(one.number for one in counted(samples))
    assert found(profile).total() + left_out(profile) == whole


@examples(1.5)
@given(st.lists(kernels, max_size=6), all_samples)
def test_samples_are_where_a_plain_count_has_them(
    tmp_path_factory: pytest.TempPathFactory, launched: list[Launched], samples: list[Sample]
) -> None:
    launched = [one._replace(correlation=at + 1) for at, one in enumerate(launched)]
    recorded = {one.kernel for one in launched}
    samples = [one for one in counted(samples) if one.function in recorded]
    profile = opened(dump_of(launched, samples), tmp_path_factory.mktemp("dump"))
    mine = kept(launched, samples)
    assert found(profile) == as_told(mine)
    shared = {one.function for one in samples if not one.correlation}
    for row, run in enumerate(launched):
        own = [one for one in mine if one[0] == run.kernel and one.correlation == row + 1]
        if own and run.kernel not in shared:
            values = profile.activities.measures["stalls"]
            assert values[row] == sum(one.number for one in own)


# Damage


def test_impossible_samples_are_counted(tmp_path: Path) -> None:
    dump = dump_of(LAUNCHED, SAMPLES)
    record(dump, Sample(GEMM, 1 << 63, 1, 4))
    record(dump, Sample(GEMM, (1 << 64) - 1, 1, 2))
    record(dump, Sample("", 0, 1, 5))
    record(dump, Sample(GEMM, 0, 1, 6), function=4_000_000_000)
    record(dump, Sample(GEMM, 0x10, 4, (1 << 32) - 1))
    profile = opened(dump, tmp_path)
    assert found(profile) == as_told([*SAMPLES, Sample(GEMM, 0x10, 4, (1 << 32) - 1)])
    [warning] = warnings(profile, "damaged")
    assert warning.startswith("17 PC samples are damaged")


def test_far_apart_places_take_no_room(tmp_path: Path) -> None:
    samples = [Sample(GEMM, (1 << 62) + place, 1, 1, crc=place) for place in range(20)]
    profile = opened(dump_of(LAUNCHED, samples), tmp_path)
    assert profile.sampling is not None
    assert sum(map(len, profile.sampling.codes)) == 20


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "cubins/../../x", ""])
def test_only_files_of_the_recording_are_opened(path: str, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "x.flame"
    folder.mkdir(parents=True)
    dump = dump_of(LAUNCHED, SAMPLES)
    dump.record("module", crc=CRC, size=100, path=dump.text(path))
    os.mkfifo(tmp_path / "x")  # whoever opened it would wait
    assert found(opened(dump, folder)) == as_told(SAMPLES)


@pytest.mark.deep
def test_any_byte_of_the_samples_may_be_damaged(tmp_path: Path) -> None:
    data = dump_of(LAUNCHED, SAMPLES).data()
    chunks = [at for at in range(1 << 16, len(data), 1 << 16) if data[at + 4] == 15]
    for at in chunks:
        for place in range(at + 64, at + 64 + 3 * 48, 5):
            for value in (b"\xff", b"\0", b"\x80"):
                path = tmp_path / "100-1.fdump"
                path.write_bytes(data[:place] + value + data[place + 1 :])
                profile = load(path)
                if profile.sampling is not None:
                    check(profile)
