"""What an export has besides: read when it is asked for, merged, kept, and damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from flame.core.analysis.trace_summary import summarize
from flame.core.errors import InputError
from flame.core.loading.many import load, load_all
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.memory import MemoryShortError
from flame.core.model.meta import DeviceFacts
from flame.core.model.profile import Profile
from flame.core.model.side_tables.device_memory import NEVER
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.core.report.report import SECTIONS, Report
from flame.core.report.scope import Scope
from flame.exporters.tables.frame_table import FrameColumns
from tests.core.reopening.conftest import find, keep
from tests.support.tiers import deep_except
from tests.support.writers.nsysfile import NsysFile, gpid, gtid

SECRET = "hunter2"


def written(path: Path, function: str = "read", shift: int = 0) -> Path:
    """A kernel, calls on its thread and on another one, a counter of two GPUs, and memory."""
    with NsysFile(path) as file:
        file.gpu(0, "H100", pid=100)
        file.api("cudaLaunchKernel_v7000", shift, shift + 5, corr=1)
        file.kernel("gemm", shift + 10, shift + 20, corr=1)
        file.os_call(function, shift + 1, shift + 3)
        file.os_call("poll", shift, shift + 90, pid=7, tid=8)
        file.metric("SMs Active [Throughput %]", shift + 12, 62)
        file.metric("SMs Active [Throughput %]", shift + 12, 3, gpu=5)
        file.memory(shift + 2, 64, address=1)
        file.memory(shift + 6, 64, address=1, frees=True)
        file.memory(shift + 7, 32, address=1)
        file.memory(shift + 8, 16, address=2, frees=True)
    return path


def calls(profile: Profile) -> list[tuple[str, int, int, int]]:
    """(function, thread in the profile, tid, start) of each call."""
    found = profile.os_calls
    assert found is not None
    rows = zip(found.name.tolist(), found.thread.tolist(), found.start.tolist(), strict=True)
    named = [(found.names[name], found.threads[thread], start) for name, thread, start in rows]
    return [(name, thread.thread, thread.tid, start) for name, thread, start in named]


def samples(profile: Profile) -> list[tuple[str, int, int, int, int]]:
    """(counter, GPU in the profile, its number, time, value) of each sample."""
    found = profile.gpu_metrics
    assert found is not None
    rows = zip(found.counter.tolist(), found.time.tolist(), found.value.tolist(), strict=True)
    named = [(found.counters[counter], time, value) for counter, time, value in rows]
    return [(one.name, one.device, one.gpu, time, value) for one, time, value in named]


def memory(profile: Profile) -> list[tuple[str, int, int, int, int]]:
    """(kind, GPU in the profile, start, end, bytes) of each allocation."""
    found = profile.device_memory
    assert found is not None
    rows = zip(
        found.place.tolist(),
        found.start.tolist(),
        found.end.tolist(),
        found.size.tolist(),
        strict=True,
    )
    return [(found.places[place].kind, found.places[place].device, *rest) for place, *rest in rows]


def test_they_are_of_the_threads_and_gpus_of_the_profile(tmp_path: Path) -> None:
    profile = load(written(tmp_path / "trace.sqlite"))
    assert calls(profile) == [("read", 0, 100, 1), ("poll", -1, 8, 0)]
    name = "SMs Active [Throughput %]"
    assert samples(profile) == [(name, 0, 0, 12, 62), (name, -1, 5, 12, 3)]
    assert memory(profile) == [("device", 0, 2, 6, 64), ("device", 0, 7, NEVER, 32)]
    assert profile.device_memory is not None and profile.device_memory.strays.tolist() == [1]


def merged(paths: Sequence[Path]) -> Profile:
    """The files as one, all read here."""
    return merge_profiles([load(path) for path in paths], [path.stem for path in paths])


@pytest.mark.parametrize("together", [merged, pytest.param(load_all, marks=pytest.mark.deep)])
def test_several_files_keep_theirs_apart(
    tmp_path: Path, together: Callable[[Sequence[Path]], Profile]
) -> None:
    paths = [
        written(tmp_path / "a.sqlite"),
        tmp_path / "b.sqlite",
        written(tmp_path / "c.sqlite", "futex", shift=1000),
    ]
    with NsysFile(paths[1]) as file:
        file.kernel("relu", 0, 10)
    profile = together(paths)
    found = calls(profile)
    assert [(name, tid) for name, _, tid, _ in found] == [
        ("read", 100),
        ("poll", 8),
        ("futex", 100),
        ("poll", 8),
    ]
    thread = [one for _, one, _, _ in found]
    owners = [profile.processes[profile.threads[at].process].source for at in thread if at >= 0]
    assert owners == [0, 2]
    devices = [profile.devices[at].source for _, at, _, _, _ in samples(profile) if at >= 0]
    assert devices == [0, 2]
    assert [end for *_, end, _ in memory(profile)].count(int(NEVER)) == 2
    table, [first, last] = profile.activities, [at for at in thread if at >= 0]
    for at, one in ((first, 0), (last, 2)):
        [launch] = table.launch_start[table.thread == at]
        assert launch + 1 == found[one][3]


def test_a_kept_trace_has_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = keep(written(tmp_path / "trace.sqlite"))
    found = find(tmp_path / "trace.sqlite")
    assert found is not None and found.devices == before.devices
    for read in (calls, samples, memory):
        assert read(found) == read(before)


def test_a_trace_without_the_tables_has_none(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10)
    profile = load(tmp_path / "trace.sqlite")
    assert profile.os_calls is None
    assert profile.gpu_metrics is None
    assert profile.device_memory is None


def test_tables_that_do_not_fit_the_memory_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two samples take 160 bytes; 1.25 times what is there is tried."""
    path = written(tmp_path / "trace.sqlite")
    short = load(path)
    monkeypatch.setenv("FLAME_MEMORY", "0.12kB")
    says = rf"{path}: needs about 160 B of memory, and 120 B are free: .*; FLAME_MEMORY=1GB"
    with pytest.raises(MemoryShortError, match=says):
        _ = short.gpu_metrics
    section = Report(Scope(short)).section("metrics")
    assert not section.available and "needs about 160 B" in section.why
    summary = summarize(short)
    assert summary.gpu_metrics == () and "needs about 160 B" in summary.gpu_metric_notes[0]
    table = FrameColumns(short, project(short, Selection()), Selection())
    assert table.measured is None and "needs about 160 B" in table.notes[0]
    for name in ("os_calls", "device_memory"):
        with pytest.raises(MemoryShortError):
            getattr(short, name)
    monkeypatch.setenv("FLAME_MEMORY", "0.13kB")
    assert len(short.gpu_metrics or ()) == 2


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.sqlite")
    profile = load(path)
    written(tmp_path / "other.sqlite", "write").replace(path)
    with pytest.raises(InputError, match="open it again"):
        _ = profile.os_calls


