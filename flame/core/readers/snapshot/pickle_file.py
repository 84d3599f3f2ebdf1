"""Read the objects of a snapshot: a pickle that has been checked, or JSON; packed or not."""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from flame.core.errors import InputError
from flame.core.load_progress import LoadPart
from flame.core.memory import within_memory
from flame.core.options import Progress
from flame.core.readers.shared.deep_json import decode_json
from flame.core.readers.shared.packed_files import open_binary
from flame.core.readers.snapshot.pickle_check import check_pickle

_PIECE = 1 << 22
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
    data = _read_all(path, LoadPart(progress, 0, 0.3))
    is_pickle = data.startswith(b"\x80")
    if is_pickle:
        check_pickle(data)
    within_memory(path, memory_needed(data), progress)(
        "unpickling" if is_pickle else "parsing", 0, 0
    )
    return SnapshotObjects(unpickle(data) if is_pickle else _decode(data), len(data))


def memory_needed(data: bytes) -> int:
    """Estimate how many bytes of memory the objects in ``data`` take, and itself.

    Bytes are counted, not read: in real snapshots it is a third more than they take.
    """
    beside = np.zeros(256, np.int64)
    beside[list(_BESIDE)] = list(_BESIDE.values())
    view, counts = np.frombuffer(data, np.uint8), np.zeros(256, np.int64)
    for first in range(0, len(view), _PIECE):
        counts += np.bincount(view[first : first + _PIECE], minlength=256)
    return _PER_BYTE * len(data) + int(counts @ beside)


def _read_all(path: Path, progress: Progress) -> bytes:
    size, pieces, done = max(path.stat().st_size, 1), list[bytes](), 0
    with open_binary(path) as file:
        while piece := file.read(_PIECE):
            pieces.append(piece)
            done += len(piece)
            progress("reading", min(done, size), size)
    return b"".join(pieces)


def _decode(data: bytes) -> object:
    try:
        return decode_json(data)
    except ValueError as error:
        raise InputError(f"is no JSON ({error})") from None


def unpickle(data: bytes) -> object:
    """Unpickle ``data``, which has been checked, so that nothing in it is looked up or called."""
    import pickle

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> NoReturn:
            raise InputError(f"it names {module}.{name}")

        def persistent_load(self, pid: object) -> NoReturn:
            raise InputError("it names objects that are elsewhere")

    try:
        return Unpickler(io.BytesIO(data)).load()
    except InputError:
        raise
    except (pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"is damaged ({error})") from None
    except (AttributeError, MemoryError, OverflowError, RecursionError) as error:
        raise InputError(f"is damaged ({type(error).__name__})") from None
