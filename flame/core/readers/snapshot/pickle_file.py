"""Read the objects of a snapshot: a pickle that has been checked, or JSON; gzipped or not."""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple, NoReturn

from flame.core.errors import InputError
from flame.core.load_progress import LoadPart
from flame.core.memory import within_memory
from flame.core.options import Progress
from flame.core.readers.shared.deep_json import decode_json
from flame.core.readers.shared.gzip_files import open_binary
from flame.core.readers.snapshot.pickle_check import check_pickle

_PIECE = 1 << 24
_PER_BYTE = 4
"""Bytes of memory that a byte of a file takes, besides its lists and dictionaries."""

_PER_CONTAINER = 72
"""Bytes of an empty list or dictionary, which is one byte of a pickle."""


class SnapshotObjects(NamedTuple):
    """Hold what a file holds, and its ``size`` in bytes, unpacked."""

    root: object
    size: int


def read_objects(path: Path, progress: Progress) -> SnapshotObjects:
    """Read the objects in the file at ``path``. Raises InputError where that is none of these."""
    data = _read_all(path, LoadPart(progress, 0, 0.3))
    if not data.startswith(b"\x80"):
        return SnapshotObjects(_decode(data), len(data))
    check_pickle(data)
    containers = data.count(b"}") + data.count(b"]")
    need = _PER_BYTE * len(data) + _PER_CONTAINER * containers
    within_memory(path, need, progress)("unpickling", 0, 0)
    return SnapshotObjects(_unpickle(data), len(data))


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


def _unpickle(data: bytes) -> object:
    """Unpickle what has been checked, so that nothing in it is looked up or called."""
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
    except (AttributeError, MemoryError, RecursionError) as error:
        raise InputError(f"is damaged ({type(error).__name__})") from None