DAMAGE: dict[str, Callable[[sqlite3.Connection], object]] = {
    "times that are texts, absent or absurd": lambda db: [
        db.execute("UPDATE OSRT_API SET start = 'x'"),
        db.execute("INSERT INTO GPU_METRICS VALUES (NULL, 0, 0, 0)"),
        db.execute(f"UPDATE GPU_METRICS SET timestamp = {1 << 62}, value = {(1 << 63) - 1}"),
        db.execute(f"UPDATE CUDA_GPU_MEMORY_USAGE_EVENTS SET start = -{1 << 62}"),
    ],
    "calls that last for centuries": lambda db: [
        db.execute(f"UPDATE OSRT_API SET end = {1 << 60} WHERE start = 0"),
        db.execute(f"UPDATE OSRT_API SET start = -{1 << 60} WHERE start = 1"),
    ],
    "ends before starts": lambda db: db.execute("UPDATE OSRT_API SET end = -7"),
    "columns that are gone": lambda db: [
        db.execute("ALTER TABLE OSRT_API DROP COLUMN globalTid"),
        db.execute("ALTER TABLE OSRT_API DROP COLUMN nameId"),
        db.execute("ALTER TABLE GPU_METRICS DROP COLUMN value"),
        db.execute("ALTER TABLE CUDA_GPU_MEMORY_USAGE_EVENTS DROP COLUMN bytes"),
        db.execute("DROP TABLE TARGET_INFO_GPU_METRICS"),
    ],
    "numbers that nothing has": lambda db: [
        db.execute(f"UPDATE OSRT_API SET globalTid = {-(1 << 63) + 1}, nameId = -5"),
        db.execute(f"UPDATE GPU_METRICS SET typeId = -1, metricId = {1 << 62}"),
        db.execute(
            "UPDATE CUDA_GPU_MEMORY_USAGE_EVENTS "
            f"SET deviceId = {1 << 40}, memKind = {1 << 50}, globalPid = -1"
        ),
    ],
    "sizes below nothing": lambda db: db.execute(
        "UPDATE CUDA_GPU_MEMORY_USAGE_EVENTS SET bytes = -1, memoryOperationType = 9"
    ),
    "facts that are none": lambda db: db.execute(
        "UPDATE TARGET_INFO_GPU SET smCount = 'many', memoryBandwidth = -1, totalMemory = 1e300"
    ),
}


