"""pprof profiles: samples add up whatever their places are."""

from __future__ import annotations

import random

from tests.fuzz.checks import opens_or_refuses, packed, unpacked_size, write
from tests.fuzz.target import Target
from tests.support.writers.pproffile import PprofFile, chunk, number, varint


def check(data: bytes) -> None:
    opens_or_refuses(write("cpu.pb", data))


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Leave out, repeat or insert fields, or change a number."""
    at = draw.randrange(len(data) + 1)
    end = min(len(data), at + draw.choice((1, 2, 8, 40)))
    new = draw.choice(
        (
            b"",
            data[at:end] * 2,
            varint(draw.choice((0, 1, 127, 128, 1 << 32, (1 << 64) - 1))),
            number(draw.randrange(16), draw.randrange(300)),
            chunk(draw.randrange(1, 8), data[at:end]),
        )
    )
    return data[:at] + new + data[draw.choice((at, end)) :]


def _whole() -> bytes:
    file = PprofFile(("samples", "count"), ("cpu", "nanoseconds"), default="cpu")
    file.mapping(1, 0x1000, 0x10, "libx.so")
    outer = file.place(("main", "main.go", 3))
    inner = file.place(("inlined", "a.py", 9), ("work", "a.py", 7))
    bare = file.place(address=0x1020, mapping=1)
    file.sample([bare, inner, outer], 1, 10, more=chunk(3, number(1, 2)))
    file.sample_unpacked([inner, outer], 2, 300)
    file.sample([outer], 1, 5)
    return file.data()


def seeds() -> list[bytes]:
    return [_whole(), packed(_whole())]


TARGET = Target("pprof", seeds, check, mutate, 1 << 12, unpacked_size)
