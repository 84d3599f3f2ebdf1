"""Writes what NCCL's NVTX ranges look like in exports of Nsight Systems and in dumps."""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.nsysfile import NsysFile

COMMUNICATOR, SIZE, REDUCTION = (
    "NCCL communicator ID",
    "Message size [bytes]",
    "Reduction operation",
)
STATIC = 1 << 24
_INT, _UINT64, _SIZE, _REDOP = 5, 18, 22, STATIC + 15

_COMM, _BYTES = (COMMUNICATOR, _UINT64, 0), (SIZE, _SIZE, 8)
_MEMBER = [_COMM, ("No. of ranks", _INT, 8), ("Rank", _INT, 12), ("CUDA device", _INT, 16)]
SCHEMAS = {
    "ncclCommInitRank": (0, 24, _MEMBER),
    "ncclCommInitAll": (1, 16, [_COMM, ("No. of devices", _INT, 8)]),
    "ncclCommDestroy": (2, 24, _MEMBER),
    "ncclCommAbort": (3, 24, _MEMBER),
    "ncclAllGather": (4, 16, [_COMM, _BYTES]),
    "ncclAllReduce": (5, 24, [_COMM, _BYTES, (REDUCTION, _REDOP, 16)]),
    "ncclBroadcast": (6, 24, [_COMM, _BYTES, ("Root", _INT, 16)]),
    "ncclReduceScatter": (7, 24, [_COMM, _BYTES, (REDUCTION, _REDOP, 16)]),
    "ncclReduce": (8, 24, [_COMM, _BYTES, ("Root", _INT, 16), (REDUCTION, _REDOP, 20)]),
    "ncclSend": (9, 24, [_COMM, _BYTES, ("Peer rank", _INT, 16)]),
    "ncclRecv": (10, 24, [_COMM, _BYTES, ("Peer rank", _INT, 16)]),
    "ncclCommSplit": (
        13,
        40,
        [
            *(_COMM, ("Parent NCCL communicator ID", _UINT64, 8)),
            *(("No. of ranks", _INT, 16), ("Rank", _INT, 20), ("CUDA device", _INT, 24)),
            *(("Color", _INT, 28), ("Key", _INT, 32)),
        ],
    ),
}
"""Number, bytes, and entries (label, type, offset) of schemas, as NCCL 2.27 registers them.

src/include/nvtx.h and nvtx_payload_schemas.h; offsets and sizes are those of the C structures.
"""

_FORMS = {_INT: "<i", _UINT64: "<Q", _SIZE: "<Q", _REDOP: "<i"}
_REDUCTIONS = {"sum": 0, "product": 1, "max": 2, "min": 3, "avg": 4}


class Call(NamedTuple):
    """A call of NCCL, and what its payload says by label; ``reduction`` is a number there."""

    name: str
    communicator: int | None = None
    bytes: int | None = None
    reduction: str = ""
    root: int | None = None
    peer: int | None = None

    @property
    def values(self) -> dict[str, int]:
        known = {
            COMMUNICATOR: self.communicator,
            SIZE: self.bytes,
            REDUCTION: _REDUCTIONS.get(self.reduction),
            "Root": self.root,
            "Peer rank": self.peer,
        }
        return {label: value for label, value in known.items() if value is not None}


def packed(name: str, values: dict[str, int]) -> bytes:
    """The payload of a call of ``name``, as in the memory of the program."""
    _, size, entries = SCHEMAS[name]
    data = bytearray(size)
    for label, kind, offset in entries:
        struct.pack_into(_FORMS[kind], data, offset, values.get(label, 0))
    return bytes(data)


def blob(name: str, values: dict[str, int], domain: int = 1, whole: bool = False) -> bytes:
    """The payload as `binaryData` has it; its offset ends the header, or the ``whole`` size."""
    data = packed(name, values)
    last = 32 + len(data) if whole else 32
    return struct.pack("<4Q", domain, STATIC + SCHEMAS[name][0], len(data), last) + data


def add_schemas(file: NsysFile, domain: int = 1) -> None:
    """Adds the schemas of all functions; what is 0 is absent, as in NVIDIA's exports."""
    for number, size, entries in SCHEMAS.values():
        known = {"domainId": domain, "schemaId": STATIC + number}
        described = {"type": 1, "numEntries": len(entries), "payloadSize": size}
        file.insert("NVTX_PAYLOAD_SCHEMAS", **known, **described)
        for at, (label, kind, offset) in enumerate(entries):
            table, place = "NVTX_PAYLOAD_SCHEMA_ENTRIES", offset or None
            file.insert(table, **known, idx=at, type=kind, name=label, offset=place)


def add_range(
    file: NsysFile,
    name: str,
    start: int,
    end: int | None,
    payload: dict[str, int] | bytes | str | None = None,
    **where: int,
) -> None:
    """Adds a range of NCCL with its ``payload``: as JSON, as bytes or as any text."""
    as_json = json.dumps(payload) if isinstance(payload, dict) else None
    file.nvtx(name, start, end, **{"domain": 1, **where}, registered=True, json=as_json)
    if isinstance(payload, bytes | str):
        last = "rowid = (SELECT max(rowid) FROM NVTX_EVENTS)"
        file.db.execute(f"UPDATE NVTX_EVENTS SET binaryData = ? WHERE {last}", (payload,))


def dumped_range(
    file: DumpFile, name: str, start: int, end: int, values: dict[str, int] | None, tid: int
) -> None:
    """Adds a range of NCCL to a dump, with its payload as JSON."""
    payload = file.text(json.dumps(values)) if values else 0
    fields = {"name": file.range_name(name, domain=7), "node": file.nvtx((name, 7))}
    times = {"start": file.time(start), "end": file.time(end)}
    file.record("range", tid=tid, end_tid=tid, payload_text=payload, **fields, **times)