@pytest.mark.parametrize("damage", deep_except(("columns that are gone",), DAMAGE))
def test_damage_leaves_rows_out_and_every_section_whole(tmp_path: Path, damage: str) -> None:
    path = written(tmp_path / "trace.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        DAMAGE[damage](db)
    db.close()
    scope = Scope(load(path))
    for section in Report(scope).sections(SECTIONS):
        assert section.available or section.why
    profile = scope.profile
    assert profile.os_calls is not None
    assert (profile.os_calls.end >= profile.os_calls.start).all()
    assert profile.device_memory is not None
    assert (profile.device_memory.size >= 0).all()
    assert all(one.facts.sms is None for one in profile.devices)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE OSRT_API SET end = -7")
        db.execute("UPDATE GPU_METRICS SET timestamp = NULL")
        db.execute("UPDATE CUDA_GPU_MEMORY_USAGE_EVENTS SET bytes = -1")
    db.close()
    profile = load(path)
    assert profile.os_calls is not None and profile.os_calls.left_out == 2
    assert profile.gpu_metrics is not None and profile.gpu_metrics.left_out == 2
    assert profile.device_memory is not None and profile.device_memory.left_out == 4


def with_facts(path: Path, *rows: tuple[int, int], mapped: bool = False) -> Profile:
    """A trace of kernels on the GPUs 0 and 1, of which ``rows`` say the number of SMs."""
    with NsysFile(path) as file:
        for device, sms in rows:
            file.insert(
                "TARGET_INFO_GPU",
                id=device,
                name="A100",
                smCount=sms,
                totalMemory=80_000_000_000,
                memoryBandwidth=2_000_000_000_000,
                chipName="GA100",
                computeMajor=8,
                computeMinor=0,
                clockRate=1_410_000_000,
            )
            if mapped:
                file.insert("TARGET_INFO_CUDA_DEVICE", gpuId=device, cudaId=device, pid=100)
        for device in range(2):
            file.kernel("gemm", 0, 10, device=device)
        for name, value in (
            ("NvDriverVersion", "570.1.2"),
            ("CudaDriverVersion", "12080"),
            ("PASSWORD", SECRET),
        ):
            file.insert("TARGET_INFO_SYSTEM_ENV", name=name, value=value)
    return load(path)


def test_what_a_gpu_can_do(tmp_path: Path) -> None:
    profile = with_facts(tmp_path / "trace.sqlite", (0, 108), (1, 108))
    facts = DeviceFacts("GA100", 108, 80_000_000_000, 2_000_000_000_000, "8.0", 1_410_000_000)
    assert [device.facts for device in profile.devices] == [facts, facts]


@pytest.mark.parametrize(("mapped", "expected"), [(False, [None, None]), (True, [108, 56])])
def test_gpus_that_differ_are_told_only_where_it_is_known_which_is_which(
    tmp_path: Path, mapped: bool, expected: list[int | None]
) -> None:
    profile = with_facts(tmp_path / "trace.sqlite", (0, 108), (1, 56), mapped=mapped)
    assert [device.facts.sms for device in profile.devices] == expected


def test_what_cuda_says_of_a_gpu_is_better_than_nothing(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.insert("TARGET_INFO_CUDA_DEVICE", gpuId=3, cudaId=0, pid=100, numMultiprocessors=132)
        file.kernel("gemm", 0, 10)
    [device] = load(tmp_path / "trace.sqlite").devices
    assert (device.id, device.facts) == (3, DeviceFacts(sms=132))


def test_an_adapter_of_which_nothing_is_known_is_no_other_gpu(tmp_path: Path) -> None:
    profile = with_facts(tmp_path / "trace.sqlite", (0, 108), (1, 108))
    with closing(sqlite3.connect(tmp_path / "trace.sqlite")) as db, db:
        columns = "smCount, totalMemory, memoryBandwidth, computeMajor, computeMinor"
        zeros = ", ".join(f"{column} = 0" for column in columns.split(", "))
        db.execute(f"UPDATE TARGET_INFO_GPU SET chipName = '', {zeros} WHERE id = 1")
    db.close()
    found = [device.facts for device in load(tmp_path / "trace.sqlite").devices]
    assert found == [profile.devices[0].facts, DeviceFacts()]


def test_the_older_table_counts_kilobytes(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite", "old") as file:
        file.gpu(0, "V100")
        for column in ("numMultiprocessors", "globalMemorySize", "globalMemoryBandwidth"):
            file.db.execute(f"ALTER TABLE TARGET_INFO_CUDA_GPU ADD COLUMN {column} INTEGER")
        file.db.execute(
            "UPDATE TARGET_INFO_CUDA_GPU SET numMultiprocessors = 80, "
            "globalMemorySize = 16000000000, globalMemoryBandwidth = 898048000"
        )
        file.db.execute("ALTER TABLE TARGET_INFO_CUDA_GPU ADD COLUMN coreClockRate INTEGER")
        file.db.execute("UPDATE TARGET_INFO_CUDA_GPU SET coreClockRate = 1530000")
        file.kernel("gemm", 0, 10)
    [device] = load(tmp_path / "trace.sqlite").devices
    assert device.facts == DeviceFacts("", 80, 16_000_000_000, 898_048_000_000, clock=1_530_000_000)


def test_versions_are_read_by_name_and_nothing_else_is(tmp_path: Path) -> None:
    profile = with_facts(tmp_path / "trace.sqlite", (0, 108))
    assert profile.meta.versions == {"driver": "570.1.2", "CUDA of the driver": "12.8"}
    assert SECRET not in repr((profile.meta, profile.devices, profile.processes))


def test_values_that_are_no_versions_are_not_shown(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.insert("TARGET_INFO_SYSTEM_ENV", name="NvDriverVersion", value=SECRET)
        file.kernel("gemm", 0, 10)
    assert load(tmp_path / "trace.sqlite").meta.versions == {}


def test_calls_of_many_threads(tmp_path: Path) -> None:
    number = 5_000
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10)
        file.os_call("read", 0, 1)
        name = file.string("read")
        file.db.executemany(
            "INSERT INTO OSRT_API VALUES (?, ?, 27, ?, ?, 0, 0, 0, 0)",
            ((at, at + 3, gtid(100, 100 + at % 7), name) for at in range(1, number)),
        )
    found = load(tmp_path / "trace.sqlite").os_calls
    assert found is not None and len(found) == number and len(found.threads) == 7
    assert np.array_equal(np.sort(found.start), np.arange(number))
    assert {one.pid for one in found.threads} == {gpid(100) >> 24 & 0xFFFFFF}


@pytest.mark.parametrize(("samples", "told"), [(0, 1), (1, 0)])
def test_metrics_that_the_driver_refused_say_how_to_allow_them(
    tmp_path: Path, samples: int, told: int
) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("relu", 0, 10)
        for text in ("GPU metrics: see https://developer.nvidia.com/ERR_NVGPUCTRPERM", SECRET):
            file.insert("DIAGNOSTIC_EVENT", text=text)
        file.create("GPU_METRICS")
        for _ in range(samples):
            file.metric("SMs Active [Throughput %]", 12, 62)
    warnings = load(tmp_path / "trace.sqlite").warnings
    assert sum("NVreg_RestrictProfilingToAdminUsers=0" in one for one in warnings) == told
    assert not any(SECRET in one for one in warnings)
