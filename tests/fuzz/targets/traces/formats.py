"""Whatever a file may hold, under names that say something of it or nothing."""

from __future__ import annotations

import lzma
import random

from tests.fuzz.checks import opens_or_refuses, unpacked_size, write
from tests.fuzz.mutations import mutate_json, mutate_lines
from tests.fuzz.target import Target
from tests.support.hostile.bad_texts import HOSTILE_JSON, PACKED, WHOLE
from tests.support.zstd import zstd

NAMES = ("a", "a.json", "a.json.gz", "a.nsys-rep", "a.qdrep", "a.ncu-rep", "a.sqlite", "a.folded")


def check(data: bytes) -> None:
    if data:
        opens_or_refuses(write(NAMES[data[0] % len(NAMES)], data[1:]))


def seeds() -> list[bytes]:
    heads = (
        b"SQLite format 3\0",
        b"FLAMEDMP\1\0\0\0",
        b"NVR\0",
        b"\x7fELF",
        b"%PDF-1.4",
        b"PK\3\4",
    )
    packed = [data for data, _ in PACKED.values()]
    packed += [pack(WHOLE["folded"]) for pack in (zstd.compress, lzma.compress)]
    files = [*WHOLE.values(), *HOSTILE_JSON.values(), *heads, *packed]
    return [bytes([at % len(NAMES)]) + data for at, data in enumerate(files) if len(data) < 4000]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Another name, or another content in the same."""
    if draw.random() < 0.3:
        return bytes([draw.randrange(256)]) + data[1:]
    change = mutate_json if data[1:2] in (b"{", b"[") else mutate_lines
    return data[:1] + change(data[1:], draw)


TARGET = Target("formats", seeds, check, mutate, 1 << 12, unpacked_size)
