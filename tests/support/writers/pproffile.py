"""Writes pprof profiles field by field, after https://protobuf.dev/programming-guides/encoding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def chunk(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    return chunk(field, b"".join(map(varint, values)))


class PprofFile:
    """A profile that grows; `data` writes it. A place is a list of (function, file, line)."""

    def __init__(self, *types: tuple[str, str], default: str = "") -> None:
        self._strings = {"": 0}
        self._types = [tuple(map(self.text, each)) for each in types]
        self._default = self.text(default)
        self._functions: dict[tuple[str, str], int] = {}
        self.parts: list[bytes] = []
        self.locations = 0

    def text(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def function(self, name: str, file: str) -> int:
        known = self._functions.setdefault((name, file), len(self._functions) + 1)
        return known

    def mapping(self, ident: int, start: int, offset: int, file: str) -> None:
        parts = number(1, ident) + number(2, start) + number(4, offset)
        self.parts.append(chunk(3, parts + number(5, self.text(file))))

    def place(self, *lines: tuple[str, str, int], address: int = 0, mapping: int = 0) -> int:
        """A place in the program: its lines, the innermost inlined function first."""
        self.locations += 1
        data = number(1, self.locations) + number(2, mapping) + number(3, address)
        for name, file, line in lines:
            data += chunk(4, number(1, self.function(name, file)) + number(2, line))
        self.parts.append(chunk(4, data))
        return self.locations

    def sample(self, places: Sequence[int], *values: int, more: bytes = b"") -> None:
        """A sample, the innermost place first."""
        self.parts.append(chunk(2, packed(1, places) + packed(2, values) + more))

    def sample_unpacked(self, places: Sequence[int], *values: int) -> None:
        """The same as encoders before proto3 wrote it: a field for each number."""
        data = b"".join(number(1, place) for place in places)
        self.parts.append(chunk(2, data + b"".join(number(2, value) for value in values)))

    def data(self) -> bytes:
        types = b"".join(chunk(1, number(1, kind) + number(2, unit)) for kind, unit in self._types)
        functions = b"".join(
            chunk(5, number(1, at) + number(2, self.text(name)) + number(4, self.text(file)))
            for (name, file), at in self._functions.items()
        )
        strings = b"".join(chunk(6, text.encode()) for text in self._strings)
        default = number(14, self._default) if self._default else b""
        return types + b"".join(self.parts) + functions + strings + number(9, 1 << 60) + default
