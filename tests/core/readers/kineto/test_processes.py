"""Processes, threads, GPUs, ranks and clocks that a PyTorch profiler trace tells of."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.model.meta import Device, Process, Thread
from tests.core.readers.kineto.conftest import Read
from tests.support.writers.kinetofile import KinetoFile


def test_one_thread_may_be_a_number_and_a_text(trace: KinetoFile, read: Read) -> None:
    trace.op("a", 0, 1, tid="55")
    trace.runtime(1, 0, 1, tid=55)
    trace.op("b", 0, 1, tid="worker")
    trace.op("c", 0, 1, tid=-7)
    raw = read(trace)
    assert raw.ranges.thread.tolist()[0] == raw.calls.thread.tolist()[0]
    assert set(raw.threads) == {Thread(0, 55), Thread(0, -1, "worker"), Thread(0, -7)}


def test_functions_of_unknown_threads_belong_to_the_only_process(
    trace: KinetoFile, read: Read
) -> None:
    trace.python("a.py(1): run", 0, 10, pid=0, tid=0)
    trace.op("b", 0, 1)
    raw = read(trace)
    assert raw.processes == (Process(100),)
    assert set(raw.threads) == {Thread(0, 0), Thread(0, 1)}


def test_processes_threads_and_gpus_are_named(trace: KinetoFile, read: Read) -> None:
    trace.named("process_name", "python3")
    trace.named("thread_name", "thread 1 (worker)")
    trace.named("thread_name", "loader", tid=2)
    trace.device(0, "NVIDIA H100")
    trace.op("a", 0, 1)
    trace.op("b", 0, 1, tid=2)
    trace.kernel("c", 0, 1)
    raw = read(trace)
    assert raw.processes == (Process(100, "python3"),)
    assert raw.threads == (Thread(0, 1, "worker"), Thread(0, 2, "loader"))
    assert raw.devices == (Device(0, "NVIDIA H100"),)


def test_work_of_several_processes_goes_to_the_last_call_before_it(
    trace: KinetoFile, read: Read
) -> None:
    trace.runtime(5, 100, 110, pid=1)
    trace.runtime(5, 900, 910, pid=2)
    trace.kernel("a", 200, 300, correlation=5)
    trace.kernel("b", 950, 990, correlation=5)
    trace.kernel("c", 950, 990, correlation=6)
    assert read(trace).activities.process.tolist() == [0, 1, -1]


def test_of_several_processes_the_first_call_counts_where_none_was_before(
    trace: KinetoFile, read: Read
) -> None:
    """The clock of a GPU may be behind."""
    for correlation in (4, 5):
        trace.runtime(correlation, 100, 110, pid=1)
        trace.runtime(correlation, 900, 910, pid=2)
        trace.kernel("a", 99, 130, correlation=correlation)
    assert read(trace).activities.process.tolist() == [0, 0]


@pytest.mark.parametrize(
    "info",
    [
        {"rank": 3, "world_size": 8},
        "{'backend': 'nccl', 'rank': 3, 'world_size': 8}",
        '{"backend": "nccl", "rank": 3}',
        {"pg_config": [{"ranks": [0, 1]}], "rank": "3"},
    ],
)
def test_rank_is_read_however_it_is_written(trace: KinetoFile, read: Read, info: object) -> None:
    trace.top["distributedInfo"] = info
    trace.op("a", 0, 1)
    assert read(trace).meta.rank == 3


def test_meta_names_versions_and_options_and_nothing_else(
    trace: KinetoFile, read: Read, tmp_path: Path
) -> None:
    secret = {"PASSWORD": "hunter2"}
    trace.top |= {"cuda_runtime_version": 12040, "with_stack": 1, "environment": secret}
    trace.top |= {"metadata": {"env": secret}, "baseTimeNanoseconds": 1751410836000000000}
    trace.op("a", 0, 1)
    meta = read(trace).meta
    assert (meta.format, meta.producer) == ("kineto", "PyTorch profiler, CUDA 12.4")
    assert (meta.schema_version, meta.options) == ("1", {"with_stack": "1"})
    assert (meta.origin, meta.rank) == (1751410836000000000, None)
    assert "hunter2" not in repr(read(trace))


def test_clock_of_old_traces_is_unix_time(trace: KinetoFile, read: Read) -> None:
    trace.op("a", 1661203462598738000, 1661203462598739000)
    assert read(trace).meta.origin == 0


def test_other_clocks_are_not_known(trace: KinetoFile, read: Read) -> None:
    trace.op("a", 5000, 6000)
    assert read(trace).meta.origin is None
