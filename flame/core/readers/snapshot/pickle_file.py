"""Read the objects of a snapshot: a pickle that has been checked, or JSON; packed or not."""

from __future__ import annotations

import io
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from flame.core.errors import InputError
from flame.core.load_progress import LoadPart
from flame.core.memory import within_memory
from flame.core.options import Progress, silent
from flame.core.readers.shared.deep_json import decode_json
from flame.core.readers.shared.packed_files import open_binary
from flame.core.readers.snapshot.pickle_check import check_pickle

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PIECE = 1 << 25
"""Bytes that are read at once: from so many on what is let go goes back to the system."""

_COUNTED = 1 << 20
_AT_ONCE = 1 << 16
"""Bytes that are unpickled before anything else is heard of: a millisecond."""

_PER_BYTE = 2
"""Bytes of memory that a byte of a file takes at least, itself included."""

_BESIDE = {
    **dict.fromkeys(b"su", 120),
    **dict.fromkeys(b"}]{[\x86", 72),
    **dict.fromkeys(b"\x8cX", 64),
    **dict.fromkeys(b"M\x8aJG", 40),
    **dict.fromkeys(b'NK\x88\x89\x94"', 16),
    **dict.fromkeys(b"h(,", 8),
}
"""Bytes that an object or a place takes besides, by the byte that makes it: items of dictionaries;
empty lists and dictionaries, pairs; texts; numbers; what is there already, and its place."""


class SnapshotObjects(NamedTuple):
    """Hold what a file holds, and its ``size`` in bytes, unpacked."""

    root: object
    size: int


def read_objects(path: Path, progress: Progress) -> SnapshotObjects:
    """Read the objects in the file at ``path``. Raises InputError where that is none of these."""
    pieces = _read_all(path, LoadPart(progress, 0, 0.2))
    data = b"".join(pieces)
    size, is_pickle = len(data), data.startswith(b"\x80")
    if is_pickle:
        check_pickle(data, lambda: progress("checking", 0, 0))
    progress = within_memory(path, memory_needed(data), progress)
    if not is_pickle:
        progress("parsing", 0, 0)
        return SnapshotObjects(_decode(data), size)
    del data  # the pieces are the same, and go as they are read
    return SnapshotObjects(unpickle(pieces, LoadPart(progress, 0.2, 1)), size)


def memory_needed(data: bytes) -> int:
    """Estimate how many bytes of memory the objects in ``data`` take, and itself.

    Bytes are counted, not read: in real snapshots it is a third more than they take.
    """
    beside = np.zeros(256, np.int64)
    beside[list(_BESIDE)] = list(_BESIDE.values())
    view, counts = np.frombuffer(data, np.uint8), np.zeros(256, np.int64)
    for first in range(0, len(view), _COUNTED):
        counts += np.bincount(view[first : first + _COUNTED], minlength=256)
    return _PER_BYTE * len(data) + int(counts @ beside)


def _read_all(path: Path, progress: Progress) -> list[bytes]:
    """Read all of a file, unpacked, in pieces."""
    size, pieces = max(path.stat().st_size, 1), list[bytes]()
    with open_binary(path) as file:
        while piece := file.read(_PIECE):
            pieces.append(piece)
            progress("reading", min(len(pieces) * _PIECE, size), size)
    return pieces


class _Pieces(io.RawIOBase):
    """A file of ``pieces`` of bytes, each of which it lets go once it has been read."""

    def __init__(self, pieces: list[bytes], progress: Progress) -> None:
        self._size, self._done = sum(map(len, pieces)), 0
        self._pieces, self._at = deque(pieces), 0
        pieces.clear()
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill ``buffer`` as far as the first piece goes."""
        if not self._pieces:
            return 0
        self._progress("unpickling", self._done, self._size)
        view = memoryview(buffer)
        part = self._pieces[0][self._at : self._at + len(view)]
        view[: len(part)] = part
        self._at += len(part)
        self._done += len(part)
        if self._at == len(self._pieces[0]):
            self._pieces.popleft()
            self._at = 0
        return len(part)


def _decode(data: bytes) -> object:
    try:
        return decode_json(data)
    except ValueError as error:
        raise InputError(f"is no JSON ({error})") from None


def unpickle(pieces: list[bytes], progress: Progress = silent) -> object:
    """Unpickle ``pieces``, which have been checked, so that nothing is looked up or called.

    They are cleared, and go one by one: what is made of them takes four times as much memory.
    ``progress`` is told, and may raise, several times a second.
    """
    import pickle

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> NoReturn:
            raise InputError(f"it names {module}.{name}")

        def persistent_load(self, pid: object) -> NoReturn:
            raise InputError("it names objects that are elsewhere")

    try:
        with io.BufferedReader(_Pieces(pieces, progress), _AT_ONCE) as file:
            unpickler = Unpickler(file)  # where it is stopped, its objects stay with the error
            return unpickler.load()
    except InputError:
        raise
    except (pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"is damaged ({error})") from None
    except (AttributeError, MemoryError, OverflowError, RecursionError) as error:
        raise InputError(f"is damaged ({type(error).__name__})") from None
