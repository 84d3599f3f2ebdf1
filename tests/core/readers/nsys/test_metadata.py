"""Who and what was traced: processes, threads, GPUs, versions, options."""

from __future__ import annotations

import pytest

from flame.core.errors import CancelledError
from flame.core.model.frames import Kind
from flame.core.model.meta import Device, Process, Thread
from flame.core.model.raw import RawTrace
from tests.core.conftest import Read
from tests.support.writers.nsysfile import NsysFile, gpid, gtid


def devices(raw: RawTrace) -> list[Device | None]:
    """The GPU of every activity."""
    numbers = raw.activities.device.tolist()
    return [raw.devices[number] if number >= 0 else None for number in numbers]


# -- processes and threads --------------------------------------------------------------------


def test_processes_and_threads_are_those_that_did_something(trace: NsysFile, read: Read) -> None:
    for pid in (100, 200, 300):
        trace.process(pid, f"app {pid}")
    trace.thread(200, 201, "worker")
    trace.thread(300, 301, "idle")
    trace.kernel("gemm", 0, 10, pid=100)
    trace.api("cudaLaunchKernel", 0, 1, pid=200, tid=201)
    raw = read(trace)
    assert raw.processes == (Process(100, "app 100"), Process(200, "app 200"))
    assert raw.threads == (Thread(1, 201, "worker"),)


def test_names_that_were_not_recorded_are_empty(trace: NsysFile, read: Read) -> None:
    trace.api("cudaLaunchKernel", 0, 1)
    raw = read(trace)
    assert (raw.processes, raw.threads) == ((Process(100),), (Thread(0, 100),))


def test_the_last_name_of_a_thread_counts(trace: NsysFile, read: Read) -> None:
    trace.thread(100, 100, "python")
    trace.thread(100, 100, "EngineCore")
    trace.thread(100, 100, 7_777)  # a name that dangles
    trace.api("cudaLaunchKernel", 0, 1)
    assert read(trace).threads[0].name == "EngineCore"


def test_threads_of_one_number_in_two_processes_are_two(trace: NsysFile, read: Read) -> None:
    trace.api("cudaLaunchKernel", 0, 1, pid=100, tid=5)
    trace.api("cudaLaunchKernel", 0, 1, pid=200, tid=5)
    assert read(trace).threads == (Thread(0, 5), Thread(1, 5))


def test_a_kernel_and_the_calls_of_its_process_agree_on_the_process(
    trace: NsysFile, read: Read
) -> None:
    trace.api("cudaLaunchKernel", 0, 1, pid=200, tid=201)
    trace.kernel("gemm", 0, 10, pid=200)
    raw = read(trace)
    assert raw.activities.process.tolist() == [raw.threads[0].process]


def test_ids_with_the_top_bit_set_are_read_like_any_other(trace: NsysFile, read: Read) -> None:
    high = 0x80 << 56
    trace.api("cudaLaunchKernel", 0, 1, pid=200, tid=201)
    trace.kernel("gemm", 0, 10, pid=200)
    for table, column, key in (
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid", gtid(200, 201)),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid", gpid(200)),
    ):
        negative = (key | high) - (1 << 64)
        trace.db.execute(f"UPDATE {table} SET {column} = ?", [negative])
    raw = read(trace)
    assert (raw.processes, raw.threads) == ((Process(200),), (Thread(0, 201),))
    assert raw.activities.process.tolist() == [0]


# -- GPUs -------------------------------------------------------------------------------------


def test_a_gpu_is_named(trace: NsysFile, read: Read) -> None:
    trace.gpu(0, "NVIDIA H100")
    trace.kernel("gemm", 0, 10)
    assert devices(read(trace)) == [Device(0, "NVIDIA H100")]


def test_gpus_that_ran_nothing_are_not_listed(trace: NsysFile, read: Read) -> None:
    trace.gpu(0, "NVIDIA H100")
    trace.gpu(1, "NVIDIA H100")
    trace.kernel("gemm", 0, 10, device=1)
    assert read(trace).devices == (Device(1, "NVIDIA H100"),)


def test_each_process_has_its_own_cuda_devices(trace: NsysFile, read: Read) -> None:
    trace.gpu(2, "second", cuda_id=0, pid=100)
    trace.gpu(3, "third", cuda_id=0, pid=200)
    trace.kernel("gemm", 0, 10, pid=200, device=0)
    trace.kernel("gemm", 0, 10, pid=100, device=0)
    raw = read(trace)
    assert devices(raw) == [Device(3, "third"), Device(2, "second")]
    assert raw.devices == (Device(2, "second"), Device(3, "third"))


def test_two_processes_may_share_a_gpu(trace: NsysFile, read: Read) -> None:
    trace.gpu(2, "shared", cuda_id=0, pid=100)
    trace.gpu(2, "shared", cuda_id=1, pid=200)
    trace.kernel("gemm", 0, 10, pid=100, device=0)
    trace.kernel("gemm", 0, 10, pid=200, device=1)
    assert read(trace).activities.device.tolist() == [0, 0]


