"""The records of a dump, read plainly: by the schema in the file, one chunk after the other."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

HEADER = struct.Struct("<8s4I4Q4IQ")
CHUNK = struct.Struct("<IHHIIIIQ")
MAGIC = 0x4B484346
_NAMED = {"text", "frame", "range_name", "node"}
_TYPES = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "u8": "<u8"}
_HEADER_FIELDS = (
    *("magic", "version", "header_size", "chunk_size", "pid", "start_unix", "start_monotonic"),
    *("tail", "dropped", "schema_offset", "schema_size", "state", "flags", "end_monotonic"),
)


def header(path: Path) -> dict[str, Any]:
    """The fields of the header by name."""
    with path.open("rb") as file:
        return dict(zip(_HEADER_FIELDS, HEADER.unpack(file.read(HEADER.size)), strict=True))


def schema(path: Path) -> dict[str, Any]:
    """The records that the dump describes, by key."""
    head = header(path)
    with path.open("rb") as file:
        file.seek(head["schema_offset"])
        records: dict[str, Any] = json.loads(file.read(head["schema_size"]))["records"]
    return records


def chunks(path: Path) -> list[tuple[int, int, bytes]]:
    """(type, tid, committed bytes) of every chunk, in the file's order."""
    data, head = path.read_bytes(), header(path)
    found = []
    for at in range(head["header_size"], min(head["tail"], len(data)), head["chunk_size"]):
        magic, kind, _, size, tid, committed, _, _ = CHUNK.unpack_from(data, at)
        if magic == MAGIC:
            assert size == head["chunk_size"] >= 64 + committed
            found.append((kind, tid, data[at + 64 : at + 64 + committed]))
    return found


def unsealed(path: Path, kind: int) -> tuple[int, int]:
    """Count the chunks of a type: (all of them, those that may still get records)."""
    data, head = path.read_bytes(), header(path)
    places = range(head["header_size"], min(head["tail"], len(data)), head["chunk_size"])
    found = [CHUNK.unpack_from(data, at) for at in places]
    sealed = [bool(chunk[6]) for chunk in found if chunk[:2] == (MAGIC, kind)]
    return len(sealed), sealed.count(False)


def records(path: Path) -> dict[str, Any]:
    """All records by key, each a structured array; ``text`` is a dict of bytes by id.

    What others name by its id is written before them, but may lie in a chunk that is read before
    theirs: while the program goes on, it is in the second reading whatever the first one names.
    """
    first, second = chunks(path), chunks(path)
    found: dict[str, Any] = {}
    for key, layout in schema(path).items():
        parts = second if key in _NAMED else first
        mine = [data for kind, _, data in parts if kind == layout["type"]]
        if key == "text":
            found[key] = {number: text for data in mine for number, text in _texts(data)}
            continue
        dtype = np.dtype([(name, _TYPES[kind]) for name, kind in layout["fields"]])
        assert dtype.itemsize == layout["size"], key
        found[key] = np.frombuffer(b"".join(mine), dtype)
    return found


def _texts(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(data):
        number, size = struct.unpack_from("<II", data, at)
        found.append((number, data[at + 8 : at + 8 + size]))
        at += 8 + (size + 7) // 8 * 8
    return found


def text(of: dict[str, Any], number: int) -> str:
    """A text by its id; nothing for 0."""
    return of["text"][number].decode("utf-8", "replace") if number else ""


def meta(path: Path) -> dict[str, list[str]]:
    """The values of every meta key."""
    of = records(path)
    found: dict[str, list[str]] = {}
    for row in of["meta"]:
        found.setdefault(text(of, int(row["key"])), []).append(text(of, int(row["value"])))
    return found


def stack(of: dict[str, Any], number: int) -> list[tuple[str, str, int]]:
    """The frames of a node, outermost first: (function, file, line), or (range, domain, category).

    A range's domain is its number as text.
    """
    nodes = {int(row["id"]): row for row in of["node"]}
    frames = {int(row["id"]): row for row in of["frame"]}
    ranges = {int(row["id"]): row for row in of["range_name"]}
    found: list[tuple[str, str, int]] = []
    while number:
        node = nodes[number]
        if node["kind"] == 0:
            row = frames[int(node["item"])]
            place = (text(of, int(row["function"])), text(of, int(row["file"])), int(row["line"]))
        else:
            row = ranges[int(node["item"])]
            place = (text(of, int(row["text"])), str(int(row["domain"])), int(row["category"]))
        found.append(place)
        number = int(node["parent"])
    return found[::-1]
