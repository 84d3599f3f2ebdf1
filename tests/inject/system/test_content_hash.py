"""The hash that tells cubins apart is XXH64: by its test vectors, and by its specification."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from inject import build
from tests.inject.conftest import SANITIZERS, WATCHED

BITS = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
VECTORS = {b"": 0xEF46DB3751D8E999, b"a": 0xD24EC4F1A98C6E5B, b"abc": 0x44BC2CF5AD770999}


def rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & BITS


def mixed(lane: int, value: int) -> int:
    return rotated((lane + value * P2) & BITS, 31) * P1 & BITS


def naive(data: bytes) -> int:
    """XXH64 with the seed 0, step by step as its specification has it."""
    hash_, rest = P5, data
    if len(data) >= 32:
        lanes = [(P1 + P2) & BITS, P2, 0, -P1 & BITS]
        while len(rest) >= 32:
            for lane in range(4):
                word = int.from_bytes(rest[8 * lane : 8 * lane + 8], "little")
                lanes[lane] = mixed(lanes[lane], word)
            rest = rest[32:]
        turns = zip(lanes, (1, 7, 12, 18), strict=True)
        hash_ = sum(rotated(lane, bits) for lane, bits in turns) & BITS
        for lane in lanes:
            hash_ = ((hash_ ^ mixed(0, lane)) * P1 + P4) & BITS
    hash_ = (hash_ + len(data)) & BITS
    while len(rest) >= 8:
        word, rest = int.from_bytes(rest[:8], "little"), rest[8:]
        hash_ = (rotated(hash_ ^ mixed(0, word), 27) * P1 + P4) & BITS
    if len(rest) >= 4:
        word, rest = int.from_bytes(rest[:4], "little"), rest[4:]
        hash_ = (rotated(hash_ ^ word * P1 & BITS, 23) * P2 + P3) & BITS
    for byte in rest:
        hash_ = rotated(hash_ ^ byte * P5 & BITS, 11) * P1 & BITS
    hash_ = (hash_ ^ hash_ >> 33) * P2 & BITS
    hash_ = (hash_ ^ hash_ >> 29) * P3 & BITS
    return hash_ ^ hash_ >> 32


def test_the_specification_is_read_well() -> None:
    assert {data: naive(data) for data in VECTORS} == VECTORS


@pytest.mark.parametrize("kind", ["", pytest.param("address", marks=pytest.mark.deep)])
def test_it_is_computed_as_specified(compiled: Callable[..., Path], kind: str) -> None:
    flags = (*WATCHED, *SANITIZERS[kind]) if kind else ("-O2",)
    source = str(build.HERE / "system" / "content_hash.cpp")
    program = compiled("content_hash.cpp", source, *flags)
    data = random.Random(7).randbytes(300)
    done = subprocess.run([program], input=data, capture_output=True, check=True)
    expected = [naive(data[:size]) for size in range(len(data) + 1)]
    assert [int(line, 16) for line in done.stdout.split()] == expected