def test_a_device_that_is_not_mapped_keeps_its_ordinal(trace: NsysFile, read: Read) -> None:
    trace.gpu(2, "second", cuda_id=0, pid=100)
    trace.kernel("gemm", 0, 10, pid=100, device=5)
    assert devices(read(trace)) == [Device(5)]


def test_an_activity_without_a_device_has_none(trace: NsysFile, read: Read) -> None:
    trace.kernel("gemm", 0, 10, device=-1)
    raw = read(trace)
    assert (devices(raw), raw.devices) == ([None], ())


def test_the_schema_of_2020_names_gpus_too(old_trace: NsysFile, read: Read) -> None:
    old_trace.gpu(0, "Tesla V100")
    old_trace.kernel("gemm", 0, 10)
    assert devices(read(old_trace)) == [Device(0, "Tesla V100")]


def test_in_2020_cuda_numbers_of_gpus_go_before_those_of_the_system(
    old_trace: NsysFile, read: Read
) -> None:
    old_trace.gpu(1, "fastest", cuda_id=0)
    old_trace.gpu(0, "display", cuda_id=1)
    old_trace.kernel("gemm", 0, 10, device=0)
    assert devices(read(old_trace)) == [Device(0, "fastest")]


# -- the capture ------------------------------------------------------------------------------


def test_producer_and_schema_are_told(trace: NsysFile, read: Read) -> None:
    trace.meta("EXPORT_PRODUCT_VERSION", "2026.1.1")
    meta = read(trace).meta
    assert (meta.format, meta.producer) == ("nsys-sqlite", "Nsight Systems 2026.1.1")
    assert meta.schema_version == "3.25.0"


def test_exports_of_2022_tell_it_in_another_table(old_trace: NsysFile, read: Read) -> None:
    old_trace.meta("EXPORT_SCHEMA_VERSION", "2.9.1")
    assert read(old_trace).meta.schema_version == "2.9.1"


def test_the_oldest_exports_tell_nothing(old_trace: NsysFile, read: Read) -> None:
    meta = read(old_trace).meta
    assert (meta.producer, meta.schema_version) == ("Nsight Systems", "")


def test_a_synthetic_trace_is_labelled(trace: NsysFile, read: Read) -> None:
    assert not read(trace).meta.synthetic
    trace.meta("FLAME_SYNTHETIC", "true")
    assert read(trace).meta.synthetic


def test_capture_options_are_kept_and_the_environment_is_not(trace: NsysFile, read: Read) -> None:
    trace.meta("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph", capture=True)
    trace.meta("COLLECT_NVTX_TRACE", "true", capture=True)
    trace.meta("PROCESS_0:ENVIRONMENT", "TOKEN=secret", capture=True)
    trace.meta("EXPORT_USER", "somebody")
    meta = read(trace).meta
    assert meta.options == {"CUDA_GRAPH_TRACE_OPTIONS:MODE": "Graph", "COLLECT_NVTX_TRACE": "true"}
    assert "secret" not in repr(meta)
    assert "somebody" not in repr(meta)


def test_the_latest_time_is_that_of_any_row(trace: NsysFile, read: Read) -> None:
    trace.kernel("gemm", 0, 10)
    trace.nvtx("request", 0, 70, type=60)
    assert read(trace).last_time == 70


# -- the rest ---------------------------------------------------------------------------------


def test_a_reader_can_be_stopped_while_it_reads(trace: NsysFile, read: Read) -> None:
    def stop(stage: str, done: int, expected: int) -> None:
        raise CancelledError("stopped")

    trace.kernel("gemm", 0, 10)
    with pytest.raises(CancelledError):
        read(trace, None, stop)


def test_the_vocabulary_holds_no_frame_twice(trace: NsysFile, read: Read) -> None:
    for start in range(3):
        trace.nvtx("step", start, start + 1)
        trace.kernel("gemm", start, start + 1)
        trace.api("cudaLaunchKernel_v7000", start, start + 1)
    table = read(trace).frames.build()
    assert sorted(frame.kind for frame in table.frames) == [
        Kind.ROOT,
        Kind.LAUNCH,
        Kind.NVTX,
        Kind.KERNEL,
    ]


@pytest.mark.parametrize(
    ("starts", "origin"),
    [([1_700_000_000_123_456_789], 1_700_000_000_123_456_789), ([], None), ([5, 6], None)]
    + [([start], None) for start in (0, -1, 1 << 62, "text")],
)
def test_the_origin_is_the_unix_time_at_which_the_session_started(
    starts: list[object], origin: int | None, trace: NsysFile, read: Read
) -> None:
    trace.db.execute("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT)")
    rows = [(start,) for start in starts]
    trace.db.executemany("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", rows)
    assert read(trace).meta.origin == origin
