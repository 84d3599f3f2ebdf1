"""Writes dumps as the injection library does, record by record; layouts are those of dump.h."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from tests.support.paths import ROOT
from tests.support.writers.fdumprecords import CHUNK, HEADER, MAGIC

DUMP_H = ROOT / "inject" / "dump" / "dump.h"
SIZE = 1 << 16
ROOM = SIZE - 64
START = 5_000_000_000_000
UNIX = 1_760_000_000_000_000_000
DOMAIN, CATEGORY, THREAD, DEVICE, API, STALL_REASON, STREAM = range(1, 8)
TEXT = 1
_FORMAT = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q"}

Fields = list[tuple[str, str]]
Place = tuple[str, str, int]
"""A Python frame: function, file, line."""


@cache
def layouts() -> Mapping[str, tuple[int, Fields]]:
    """Type and fields of each kind of record, by key."""
    text = DUMP_H.read_text()
    numbers = {name: int(number) for name, number in re.findall(r"  k(\w+) = (\d+),", text)}
    macros = dict(re.findall(r"#define (FLAME_\w+)\(F\)((?:.*\\\n)*.*\n)", text))
    found = {
        key: (numbers[struct_name], _fields(macros[macro]))
        for struct_name, key, macro in re.findall(r"R\((\w+), (\w+), (\w+), \d+\)", text)
    }
    return MappingProxyType(found)  # All tests share it.


def _fields(macro: str) -> Fields:
    found = re.findall(r"F\(uint(\d+)_t, (\w+)", macro)
    return [(name, f"u{int(bits) // 8}") for bits, name in found]


def schema_of(records: Mapping[str, tuple[int, Fields]]) -> bytes:
    """The description of records that stands in a dump."""
    described: dict[str, object] = {"text": {"type": TEXT, "size": 0, "fields": []}}
    for key, (number, fields) in records.items():
        size = sum(int(kind[1]) for _, kind in fields)
        described[key] = {"type": number, "size": size, "fields": fields}
    return json.dumps({"format": "flame-dump", "version": 1, "records": described}).encode()


class DumpFile:
    """One process's dump. Times are ns since its start; ids are worked out here.

    ``rows``: records in a chunk before the next is begun, as many as fit if None. ``records``:
    other layouts than those of today.
    """

    def __init__(
        self,
        pid: int = 100,
        *,
        start: int = START,
        unix: int = UNIX,
        rows: int | None = None,
        records: Mapping[str, tuple[int, Fields]] | None = None,
    ) -> None:
        self.pid, self.start, self.unix = pid, start, unix
        self.ended, self.flags, self.dropped, self.end = True, 0, 0, 0
        self.records = dict(layouts() if records is None else records)
        self._rows = rows
        self._chunks: list[tuple[int, int, int, list[bytes]]] = []
        self._current: dict[tuple[str, int], int] = {}
        self._ids: dict[str, dict[tuple[object, ...], int]] = {}

    # Vocabulary

    def _id(self, key: str, *what: object) -> tuple[int, bool]:
        """The id of a text, frame, range name or node, and whether it is new."""
        ids = self._ids.setdefault(key, {})
        known = len(ids)
        return ids.setdefault(what, known + 1), len(ids) > known

    def text(self, value: str | bytes) -> int:
        """The id of a text, written if it is new; 0 for an empty one."""
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        number, new = self._id("text", data) if data else (0, False)
        if new:
            padding = -len(data) % 8
            self.put("text", struct.pack("<II", number, len(data)) + data + bytes(padding))
        return number

    def node(self, parent: int, item: int, kind: int, flags: int = 0) -> int:
        """The id of a node."""
        number, new = self._id("node", parent, item, kind, flags)
        if new:
            self.record("node", id=number, parent=parent, item=item, kind=kind, flags=flags)
        return number

    def frame(self, place: Place) -> int:
        """The id of a Python code position."""
        function, file, line = self.text(place[0]), self.text(place[1]), place[2]
        number, new = self._id("frame", function, file, line)
        if new:
            self.record("frame", id=number, function=function, file=file, line=line)
        return number

    def range_name(self, name: str, domain: int = 0, category: int = 0) -> int:
        """The id of what a range is called."""
        text = self.text(name)
        number, new = self._id("range_name", text, domain, category)
        if new:
            self.record("range_name", id=number, text=text, domain=domain, category=category)
        return number

    def python(self, *places: Place, cut: bool = False) -> int:
        """The node of a Python stack, outermost first."""
        node = 0
        for place in places:
            node = self.node(node, self.frame(place), 0, int(cut and not node))
        return node

    def nvtx(self, *names: str | tuple[str, int]) -> int:
        """The node of a path of ranges, outermost first; each a name, or a name and a domain."""
        node = 0
        for name in names:
            one = (name,) if isinstance(name, str) else name
            node = self.node(node, self.range_name(*one), 1)
        return node

    # Records

    def record(self, key: str, /, **fields: int) -> None:
        """One record as it is; fields that are not named are 0. Each thread has its own chunks."""
        names = self.records[key][1]
        assert set(fields) <= {name for name, _ in names}, key
        values = [fields.get(name, 0) for name, _ in names]
        self.put(
            key,
            struct.pack("<" + "".join(_FORMAT[kind] for _, kind in names), *values),
            fields.get("tid", 0),
        )

    def put(self, key: str, data: bytes, tid: int = 0) -> None:
        """The bytes of one record into the chunk of its kind and thread."""
        number = TEXT if key == "text" else self.records[key][0]
        place = self._current.get((key, tid))
        full = place is None or len(self._chunks[place][3]) == self._rows
        if place is None or full or sum(map(len, self._chunks[place][3])) + len(data) > ROOM:
            place = self._current[key, tid] = len(self._chunks)
            size = 0 if key == "text" else len(data)
            self._chunks.append((number, size, tid, []))
        self._chunks[place][3].append(data)

    def put_many(self, key: str, records: bytes) -> None:
        """The bytes of many records, one after another, in chunks of their own."""
        number, fields = self.records[key]
        size = sum(int(kind[1]) for _, kind in fields)
        step = ROOM // size * size
        for at in range(0, len(records), step):
            self._chunks.append((number, size, 0, [records[at : at + step]]))

    def time(self, value: int) -> int:
        """A time as it stands in the dump."""
        return self.start + value

    def name(self, kind: int, number: int, text: str, scope: int = 0) -> None:
        """A name for a number."""
        self.record("name", kind=kind, scope=scope, id=number, text=self.text(text))

    def meta(self, key: str, value: str) -> None:
        """A fact about the process."""
        self.record("meta", key=self.text(key), value=self.text(value))

    def launch(self, start: int, end: int, correlation: int, tid: int = 100, **fields: int) -> None:
        """A CUDA API call; ``python`` and ``nvtx`` are nodes, ``api`` a callback id."""
        fields |= {"start": self.time(start), "end": self.time(end), "correlation": correlation}
        self.record("launch", **{"tid": tid} | fields)

    def call(self, start: int, end: int, tid: int = 100, **fields: int) -> None:
        """A CUDA API call that launches nothing; ``result`` is what it returned."""
        times = {"start": self.time(start), "end": self.time(end)}
        self.record("call", **{"tid": tid} | times | fields)

    def kernel(self, name: str, start: int, end: int, correlation: int, **fields: int) -> None:
        """A kernel that ran."""
        fields |= {"start": self.time(start), "end": self.time(end), "correlation": correlation}
        self.record("kernel", symbol=self.text(name), **fields)

    def memop(self, start: int, end: int, correlation: int, **fields: int) -> None:
        """A copy (kind 0) or set (1) that ran."""
        fields |= {"start": self.time(start), "end": self.time(end), "correlation": correlation}
        self.record("memop", **fields)

    def memory(self, time: int, address: int, size: int, frees: int = 0, **f: int) -> None:
        """Memory of the GPU (or of another ``kind``) allocated or freed."""
        known = {"time": self.time(time), "address": address, "bytes": size, "kind": 3}
        self.record("memory", **known | {"operation": 2 if frees else 1, "tid": 100} | f)

    def range(
        self, path: Sequence[str], start: int, end: int, tid: int = 100, **fields: int
    ) -> None:
        """A push/pop range (or what ``kind`` says): the last of ``path``, within the others."""
        known = {"name": self.range_name(path[-1]), "node": self.nvtx(*path)}
        times = {"start": self.time(start), "end": self.time(end)}
        self.record("range", **{"tid": tid, "end_tid": tid} | known | times | fields)

    def open_range(self, path: Sequence[str], start: int, tid: int = 100) -> None:
        """A range that has not ended."""
        name, node = self.range_name(path[-1]), self.nvtx(*path)
        fields = {"start": self.time(start), "tid": tid, "name": name, "node": node}
        self.record("open_range", **fields)

    def graph_node(self, node: int, original: int, time: int, **fields: int) -> None:
        """A node of a CUDA graph: captured (``original`` 0), or cloned."""
        self.record("graph_node", node=node, original=original, time=self.time(time), **fields)

    # The file

    def data(self) -> bytes:
        """All bytes of the file."""
        schema = schema_of(self.records)
        growing = () if self.ended else self._current.values()
        body = b"".join(
            _chunk(*one, sealed=place not in growing, start=self.start)
            for place, one in enumerate(self._chunks)
        )
        tail = SIZE + len(body)
        fixed = HEADER.pack(
            *(b"FLAMEDMP", 1, SIZE, SIZE, self.pid, self.unix, self.start, tail, self.dropped),
            *(4096, len(schema), int(self.ended), self.flags, self.start + self.end),
        )
        head = fixed.ljust(4096, b"\0") + schema
        return head.ljust(SIZE, b"\0") + body

    def write(self, path: Path) -> Path:
        """Write the dump and return its path."""
        path.write_bytes(self.data())
        return path


def _chunk(
    number: int, size: int, tid: int, rows: Iterable[bytes], sealed: bool, start: int
) -> bytes:
    data = b"".join(rows)
    head = CHUNK.pack(MAGIC, number, size, SIZE, tid, len(data), sealed, start)
    return (head.ljust(64, b"\0") + data).ljust(SIZE, b"\0")
