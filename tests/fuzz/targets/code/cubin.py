"""Cubins: their tables of sections and symbols."""

from __future__ import annotations

import os
import random
import struct
from functools import cache

from flame.core.errors import InputError
from flame.core.sass.cubin import find_functions
from tests.fuzz.checks import FoundError, write
from tests.fuzz.mutations import INTEGERS, LARGE
from tests.fuzz.target import Target

WANTED = ("gemm", "div", "", "x" * 100)
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


def check(data: bytes) -> None:
    path = write("x.cubin", data)
    file = os.open(path, os.O_RDONLY)
    try:
        found = find_functions(file, WANTED, lambda: None)
    except InputError as error:
        if "cubin" not in str(error):
            raise FoundError(str(error)) from error
        return
    finally:
        os.close(file)
    for name, function in found.items():
        if name not in WANTED or min(function.symbol, function.start, function.size) < 0:
            raise FoundError(f"{name}: {function}")


@cache
def small_cubin(indirect: bool = False) -> bytes:
    """A cubin with two functions in one section; ``indirect``: its symbols' sections in a table."""
    names = b"\0.shstrtab\0.strtab\0.symtab\0.text.gemm\0.symtab_shndx\0"
    strings = b"\0gemm\0div\0"
    section = 0xFFFF if indirect else 4
    symbols = [(0, 0, 0, 0, 0, 0), (1, 0x12, 0, section, 0, 64), (6, 2, 0, section, 32, 32)]
    table = b"".join(_SYMBOL.pack(*symbol) for symbol in symbols)
    indices = struct.pack("<3I", 0, 4, 4)
    contents = [
        (b"", 0, 0),
        (names, 3, 0),
        (strings, 3, 0),
        (table, 2, 2),
        (bytes(64), 1, 0),
        (indices, 18, 3),
    ]
    place, body, rows = _HEADER.size, b"", []
    for (content, kind, link), name in zip(contents, (0, 1, 11, 19, 27, 38), strict=True):
        at = place + len(body)
        rows.append(_SECTION.pack(name, kind, 0, 0, at, len(content), link, 0, 8, 0))
        body += content
    ident = b"\x7fELF\x02\x01\x01\x33\x07".ljust(16, b"\0")
    table_at, count = place + len(body), len(rows)
    fields = (2, 190, 1, 0, 0, table_at, 0, _HEADER.size, 0, 0, _SECTION.size, count, 1)
    return _HEADER.pack(ident, *fields) + body + b"".join(rows)


def seeds() -> list[bytes]:
    return [small_cubin(), small_cubin(indirect=True)]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Another number somewhere in a table."""
    changing = bytearray(data)
    form = draw.choice(("<H", "<I", "<Q"))
    size = struct.calcsize(form)
    if len(changing) > size:
        value = draw.choice((*INTEGERS, *LARGE)) % (1 << 8 * size)
        struct.pack_into(form, changing, draw.randrange(len(changing) - size) // 2 * 2, value)
    return bytes(changing)


TARGET = Target("cubin", seeds, check, mutate, 1 << 12)
