"""Memory of GPUs over time: as plain loops over its events find it."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.projection.filters import Devices, Time
from flame.core.projection.selection import select
from flame.core.report.measures.device_memory import CHUNKS
from flame.core.report.scope import Scope
from flame.core.report.sections.memory import memory_section
from flame.core.report.table import Section
from tests.conftest import TRACES, needs_traces
from tests.support.profiles.report_rows import table_rows
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

Event = tuple[int, int, int, bool, int, int]
"""(time, bytes, address, frees, device, kind)."""

LAST = 60
"""When the kernel of each trace ends."""

events = st.tuples(
    st.integers(1, 40),
    st.integers(0, 9),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 1),
    st.sampled_from([1, 2]),
)


def section(path: Path, rows: list[Event], *where: Time | Devices) -> Section:
    """What is said of a trace with a kernel on the GPU 0 and these events."""
    path.unlink(missing_ok=True)
    file = NsysFile(":memory:")
    file.kernel("gemm", 0, LAST)
    for time, size, address, frees, device, kind in rows:
        file.memory(time, size, address, frees, device=device, kind=kind)
    file.db.commit()
    path.write_bytes(file.db.serialize())
    file.close()
    return memory_section(Scope(load(path), select(where=where)))


def levels(rows: list[Event]) -> dict[tuple[int, int], list[int]]:
    """How much is allocated of each (device, kind) at each moment, plainly.

    Of those of which anything is allocated, or freed that was not.
    """
    live: dict[tuple[int, int], tuple[int, int]] = {}
    found: dict[tuple[int, int], list[int]] = {}
    for moment in range(LAST + 1):
        for time, size, address, frees, device, kind in rows:
            if time != moment:
                continue
            before = live.pop((device, address), None)
            if not frees:
                live[device, address] = size, kind
            if not frees or before is None:
                found.setdefault((device, kind), [0] * (LAST + 1))
        for device, kind in found:
            sizes = (size for (at, _), (size, one) in live.items() if (at, one) == (device, kind))
            found[device, kind][moment] = sum(sizes)
    return found


KINDS = {1: "pinned", 2: "device"}


@examples(0.4)
@given(st.lists(events, max_size=12))
def test_levels_are_those_of_each_moment(trace_file: Path, rows: list[Event]) -> None:
    found = section(trace_file, rows)
    uses = {(row["gpu"], row["kind"]): row for row in table_rows(found, "use")}
    charts = {
        (one["id"], one["kind"]): one["most_bytes"]
        for one in found.facts.get("over_time", ())  # type: ignore[attr-defined]
    }
    expected = levels(rows)
    assert len(uses) == sum(1 for _ in expected) == len(charts)
    for (device, kind), level in expected.items():
        name = "GPU0" if device == 0 else "GPU1"
        row = uses[name, KINDS[kind]]
        assert row["peak_bytes"] == max(level)
        assert row["peak_ns"] == level.index(max(level))
        assert row["last_bytes"] == level[-1]
        allocated = [one[1] for one in rows if one[4:] == (device, kind) and not one[3]]
        assert (row["allocations"], row["allocated_bytes"]) == (len(allocated), sum(allocated))
        # From 0 until 61: 60 parts, the first 59 of which are a moment each.
        chart = charts[0 if device == 0 else None, KINDS[kind]]
        assert len(chart) == CHUNKS and max(chart) == max(level)
        assert chart[: CHUNKS - 1] == level[: CHUNKS - 1]


def test_a_window_begins_with_what_is_there(tmp_path: Path) -> None:
    rows = [(5, 64, 1, False, 0, 2), (10, 32, 2, False, 0, 2), (20, 0, 1, True, 0, 2)]
    found = section(tmp_path / "trace.sqlite", rows, Time(12, 30))
    [row] = table_rows(found, "use")
    assert (row["peak_bytes"], row["peak_ns"], row["last_bytes"]) == (96, 12, 32)
    assert (row["allocations"], row["freed"]) == (0, 1)


def test_what_was_there_before_is_counted_apart(tmp_path: Path) -> None:
    rows = [(5, 64, 1, True, 0, 2), (10, 32, 2, False, 0, 2)]
    [row] = table_rows(section(tmp_path / "trace.sqlite", rows), "use")
    assert (row["strays"], row["peak_bytes"], row["last_bytes"]) == (1, 32, 32)


def test_filters_choose_gpus(tmp_path: Path) -> None:
    rows = [(5, 64, 1, False, 0, 2), (5, 32, 1, False, 1, 2)]
    found = table_rows(section(tmp_path / "trace.sqlite", rows, Devices((0,))), "use")
    assert [row["peak_bytes"] for row in found] == [64]


def test_calls_alone_say_how_to_record_the_rest(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.api("cudaMalloc_v3020", 0, 5)
        file.kernel("gemm", 10, 20)
    found = memory_section(Scope(load(tmp_path / "trace.sqlite")))
    assert [row["name"] for row in table_rows(found)] == ["cudaMalloc"]
    assert any("--cuda-memory-usage" in note for note in found.notes)


@needs_traces
def test_a_real_trace_frees_all_that_it_allocates() -> None:
    found = memory_section(Scope(load(TRACES / "nsys" / "ten_streams.sqlite")))
    rows = {row["kind"]: row for row in table_rows(found, "use")}
    for kind in ("device", "pinned"):
        row = rows[kind]
        assert (row["peak_bytes"], row["last_bytes"]) == (160_000_000, 0)
        assert (row["allocations"], row["freed"], row["allocated_bytes"]) == (15, 15, 353_280_000)


def test_how_memory_is_recorded_is_told_of_the_format(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.api("cudaMalloc_v3020", 0, 9, corr=None)
        file.kernel("gemm", 10, 20, corr=None)
    nsys = " ".join(memory_section(Scope(load(tmp_path / "trace.sqlite"))).notes)
    assert "nsys profile --cuda-memory-usage=true" in nsys and "torch" not in nsys
    path = tmp_path / "trace.json"
    event = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    launch = {**event, "cat": "cuda_runtime", "name": "cudaMalloc", "args": {"correlation": 1}}
    kernel = {**event, "cat": "kernel", "name": "gemm", "args": {"correlation": 1, "device": 0}}
    path.write_text(json.dumps({"traceEvents": [launch, kernel]}))
    kineto = " ".join(memory_section(Scope(load(path))).notes)
    assert "profile_memory=True" in kineto and "nsys" not in kineto
