"""Payloads of NCCL's ranges in exports: of each version, absent, damaged, and in reports."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flame.core.errors import InputError
from flame.core.loading.file import load_file
from flame.core.loading.many import load_all
from flame.core.model.launches import Collectives, RecordedCollective
from flame.core.options import LoadOptions, silent
from flame.core.report.parties.communication import communication_section
from flame.core.report.scope import Scope
from tests.conftest import TRACES, needs_traces
from tests.core.reopening.conftest import find, keep
from tests.support.counted_calls import count_calls
from tests.support.profiles.report_rows import table_rows
from tests.support.writers.ncclcalls import SIZE, STATIC, Call, add_range, add_schemas, blob
from tests.support.writers.nsysfile import NsysFile

HASH = 0xFEDCBA9876543210
GROUP = "0xfedcba9876543210"
REDUCE = Call("ncclAllReduce", HASH, 4096, "sum")
BYTES = blob(REDUCE.name, REDUCE.values)
Payload = dict[str, Any] | bytes | str | None


def written(path: Path, payload: Payload, change: Callable[[NsysFile], None] | None = None) -> Path:
    """An all-reduce with that payload, and a kernel of NCCL that it launches."""
    with NsysFile(path) as file:
        file.domain(1, "NCCL")
        add_schemas(file)
        add_range(file, "ncclAllReduce", 100, 200, payload)
        file.api("cudaLaunchKernelExC", 110, 120, 1)
        file.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 300, 400, 1)
        if change:
            change(file)
    return path


def told(path: Path) -> Collectives:
    found = load_file(path, LoadOptions(), silent).collectives
    assert found is not None
    return found


def only(path: Path) -> tuple[RecordedCollective, tuple[str, ...]]:
    """What is told of the only kernel, and the warnings."""
    found = told(path)
    assert len(found) == 1
    return found.kinds[int(found.kind[0])], found.warnings


KNOWN = RecordedCollective("ncclAllReduce", "byte", 4096, group=GROUP, reduction="sum")
UNKNOWN = RecordedCollective("ncclAllReduce", "byte")
ENTRIES = 3_000
DAMAGED = ("1 call of NCCL has a payload that cannot be read: size and group are not known",)


@pytest.mark.parametrize(
    "payload",
    [
        REDUCE.values,
        BYTES,
        blob(REDUCE.name, REDUCE.values, whole=True),
        {**REDUCE.values, "NCCL communicator ID": HASH - (1 << 64), "Reduction operation": "Sum"},
    ],
)
def test_a_payload_tells_size_group_and_reduction(tmp_path: Path, payload: Payload) -> None:
    assert only(written(tmp_path / "t.sqlite", payload)) == (KNOWN, ())


def test_payloads_before_2_25_have_no_communicator(tmp_path: Path) -> None:
    def more(file: NsysFile) -> None:
        add_range(file, "ncclSend", 500, 600, {"Bytes": 64, "Peer rank": 3})
        file.api("cudaLaunchKernelExC", 510, 520, 2)
        file.kernel("ncclKernel_SendRecv", 700, 800, 2)

    found = told(written(tmp_path / "t.sqlite", {"Message size [bytes]": 8}, more))
    assert [found.kinds[at] for at in found.kind.tolist()] == [
        RecordedCollective("ncclAllReduce", "byte", 8),
        RecordedCollective("ncclSendRecv", "byte", 64, peer=3),
    ]


@pytest.mark.parametrize(
    "payload",
    [
        BYTES[:-1],
        BYTES + b"\0",
        BYTES[:31],
        b"",
        struct.pack("<Q", 2) + BYTES[8:],
        BYTES[:8] + struct.pack("<Q", STATIC + 99) + BYTES[16:],
        BYTES[:16] + struct.pack("<Q", 25) + BYTES[24:],
        BYTES[:24] + struct.pack("<Q", 40) + BYTES[32:],
        BYTES[:40] + struct.pack("<Q", (1 << 40) + 1) + BYTES[48:],
        BYTES.hex(),
        {**REDUCE.values, "Message size [bytes]": -1},
        {**REDUCE.values, "Message size [bytes]": 4096.5},
        {**REDUCE.values, "Message size [bytes]": "4096"},
        {**REDUCE.values, "Message size [bytes]": True},
        {**REDUCE.values, "Message size [bytes]": 1 << 60},
        {**REDUCE.values, "NCCL communicator ID": 1 << 64},
        {**REDUCE.values, "NCCL communicator ID": "0xfe"},
        {**REDUCE.values, "Root": -1},
        {**REDUCE.values, "Peer rank": 0.5},
        {"Message size [KiB]": 4},
        {},
    ],
)
def test_a_damaged_payload_tells_nothing(tmp_path: Path, payload: Payload) -> None:
    assert only(written(tmp_path / "t.sqlite", payload)) == (UNKNOWN, DAMAGED)


@pytest.mark.parametrize("json", ["{", "[1]", "7", '{"a":' * 9_999, "\ud800"])
def test_text_that_is_no_payload_tells_nothing(tmp_path: Path, json: str) -> None:
    def change(file: NsysFile) -> None:
        data = json.encode("utf-8", "surrogatepass")
        file.db.execute(
            "UPDATE NVTX_EVENTS SET jsonText = CAST(? AS TEXT) WHERE end = 200", (data,)
        )

    assert only(written(tmp_path / "t.sqlite", None, change)) == (UNKNOWN, DAMAGED)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE NVTX_PAYLOAD_SCHEMAS",
        "DROP TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES",
        "ALTER TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES DROP COLUMN name",
        "ALTER TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES DROP COLUMN offset",
        "ALTER TABLE NVTX_PAYLOAD_SCHEMAS DROP COLUMN payloadSize",
        "UPDATE NVTX_PAYLOAD_SCHEMAS SET payloadSize = 16",
        "UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET type = 10",
        "UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET type = 'int'",
        "UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET offset = 17 WHERE offset = 8",
        "UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET offset = -1 WHERE offset = 8",
        "UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET offset = 4 WHERE offset = 8",
        "UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET flags = 2",
        "INSERT INTO NVTX_PAYLOAD_SCHEMAS SELECT domainId, schemaId, name, type, flags, numEntries,"
        " payloadSize + 8, alignTo FROM NVTX_PAYLOAD_SCHEMAS",
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES SELECT domainId, schemaId, idx, flags, type,"
        " 'other', description, arrayOrUnionDetail, offset FROM NVTX_PAYLOAD_SCHEMA_ENTRIES",
        "DELETE FROM NVTX_PAYLOAD_SCHEMA_ENTRIES WHERE name = 'Reduction operation';"
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES SELECT domainId, schemaId, idx, flags, type,"
        " name, description, arrayOrUnionDetail, 16 FROM NVTX_PAYLOAD_SCHEMA_ENTRIES WHERE idx = 1",
    ],
)
def test_a_schema_that_does_not_fit_tells_nothing(tmp_path: Path, sql: str) -> None:
    def change(file: NsysFile) -> None:
        file.db.executescript(sql)

    assert only(written(tmp_path / "t.sqlite", BYTES, change)) == (UNKNOWN, DAMAGED)


def test_entries_beyond_the_payload_are_no_work_of_every_row(tmp_path: Path) -> None:
    few, many = (_calls(tmp_path / f"{rows}.sqlite", rows) for rows in (10, 20))
    assert many - few < ENTRIES


def _calls(path: Path, rows: int) -> int:
    """The calls to read as many ranges, whose schema has entries that no payload has room for."""

    def more(file: NsysFile) -> None:
        for row in range(rows):
            add_range(file, "ncclAllReduce", 500, 600, blob(REDUCE.name, {SIZE: row}))
        file.db.executemany(
            "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES SELECT domainId, schemaId, ?, flags, type,"
            " name, description, arrayOrUnionDetail, ? FROM NVTX_PAYLOAD_SCHEMA_ENTRIES"
            f" WHERE schemaId = {STATIC + 5} AND idx = 1",
            [(100 + entry, 100 + 8 * entry) for entry in range(ENTRIES)],
        )

    assert only(written(path, BYTES, more)) == (KNOWN, ())
    return count_calls(lambda: told(path))


def test_a_payload_of_another_domain_tells_nothing(tmp_path: Path) -> None:
    payload = blob(REDUCE.name, REDUCE.values, domain=2)
    path = written(tmp_path / "t.sqlite", payload, lambda file: add_schemas(file, domain=2))
    assert only(path) == (UNKNOWN, DAMAGED)


def test_schemas_of_two_processes_are_the_same(tmp_path: Path) -> None:
    assert only(written(tmp_path / "t.sqlite", BYTES, add_schemas)) == (KNOWN, ())


def test_calls_without_payloads_say_how_to_get_them(tmp_path: Path) -> None:
    lacks = "1 call of NCCL has no payload, which tells size and group"
    advice = "nsys export --include-blobs=true"
    assert only(written(tmp_path / "t.sqlite", None)) == (UNKNOWN, (f"{lacks}: {advice}",))


@pytest.mark.parametrize("column", ["binaryData", "jsonText", "jsonTextId", "textId"])
def test_columns_may_be_absent(tmp_path: Path, column: str) -> None:
    def change(file: NsysFile) -> None:
        file.db.execute("UPDATE NVTX_EVENTS SET text = 'ncclAllReduce' WHERE end = 200")
        file.db.execute(f"ALTER TABLE NVTX_EVENTS DROP COLUMN {column}")

    payload = BYTES if column.startswith("json") else REDUCE.values
    assert only(written(tmp_path / "t.sqlite", payload, change)) == (KNOWN, ())


def test_an_export_without_the_domain_has_no_collectives(tmp_path: Path) -> None:
    def rename(file: NsysFile) -> None:
        file.db.execute("UPDATE NVTX_EVENTS SET text = 'mine' WHERE text = 'NCCL'")

    path = written(tmp_path / "t.sqlite", BYTES, rename)
    assert load_file(path, LoadOptions(), silent).collectives_builder is None


def test_ranges_of_another_process_with_that_domain_are_not_of_nccl(tmp_path: Path) -> None:
    def more(file: NsysFile) -> None:
        add_range(file, "ncclAllReduce", 100, 200, BYTES, pid=7, tid=8)
        file.api("cudaLaunchKernelExC", 110, 120, 1, pid=7, tid=8)
        file.kernel("ncclDevKernel_AllReduce", 300, 400, 1, pid=7)

    assert only(written(tmp_path / "t.sqlite", BYTES, more)) == (KNOWN, ())


def test_a_group_that_began_before_the_capture_tells_nothing(tmp_path: Path) -> None:
    def more(file: NsysFile) -> None:
        add_range(file, "ncclGroupEnd", 10, 50)
        file.api("cudaLaunchKernelExC", 20, 30, 2)
        file.kernel("ncclDevKernel_AllGather", 60, 70, 2)

    path = written(tmp_path / "t.sqlite", BYTES, more)
    profile = load_file(path, LoadOptions(), silent)
    assert profile.collectives is not None
    assert profile.activities.start[profile.collectives.row].tolist() == [300]


def test_a_call_that_begins_as_another_ends_is_one_of_its_own(tmp_path: Path) -> None:
    def more(file: NsysFile) -> None:
        add_range(file, "ncclAllReduce", 200, 290, blob("ncclAllReduce", {**REDUCE.values}))
        add_range(file, "ncclAllGather", 290, 299, Call("ncclAllGather", 5, 64).values)
        file.api("cudaLaunchKernelExC", 210, 220, 2)
        file.kernel("ncclDevKernel_AllReduce", 410, 420, 2)

    found = told(written(tmp_path / "t.sqlite", BYTES, more))
    assert [found.kinds[at] for at in found.kind.tolist()] == [KNOWN, KNOWN]


def test_a_range_that_stays_open_lasts_until_the_end(tmp_path: Path) -> None:
    def change(file: NsysFile) -> None:
        file.db.execute("UPDATE NVTX_EVENTS SET end = NULL WHERE end = 200")

    assert only(written(tmp_path / "t.sqlite", BYTES, change)) == (KNOWN, ())


def test_kernels_with_other_names_are_none_of_nccl(tmp_path: Path) -> None:
    def more(file: NsysFile) -> None:
        file.api("cudaLaunchKernel", 130, 140, 2)
        file.kernel("all_reduce_helper", 410, 420, 2)

    assert only(written(tmp_path / "t.sqlite", BYTES, more)) == (KNOWN, ())


def member(size: int, rank: int, hashed: int = HASH) -> dict[str, int]:
    return {"NCCL communicator ID": hashed, "No. of ranks": size, "Rank": rank, "CUDA device": 0}


@pytest.mark.parametrize(
    ("made", "ranks", "rank"),
    [
        ([("ncclCommInitRank", member(8, 3))], 8, 3),
        ([("ncclCommDestroy", member(8, 3)), ("ncclCommInitRank", member(8, 3))], 8, 3),
        ([("ncclCommInitRankConfig", member(8, 3, hashed=0))], None, None),
        ([("ncclCommInitRank", member(8, 3)), ("ncclCommInitRank", member(8, 4))], 8, None),
        ([("ncclCommInitRank", member(8, 3)), ("ncclCommAbort", member(4, 3))], None, None),
        ([("ncclCommInitRank", member(8, 8))], 8, None),
        ([("ncclCommInitRank", member(0, 0))], None, None),
        ([("ncclCommInitAll", {"NCCL communicator ID": HASH, "No. of devices": 2})], 2, None),
        ([("ncclCommSplit", member(8, 3))], None, None),
        ([("ncclCommInitRank", {"No. of ranks": 8, "Rank": 3})], None, None),
    ],
)
def test_communicators_have_sizes_where_all_agree(
    tmp_path: Path, made: list[tuple[str, dict[str, int]]], ranks: int | None, rank: int | None
) -> None:
    def more(file: NsysFile) -> None:
        for at, (name, values) in enumerate(made):
            add_range(file, name, 10 * at, 10 * at + 5, values)

    path = written(tmp_path / "t.sqlite", BYTES, more)
    assert only(path) == (KNOWN._replace(ranks=ranks, rank=rank), ())


def of_rank(path: Path, rank: int) -> Path:
    """One of two ranks: an all-gather and a send in one group, an all-reduce, and a broadcast."""
    calls = [
        [Call("ncclAllGather", HASH, 100)],
        [REDUCE, REDUCE],
        [Call("ncclSend", HASH, 70, peer=1 - rank), Call("ncclRecv", HASH, 30, peer=1 - rank)],
        [Call("ncclBroadcast", HASH, 10, root=1)],
        [REDUCE, Call("ncclAllGather", HASH, 8)],
    ]
    with NsysFile(path) as file:
        pid = 100 + rank
        file.domain(1, "NCCL", pid=pid)
        add_range(file, "ncclCommInitRank", 0, 5, member(2, rank), pid=pid)
        for at, batch in enumerate(calls, 1):
            add_range(file, "ncclGroupStart", 1_000 * at, 1_000 * at + 1, pid=pid)
            for number, call in enumerate(batch):
                begin = 1_000 * at + 10 * (number + 1)
                add_range(file, call.name, begin, begin + 5, call.values, pid=pid)
            add_range(file, "ncclGroupEnd", 1_000 * at + 100, 1_000 * at + 200, pid=pid)
            file.api("cudaLaunchKernelExC", 1_000 * at + 110, 1_000 * at + 120, at, pid=pid)
            begin, kernel = 1_000 * at + 300, batch[0].name.removeprefix("nccl")
            file.kernel(f"ncclDevKernel_{kernel}", begin, begin + 100 * (1 + rank), at, pid=pid)
    return path


def test_a_report_says_of_exports_what_it_says_of_pytorch_traces(tmp_path: Path) -> None:
    paths = [of_rank(tmp_path / f"{rank}.sqlite", rank) for rank in range(2)]
    section = communication_section(Scope(load_all(paths, LoadOptions(), silent)))
    rows = {
        (row["collective"], row.get("bytes")): row for row in table_rows(section, "collectives")
    }
    reduced, moved = rows["all-reduce", 16_384], rows["send/receive", 140]
    assert (reduced["group"], reduced["group_ranks"], reduced["recorded_ranks"]) == (
        GROUP,
        2,
        "0-1",
    )
    assert (reduced["reduction"], reduced["count"], reduced["sum_ns"]) == ("sum", 2, 300)
    assert (reduced["bandwidth"], reduced["bus_bandwidth"]) == (54.613, 54.613)
    assert (rows["all-gather", 400]["bandwidth"], moved["peers"]) == (1.333, "0-1")
    assert (rows["broadcast", 20]["root"], rows["broadcast", 20]["bus_bandwidth"]) == (1, 0.067)
    assert rows["all-reduce", None]["group"] == GROUP
    assert [row["number"] for row in table_rows(section, "operations")] == [1] * 5


def test_sends_of_more_than_any_gpu_holds_are_not_known(tmp_path: Path) -> None:
    moved = [("ncclSend", 1 << 40), ("ncclSend", 1 << 40), ("ncclRecv", 5)]

    def more(file: NsysFile) -> None:
        file.db.execute("DELETE FROM NVTX_EVENTS WHERE end = 200")
        add_range(file, "ncclGroupStart", 10, 11)
        for at, (name, size) in enumerate(moved, 2):
            add_range(file, name, 10 * at, 10 * at + 5, Call(name, HASH, size, peer=at).values)
        add_range(file, "ncclGroupEnd", 100, 200)

    found = RecordedCollective("ncclSendRecv", "byte", group=GROUP)
    assert only(written(tmp_path / "t.sqlite", BYTES, more)) == (found, ())


def test_what_is_told_is_kept_with_the_trace(tmp_path: Path) -> None:
    path = of_rank(tmp_path / "trace.sqlite", 0)
    first, kept = keep(path).collectives, find(path)
    assert first is not None
    assert kept is not None
    again = kept.collectives
    assert again is not None
    assert first.kinds == again.kinds
    for name in ("row", "kind", "sequence"):
        assert np.array_equal(getattr(first, name), getattr(again, name))


def test_an_export_that_has_changed_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "t.sqlite", BYTES)
    profile = load_file(path, LoadOptions(), silent)
    path.write_bytes(path.read_bytes() + b"\0" * 4096)
    with pytest.raises(InputError, match="changed since it was opened"):
        _ = profile.collectives


@needs_traces
def test_a_real_export_has_schemas_of_nccl_and_no_ranges() -> None:
    found = load_file(TRACES / "nsys/h100_2gpu_window.sqlite", LoadOptions(), silent)
    assert found.collectives is None
