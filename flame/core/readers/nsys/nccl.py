"""Read what NCCL's ranges tell of its calls, once somebody asks for it.

Payloads are in an export in one of two ways. As JSON (`jsonText`, or the string `jsonTextId`), by
label. Or as bytes (`binaryData`), if it was made with ``--include-blobs=true``: a header of four
numbers of 64 bits (domain, schema, size of the payload, and its offset or the size of all), then
the payload, which the schema in `NVTX_PAYLOAD_SCHEMA_ENTRIES` describes. No document describes the
header. nsys-ai (github.com/GindaChen/nsys-ai) reads such exports of Nsight Systems 2026.2: its
`nccl_communicator.py` takes the last number for the offset, 32, its `nccl_payload_breakdown.py` for
the size of all. Both are accepted, nothing else is.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from flame.core.columns import I4, I8, distinct
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.launches import NcclRanges
from flame.core.readers.nsys.context import TIME_LIMIT, NsysContext, pid_of, process_keys
from flame.core.readers.nsys.nvtx_frames import PUSH_POP, TABLE
from flame.core.readers.nsys.side_keys import KnownKeys
from flame.core.readers.nsys.side_tables import Read, read_texts
from flame.core.readers.shared.nccl import DOMAIN, REDUCTION, Payload, build_ranges, json_payload
from flame.core.readers.shared.nvtx_payloads import (
    PayloadEntry,
    Schema,
    build_schema,
    decode_payload,
)
from flame.core.readers.sqlite.source import NULL, TableSource

SCHEMAS, ENTRIES = "NVTX_PAYLOAD_SCHEMAS", "NVTX_PAYLOAD_SCHEMA_ENTRIES"
_TIMES = ("start", "end", "globalTid")
_CELLS = ("domainId", "text", "textId", "jsonText", "jsonTextId", "binaryData")
_HEADER = struct.Struct("<4Q")
_ADVICE = ": nsys export --include-blobs=true"

_Schemas = Mapping[tuple[object, object], Schema | None]


@dataclass(frozen=True)
class _Domains:
    """Which domains are NCCL's, as (pid, number), and the places of processes and threads."""

    known: frozenset[tuple[int, int]]
    processes: Mapping[int, int]
    threads: Mapping[int, int]
    last_time: int


def nccl_reader(context: NsysContext, keys: KnownKeys) -> Read[NcclRanges] | None:
    """Tell how to read NCCL's ranges; None where it has none."""
    known = frozenset(where for where, name in context.domains.items() if name == DOMAIN)
    if not known:
        return None
    return partial(_read, _Domains(known, keys.processes, keys.threads, context.last_time))


def _read(domains: _Domains, source: TableSource) -> NcclRanges:
    numbers = ", ".join(str(number) for number in sorted({one for _, one in domains.known}))
    condition = f"WHERE eventType = {PUSH_POP} AND domainId IN ({numbers})"
    rows = list(source.rows(TABLE, [*_TIMES, *_CELLS], condition))
    start, end, thread, *cells = zip(*rows, strict=True) if rows else [()] * 9
    owner, begin, last = map(_numbers, (thread, start, end))
    last = np.where(last == NULL, domains.last_time, last)
    process = process_keys(owner)
    described = list(zip(process.tolist(), *cells, strict=True))
    known = {one: at for at, one in enumerate(dict.fromkeys(described))}
    kind = np.fromiter(map(known.__getitem__, described), np.int32, len(described))
    ours = np.array([(pid_of(one[0]), one[1]) in domains.known for one in known], bool)
    kept = np.flatnonzero(ours[kind] & (begin > -TIME_LIMIT) & (begin <= last))
    return build_ranges(
        _places(owner[kept], domains.threads),
        begin[kept],
        np.minimum(last[kept], TIME_LIMIT),
        kind[kept],
        _read_kinds(source, [one[1:] for one in known]),
        _places(process[kept], domains.processes),
        _ADVICE,
    )


