"""Write columns and what describes them into one file; read them back one by one, each checked.

The file has a prefix of fixed size, two texts (``about``, which is short, and ``head``), and the
columns, each at a multiple of 64 bytes. Columns are read, not mapped: what is missing in a file
that has been cut, or removed by another machine on a network, is an error then and no signal.
"""

from __future__ import annotations

import os
import struct
import weakref
from collections.abc import Callable, Mapping
from typing import Annotated, BinaryIO
from zlib import crc32

import msgspec
import numpy as np

from flame.core.columns import Column

_MAGIC = b"flamecol"
_FORMAT = 1
_PREFIX = struct.Struct("<8sIIQQI")  # magic, format, about, head and all of the file in bytes, CRC
_CRC = struct.Struct("<I")
_ALIGNED = 64
_DTYPES = {"<i4", "<i8", "|u1", "|b1"}
_LONGEST_ABOUT = 1 << 16

_Amount = Annotated[int, msgspec.Meta(ge=0)]


class DamagedError(Exception):
    """Report that a file, or a column in it, is not what was written."""


class _Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a column lies: ``offset`` is from where columns begin, ``length`` a number of items."""

    dtype: str
    offset: _Amount
    length: _Amount
    crc: _Amount


class _Head(msgspec.Struct, frozen=True, array_like=True):
    places: dict[str, _Place]
    content: msgspec.Raw


def write_columns(file: BinaryIO, about: bytes, head: bytes, columns: Mapping[str, Column]) -> None:
    """Write all to a ``file`` that is empty; ``head`` is MessagePack. Raises OSError."""
    places: dict[str, _Place] = {}
    packed = {name: _little(column) for name, column in columns.items()}
    end = 0
    for name, column in packed.items():
        offset = _aligned(end)
        places[name] = _Place(column.dtype.str, offset, len(column), crc32(column.data))
        end = offset + column.nbytes
    whole_head = msgspec.msgpack.encode(_Head(places, msgspec.Raw(head)))
    begin = _aligned(_begin(about, whole_head))
    prefix = _PREFIX.pack(
        _MAGIC, _FORMAT, len(about), len(whole_head), begin + end, crc32(whole_head)
    )
    start = prefix + _CRC.pack(crc32(about, crc32(prefix))) + about + whole_head
    file.write(start.ljust(begin, b"\0"))
    written = 0
    for name, column in packed.items():
        file.write(bytes(places[name].offset - written))
        file.write(column.data)
        written = places[name].offset + column.nbytes


def _little(column: Column) -> Column:
    return np.ascontiguousarray(column.astype(column.dtype.newbyteorder("<"), copy=False))


def _aligned(offset: int) -> int:
    return offset + -offset % _ALIGNED


def _begin(about: bytes, head: bytes) -> int:
    return _PREFIX.size + _CRC.size + len(about) + len(head)


def read_about(file: BinaryIO) -> bytes:
    """Read the text ``about`` of a file of columns; raises DamagedError and OSError."""
    return _read_start(file)[0]


def _read_start(file: BinaryIO) -> tuple[bytes, int, int]:
    """The text ``about``, and the length and the CRC of the head."""
    prefix = _read_at(file, 0, _PREFIX.size + _CRC.size)
    magic, format_, about_size, head_size, size, head_crc = _PREFIX.unpack_from(prefix)
    if magic != _MAGIC or format_ != _FORMAT or size != os.fstat(file.fileno()).st_size:
        raise DamagedError("not a whole file of columns")
    if about_size > _LONGEST_ABOUT or head_size > size:
        raise DamagedError("impossible sizes")
    about = _read_at(file, len(prefix), about_size)
    crc = crc32(about, crc32(prefix[: _PREFIX.size]))
    if crc != _CRC.unpack_from(prefix, _PREFIX.size)[0]:
        raise DamagedError("the beginning is damaged")
    return about, head_size, head_crc


def _read_at(file: BinaryIO, offset: int, size: int) -> bytes:
    """Read from anywhere, beside other threads that do; raises DamagedError where the file ends."""
    parts = []
    while size:
        part = os.pread(file.fileno(), size, offset)  # of Linux no more than 2 GiB at once
        if not part:
            raise DamagedError("cut")
        parts.append(part)
        offset, size = offset + len(part), size - len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class ColumnFile:
    """A file of columns, which is closed when this is not used any more.

    Raises DamagedError and OSError.

    ``content`` is the head that it was written with. ``when_damaged`` is called, once, for a column
    that turns out to be.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        weakref.finalize(self, file.close)
        self.about, size, crc = _read_start(file)
        head = _read_at(file, _PREFIX.size + _CRC.size + len(self.about), size)
        if crc32(head) != crc:
            raise DamagedError("the head is damaged")
        try:
            decoded = msgspec.msgpack.decode(head, type=_Head)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DamagedError(str(error)) from None
        self.content = bytes(decoded.content)
        self._places = decoded.places
        self._begin = _aligned(_begin(self.about, head))
        self._check_places(os.fstat(file.fileno()).st_size - self._begin)
        self.when_damaged: Callable[[], object] = lambda: None

    def _check_places(self, size: int) -> None:
        for place in self._places.values():
            if place.dtype not in _DTYPES:
                raise DamagedError("an unknown kind of column")
            # Small numbers first: these may be of any size.
            most = size // np.dtype(place.dtype).itemsize
            if place.offset > size or place.length > most or self._end(place) > size:
                raise DamagedError("a column that is not in the file")

    @staticmethod
    def _end(place: _Place) -> int:
        return place.offset + place.length * np.dtype(place.dtype).itemsize

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def length(self, name: str) -> int:
        """Return how many items a column has, without reading it."""
        return self._place(name).length

    def _place(self, name: str) -> _Place:
        if name not in self._places:
            raise DamagedError(f"no column {name}")
        return self._places[name]

    def read(self, name: str, dtype: str) -> Column:
        """Read the column called ``name``, which is of ``dtype`` (``i4``, ``i8``, ``u1``, ``b1``).

        It cannot be written to.
        """
        place = self._place(name)
        try:
            return self._checked(place, dtype)
        except DamagedError:
            self.when_damaged()
            raise

    def _checked(self, place: _Place, dtype: str) -> Column:
        if place.dtype[1:] != dtype:
            raise DamagedError("a column of another kind")
        known = np.dtype(place.dtype)
        data = _read_at(self._file, self._begin + place.offset, place.length * known.itemsize)
        if crc32(data) != place.crc:
            raise DamagedError("a column that is not as it was written")
        column: Column = np.frombuffer(data, known) if data else np.zeros(0, known)
        return column.astype(known.newbyteorder("="), copy=False)
