"""Find functions in cubins: their sections and places, by the tables of the ELF file."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from flame.core.errors import InputError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_ELF64_LITTLE = b"\x7fELF\x02\x01"
_CUDA = 190  # EM_CUDA
_SECTION = np.dtype(
    [
        *((name, "<u4") for name in ("name", "type")),
        *((name, "<u8") for name in ("flags", "address", "offset", "size")),
        *((name, "<u4") for name in ("link", "info")),
        *((name, "<u8") for name in ("alignment", "entry")),
    ]
)
_SYMBOL = np.dtype(
    [
        ("name", "<u4"),
        ("info", "u1"),
        ("other", "u1"),
        ("section", "<u2"),
        *((name, "<u8") for name in ("value", "size")),
    ]
)
_SYMBOLS, _INDICES = 2, 18  # SHT_SYMTAB, SHT_SYMTAB_SHNDX
_FUNCTION = 2  # STT_FUNC
_ELSEWHERE = 0xFFFF  # SHN_XINDEX: the section is in a table of its own
_MOST_SECTIONS = 1 << 20
_LARGEST_TABLE = 1 << 28  # bytes
_LONGEST_NAME = 1 << 16


Tick = Callable[[], None]
"""Called again and again by what may take long; may raise to stop it."""


class CubinFunction(NamedTuple):
    """A function: the number of its symbol, its section, and its bytes there.

    ``start`` 0 is a kernel, and all of its section is its own.
    """

    symbol: int
    section: str
    start: int
    size: int


def find_functions(file: int, wanted: Iterable[str], tick: Tick) -> dict[str, CubinFunction]:
    """Find those of the ``wanted`` functions that the cubin open as ``file`` has, by name.

    Each of them calls ``tick``, which may raise to stop it. Raises InputError where it is no cubin,
    or its tables are damaged.
    """
    try:
        return dict(_find_functions(_ElfTables(file), wanted, tick))
    except (struct.error, ValueError, IndexError, OverflowError):
        raise InputError("a damaged cubin: its tables cannot be read") from None


class _ElfTables:
    """The sections of an ELF file, and their bytes."""

    def __init__(self, file: int) -> None:
        self._file = file
        head = os.pread(file, _HEADER.size, 0)
        ident, _, machine, _, _, _, place, _, _, _, _, size, number, names = _HEADER.unpack(head)
        if not ident.startswith(_ELF64_LITTLE) or machine != _CUDA:
            raise InputError("no cubin")
        if size != _SECTION.itemsize:
            raise ValueError(size)
        first = np.frombuffer(self._read(place, size), _SECTION)[0]
        # Where there are too many for the header, the first section says how many.
        number = number or min(int(first["size"]), _MOST_SECTIONS)
        names = int(first["link"]) if names == _ELSEWHERE else names
        self.sections = np.frombuffer(self._read(place, number * size), _SECTION)
        self._names = self.content(self.sections[names])

    def _read(self, place: int, size: int) -> bytes:
        """Read the bytes at ``place``, as many as the file has: no memory for what it only says."""
        if size > _LARGEST_TABLE:
            raise ValueError(size)
        there = max(min(size, os.fstat(self._file).st_size - place), 0)
        return os.pread(self._file, there, place) if there else b""

    def content(self, section: Any) -> bytes:
        """Read the bytes of a section that is a table."""
        return self._read(int(section["offset"]), int(section["size"]))

    def name(self, section: int) -> str:
        """Return the name of the section with this number."""
        at = int(self.sections[section]["name"])
        return self._names[at : at + _LONGEST_NAME].partition(b"\0")[0].decode("utf-8", "replace")

    def of_type(self, kind: int) -> Iterator[Any]:
        """Return the sections of a type."""
        return iter(self.sections[self.sections["type"] == kind])

    def table(self, section: Any, dtype: Any) -> Any:
        """Read the rows in a section."""
        data = self.content(section)
        size = np.dtype(dtype).itemsize
        return np.frombuffer(data[: len(data) // size * size], dtype)


def _find_functions(
    tables: _ElfTables, wanted: Iterable[str], tick: Tick
) -> Iterator[tuple[str, CubinFunction]]:
    for section in tables.of_type(_SYMBOLS):
        symbols = tables.table(section, _SYMBOL)
        sections = _symbol_sections(tables, symbols)
        rows = np.flatnonzero((symbols["info"] & 0xF == _FUNCTION) & (sections > 0))
        names = tables.content(tables.sections[int(section["link"])])
        for name in wanted:
            tick()
            for row in rows[np.isin(symbols["name"][rows], _name_places(names, name))][:1].tolist():
                yield name, _build_function(tables, symbols[row], int(sections[row]), row)


def _symbol_sections(tables: _ElfTables, symbols: Any) -> Any:
    """Return the number of every symbol's section."""
    sections = symbols["section"].astype(np.int64)
    for section in tables.of_type(_INDICES):
        other = tables.table(section, "<u4")[: len(sections)]
        sections[: len(other)] = np.where(
            sections[: len(other)] == _ELSEWHERE, other, sections[: len(other)]
        )
    return np.where(sections < len(tables.sections), sections, 0)


def _name_places(names: bytes, name: str) -> list[int]:
    """Return where ``name`` stands among ``names``, which end with a zero each."""
    wanted, places = name.encode("utf-8", "surrogateescape") + b"\0", []
    at = names.find(wanted)
    while at >= 0:
        places.append(at)
        at = names.find(wanted, at + 1)
    return places


def _build_function(tables: _ElfTables, symbol: Any, section: int, row: int) -> CubinFunction:
    start = int(symbol["value"]) - int(tables.sections[section]["address"])
    if start < 0:
        raise ValueError(start)
    return CubinFunction(row, tables.name(section), start, int(symbol["size"]))
