"""PC samples in cubins that share a checksum, and of several processes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from flame.core.loading.many import load_all
from flame.core.model.pc_samples import Code
from flame.core.sass.code_files import write_codes
from flame.core.sass.module_lives import CubinId
from tests.core.readers.fdump.sampled_dumps import (
    CRC,
    GEMM,
    LAUNCHED,
    REASONS,
    Sample,
    check,
    dump_of,
    found,
    opened,
    record,
    warnings,
)
from tests.support.writers.fdumpfile import STALL_REASON, DumpFile, layouts


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
