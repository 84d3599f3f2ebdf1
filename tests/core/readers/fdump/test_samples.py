"""PC samples of dumps: whose they are, and at which instructions."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from flame.core.model.pc_samples import Code
from flame.core.sass.code_files import write_codes
from tests.core.readers.fdump.sampled_dumps import (
    CRC,
    GEMM,
    LAUNCHED,
    NOT_ISSUED,
    REASONS,
    SAMPLES,
    SOFTMAX,
    Launched,
    Sample,
    as_told,
    dump_of,
    found,
    opened,
    record,
    warnings,
)
from tests.support.writers.fdumpfile import STALL_REASON, DumpFile


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


def test_nothing_is_said_of_dumps_without_samples(tmp_path: Path) -> None:
    profile = opened(dump_of(LAUNCHED, []), tmp_path)
    assert profile.sampling is None
    assert not warnings(profile, "PC samples")
