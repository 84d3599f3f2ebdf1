"""What PyTorch traces tell besides: collectives, the profiler's overhead, memory, GPUs, the job."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from flame.core.loading.many import load, load_all
from flame.core.model.launches import Collectives, RecordedCollective
from flame.core.model.profile import Profile
from flame.core.projection.filters import Time
from flame.core.projection.selection import select
from flame.core.report.scope import Scope
from flame.core.report.sections.memory import memory_section
from flame.core.timeline.idle_parts import IdleCause, idle_parts
from tests.conftest import TRACES, needs_traces
from tests.core.readers.kineto.test_traces import NAMES, SHOWN
from tests.core.reopening.conftest import find, keep
from tests.support.profiles.report_rows import table_rows
from tests.support.profiles.same_profiles import is_same
from tests.support.tiers import deep_except
from tests.support.writers.kinetofile import KinetoFile

TOLD = {
    "Collective name": "allreduce",
    "dtype": "Float",
    "In msg nelems": 64,
    "Out msg nelems": 64,
    "Group size": 2,
    "Process Group Name": "0",
    "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1]",
    "Seq": 7,
}
KIND = RecordedCollective("allreduce", "Float", 64, 64, 2, "0", "default_pg", "[0, 1]")


def opened(path: Path, *files: KinetoFile) -> Profile:
    paths = [file.write(path / f"{at}.pt.trace.json") for at, file in enumerate(files)]
    return load(paths[0]) if len(paths) == 1 else load_all(paths)


def told(profile: Profile) -> list[tuple[int, RecordedCollective, int]]:
    found = profile.collectives
    assert isinstance(found, Collectives)
    columns = zip(found.row.tolist(), found.kind.tolist(), found.sequence.tolist(), strict=True)
    return [(row, found.kinds[kind], number) for row, kind, number in columns]


def launched(file: KinetoFile, at: int, corr: int, **args: Any) -> None:
    """A kernel at ``at`` + 100 that was launched at ``at`` + 10."""
    file.runtime(corr, at + 10, at + 20)
    file.kernel("ncclDevKernel_AllReduce", at + 100, at + 200, corr, **args)


def spaced(args: dict[str, Any]) -> dict[str, Any]:
    return {key.replace(" ", "_"): value for key, value in args.items()}


def test_collectives_are_those_of_kernels_else_of_the_operator_that_launched_them(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    launched(file, 0, 1, **spaced(TOLD))
    file.op("record_param_comms", 1_005, 1_030, **spaced({**TOLD, "Seq": 8}))
    launched(file, 1_000, 2)
    launched(file, 2_000, 3)
    file.op("record_param_comms", 3_000, 3_050, **spaced({**TOLD, "Seq": 9}))
    launched(file, 3_000, 4, **spaced({**TOLD, "Seq": 10}))
    assert told(opened(tmp_path, file)) == [(0, KIND, 7), (1, KIND, 8), (3, KIND, 10)]


@pytest.mark.parametrize(
    ("changes", "expected", "number"),
    [
        ({"Seq": -3, "In msg nelems": "64", "Group size": 2.5}, KIND._replace(ranks=None), -1),
        ({"Seq": "7", "Process Group Name": 0, "Process Group Ranks": [0, 1]}, KIND, 7),
        ({"Out msg nelems": 1 << 70, "dtype": None}, KIND._replace(received=None, dtype=""), 7),
        ({"Process Group Description": "undefined"}, KIND._replace(about=""), 7),
        ({"Seq": {"a": [1]}, "dtype": []}, KIND._replace(dtype="[]"), -1),
    ],
)
def test_values_of_other_types_are_not_known(
    changes: dict[str, Any], expected: RecordedCollective, number: int, tmp_path: Path
) -> None:
    file = KinetoFile()
    launched(file, 0, 1, **spaced({**TOLD, **changes}))
    if "Process Group Ranks" in changes:
        expected = expected._replace(members="[0,1]")
    assert told(opened(tmp_path, file)) == [(0, expected, number)]


def everything(pid: int, shift: int = 0) -> KinetoFile:
    file = KinetoFile(pid=pid)
    file.top["baseTimeNanoseconds"] = 1_700_000_000_000_000_000
    launched(file, shift, 1, **spaced(TOLD))
    memory(file, shift + 50, 1 << 20)
    overhead(file, "Buffer Flush", shift + 12, shift + 18)
    return file


def memory(file: KinetoFile, at: int, size: object, device: int = 0, kind: int = 1) -> None:
    args = {"Total Allocated": size, "Device Id": device, "Device Type": kind, "Bytes": 4}
    where = {"pid": file.pid, "tid": file.tid, "ts": at / 1000}
    file.event(ph="i", cat="cpu_instant_event", s="t", name="[memory]", **where, args=args)


def overhead(file: KinetoFile, name: str, start: int, end: int) -> None:
    file.span("overhead", name, start, end, (-1, 0), {})


def test_all_of_it_is_merged_and_kept(tmp_path: Path) -> None:
    both = opened(tmp_path, everything(100), everything(200, 50))
    assert told(both) == [(0, KIND, 7), (1, KIND, 7)]
    assert both.allocator is not None and both.overheads is not None
    assert list(zip(both.allocator.time.tolist(), both.allocator.device.tolist(), strict=True)) == [
        (40, 0),
        (90, 1),
    ]
    assert both.overheads.process.tolist() == [0, 1]
    assert both.overheads.thread.tolist() == [0, 1]
    assert both.overheads.start.tolist() == [2, 52]
    path = tmp_path / "0.pt.trace.json"
    fresh = keep(path)
    kept = find(path)
    for name in ("collectives", "allocator", "overheads", "devices", "meta"):
        assert is_same(getattr(kept, name), getattr(fresh, name)), name


def test_who_tells_nothing_has_nothing(tmp_path: Path) -> None:
    file = KinetoFile()
    launched(file, 0, 1)
    memory(file, 50, 100, kind=0)
    profile = opened(tmp_path, file)
    assert (profile.collectives, profile.allocator, profile.overheads) == (None, None, None)


@pytest.mark.parametrize("size", [None, -1, "much", 1 << 70, 1.5])
def test_memory_of_which_the_sum_makes_no_sense_is_left_out(size: object, tmp_path: Path) -> None:
    file = KinetoFile()
    launched(file, 0, 1)
    memory(file, 50, 7)
    memory(file, 60, size)
    memory(file, 40, 9, device=5)
    found = opened(tmp_path, file).allocator
    assert found is not None
    assert found.time.tolist() == [30, 40]  # of the first call on
    assert (found.device.tolist(), found.bytes.tolist()) == ([-1, 0], [9, 7])


def test_the_report_says_when_most_memory_was_given_out(tmp_path: Path) -> None:
    file = KinetoFile()
    file.top["deviceProperties"] = [{"id": 0, "totalGlobalMem": 1_000}]
    launched(file, 0, 1)
    for at, size in ((110, 200), (120, 250), (130, 50), (140, 100)):
        memory(file, at, size)
    profile = opened(tmp_path, file)
    expected = {"peak_bytes": 250, "percent": 25.0, "first_bytes": 200, "last_bytes": 100}
    [row] = table_rows(memory_section(Scope(profile)), "allocator")
    assert {key: row[key] for key in expected} == expected
    assert (row["peak_ns"], row["changes"]) == (110, 4)
    late = Scope(profile, select(where=(Time(115, None),)))
    [row] = table_rows(memory_section(late), "allocator")
    assert (row["peak_bytes"], row["changes"]) == (100, 2)


def held(profile: Profile) -> int:
    """The idle time that passed with the profiler."""
    [parts] = idle_parts(profile)
    return int((parts.high - parts.low)[parts.cause == IdleCause.PROFILER].sum())


def test_overhead_holds_the_thread_that_is_in_a_call(tmp_path: Path) -> None:
    file = KinetoFile()
    other = file.runtime(8, 200, 700, "cudaFree", tid=2)
    launched(file, 0, 1)
    file.runtime(9, 250, 400, "cudaMalloc")
    overhead(file, "Activity Buffer Request", 300, 350)
    overhead(file, "Activity Buffer Request", 420, 450)  # in no call
    overhead(file, "Resource", 360, 401)
    overhead(file, "Driver Compiler", 390, 400)
    overhead(file, "Instrumentation", -5_000, 290)  # from before the trace
    launched(file, 500, 2)
    assert held(opened(tmp_path, file)) == 0  # two threads were in calls
    other["ts"] = 0.36
    profile = opened(tmp_path, file)
    assert held(profile) == 50
    assert profile.duration == 850  # to the end of that call: overhead does not count
    file.events.remove(other)
    profile = opened(tmp_path, file)
    assert held(profile) == 90 + 90 + 50 + 41 + 30  # before the first kernel, too
    assert profile.duration == 690


@pytest.mark.parametrize("spoil", ["", '{"name": "a\x01b"}, ', "broken}, "])
def test_in_damaged_traces_the_details_are_those_of_their_events(
    spoil: str, tmp_path: Path
) -> None:
    file = KinetoFile()
    for at in range(40):
        launched(file, 1_000 * at, at + 1, **spaced({**TOLD, "Seq": at} if at % 3 else {}))
    first, *others = file.text().split('{"ph"')
    text = '{"ph"'.join([first, (spoil + '{"ph"').join(others)])
    path = tmp_path / "spoilt.pt.trace.json"
    path.write_text(text)
    profile = load(path)
    found = told(profile)
    assert [number for _, _, number in found] == [at for at in range(40) if at % 3]
    begin = profile.activities.start[[row for row, _, _ in found]].tolist()
    assert begin == [1_000 * number + 90 for _, _, number in found]


def test_of_details_that_are_no_text_nothing_is_known(tmp_path: Path) -> None:
    file = KinetoFile()
    launched(file, 0, 1, **spaced({**TOLD, "dtype": "?"}))
    path = tmp_path / "trace.pt.trace.json"
    path.write_bytes(file.text().encode().replace(b'"?"', b'"\xed\xa0\x80"'))
    assert told(load(path)) == [(0, RecordedCollective("allreduce"), -1)]


@needs_traces
@pytest.mark.parametrize("name", deep_except(["h100_bert_small.json.gz"], NAMES))
def test_real_traces_tell_what_is_in_them(name: str) -> None:
    path = TRACES / "kineto" / name
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    profile = load(path)
    spans = [one for one in events if one["ph"] == "X"]
    begin = min(int(one["ts"] * 1000) for one in spans if one["cat"] in SHOWN)
    kernels = [one for one in spans if one["cat"] in ("kernel", "Kernel")]
    expected = [one["args"].get("Collective name") for one in kernels]
    if any(expected):
        assert [kind.name for _, kind, _ in told(profile)] == [one for one in expected if one]
    sums = [
        (int(one["ts"] * 1000) - begin, one["args"]["Total Allocated"])
        for one in events
        if one["name"] == "[memory]" and "Total Allocated" in one["args"]
        if one["args"]["Device Type"] == 1
    ]
    found = profile.allocator
    assert (found is None) == (not sums)
    if found is not None:
        assert list(zip(found.time.tolist(), found.bytes.tolist(), strict=True)) == sorted(
            sums, key=lambda one: one[0]
        )
    held = [one for one in spans if one["cat"] == "overhead"]
    assert (profile.overheads is None) == (not held)
    if profile.overheads is not None:
        assert profile.overheads.start.tolist() == [int(one["ts"] * 1000) - begin for one in held]
        assert (profile.overheads.thread == 0).all()  # the only one that calls


def test_gpus_and_the_job(tmp_path: Path) -> None:
    file = KinetoFile()
    launched(file, 0, 1)
    known = {"id": 0, "name": "H100", "totalGlobalMem": 80 << 30, "numSms": 132}
    file.top["deviceProperties"] = [known, {"id": 1, "totalGlobalMem": "a", "numSms": -1}]
    job = {"backend": "nccl", "rank": 3, "world_size": 8, "nccl_version": "2.27.5"}
    file.top["distributedInfo"] = job
    profile = opened(tmp_path, file)
    [gpu] = profile.devices
    assert (gpu.name, gpu.facts.memory, gpu.facts.sms) == ("H100", 80 << 30, 132)
    assert (profile.meta.rank, profile.meta.ranks) == (3, 8)
    assert profile.meta.versions == {"NCCL": "2.27.5"}
    file.top["distributedInfo"] = json.dumps(job)
    assert opened(tmp_path, file).meta.ranks == 8
    file.top["distributedInfo"] = {"world_size": "many", "nccl_version": 5}
    meta = opened(tmp_path, file).meta
    assert (meta.ranks, meta.versions) == (None, {})
