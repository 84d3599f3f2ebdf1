"""Read a pprof profile byte by byte, as profile.proto and protobuf's encoding say."""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

Message = dict[int, list[Any]]


def fields(data: bytes) -> Message:
    """All values of every field: numbers as they are, else bytes."""
    found: Message = defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at : at + value], at + value  # type: ignore[assignment]
        found[tag >> 3].append(value)
    return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def numbers(values: list[Any]) -> list[int]:
    """Repeated numbers, packed or not."""
    found = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            found.append(number)
    return found


def naive_stacks(path: Path) -> Counter[tuple[str, ...]]:
    """The last value of all samples by their stacks, root first; every place has a function."""
    data = path.read_bytes()
    profile = fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    texts = [text.decode() for text in profile[6]]
    functions = {one[1][0]: texts[one[2][0]] for one in map(fields, profile[5])}
    places = {
        one[1][0]: [functions[fields(line)[1][0]] for line in one[4]]
        for one in map(fields, profile[4])
    }
    found: Counter[tuple[str, ...]] = Counter()
    for sample in map(fields, profile[2]):
        names = [name for place in numbers(sample[1]) for name in places[place]]
        found[tuple(reversed(names))] += numbers(sample[2])[-1]
    return found