def _numbers(column: Sequence[object]) -> I8:
    """A column of the file as i8[n], `NULL` where there is no such number."""
    if all(map(int.__instancecheck__, column)):
        with suppress(OverflowError):
            return np.array(column, np.int64)
    return np.array([one if isinstance(one, int) else NULL for one in column], np.int64)


def _places(keys: I8, known: Mapping[int, int]) -> I4:
    values, place = distinct(keys)
    return np.array([known.get(one, NONE) for one in values.tolist()], np.int32)[place]


def _read_kinds(
    source: TableSource, cells: Sequence[tuple[object, ...]]
) -> list[tuple[str, Payload | None]]:
    """The name and the payload that each of the ``cells``, as `_CELLS`, stand for."""
    ids = {key for _, _, text, _, json, _ in cells for key in (text, json) if isinstance(key, int)}
    strings = read_texts(source, sorted(ids))
    schemas = _read_schemas(source) if any(one[-1] is not None for one in cells) else {}
    return [_kind(one, strings, schemas) for one in cells]


def _kind(
    cells: tuple[object, ...], strings: Mapping[int, str], schemas: _Schemas
) -> tuple[str, Payload | None]:
    domain, text, text_id, json, json_id, data = cells
    name, written = (
        one if isinstance(one, str) else strings.get(key, "") if isinstance(key, int) else ""
        for one, key in ((text, text_id), (json, json_id))
    )
    told = json_payload(written) if written else None
    if told is None and data is not None:
        told = _of_bytes(data, domain, schemas)
    nothing = not written and data is None
    return name, {} if nothing else told


def _of_bytes(data: object, domain: object, schemas: _Schemas) -> Payload | None:
    """Decode a payload behind its header; None where they do not fit each other or the schema."""
    if not isinstance(data, bytes) or len(data) < _HEADER.size:
        return None
    owner, number, size, where = _HEADER.unpack_from(data)
    schema = schemas.get((owner, number))
    whole = _HEADER.size + size
    if owner != domain or not schema or whole != len(data) or where not in (_HEADER.size, whole):
        return None
    return decode_payload(data[_HEADER.size :], schema)


def _read_schemas(source: TableSource) -> _Schemas:
    """Read the schemas by domain and number; None of those that are described in several ways.

    The tables do not say of which process a domain is. What is 0 is absent in them.
    """
    sizes = _grouped(source.rows(SCHEMAS, ["domainId", "schemaId", "payloadSize"]))
    columns = ["domainId", "schemaId", "idx", "flags", "type", "offset", "name"]
    entries = _grouped(source.rows(ENTRIES, columns))
    return {key: _schema(sizes[key], entries.get(key, set())) for key in sizes}


def _grouped(
    rows: Iterable[tuple[object, ...]],
) -> dict[tuple[object, object], set[tuple[object, ...]]]:
    found: dict[tuple[object, object], set[tuple[object, ...]]] = defaultdict(set)
    for domain, schema, *rest in rows:
        found[domain, schema].add(tuple(rest))
    return found


def _schema(sizes: set[tuple[object, ...]], entries: set[tuple[object, ...]]) -> Schema | None:
    (size,) = next(iter(sizes))
    places = {one[0] for one in entries}
    if len(sizes) != 1 or len(places) != len(entries) or not isinstance(size, int):
        return None
    described = [_entry(*one) for one in entries]
    return build_schema(size, [one for one in described if one is not None], (REDUCTION,))


def _entry(
    place: object, flags: object, kind: object, offset: object, label: object
) -> PayloadEntry | None:
    """An entry that is a number by itself; of those behind the first the offset must be known."""
    first = place in (0, None)
    if flags or not (isinstance(kind, int) and isinstance(label, str)):
        return None
    if not isinstance(offset, int) and not (first and offset is None):
        return None
    return PayloadEntry(label, kind, offset if isinstance(offset, int) else 0)
