"""Read a memory snapshot file of PyTorch."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from flame.core.errors import CancelledError, InputError
from flame.core.load_progress import LoadPart
from flame.core.model.allocator.history import AllocatorHistory
from flame.core.model.meta import Meta
from flame.core.options import LoadOptions, Progress
from flame.core.readers.shared.packed_files import PackedError
from flame.core.readers.snapshot.document import read_history
from flame.core.readers.snapshot.pickle_file import read_objects


@contextmanager
def _no_collection() -> Iterator[None]:
    """Have no garbage collected: it would look through all objects of the file again and again.

    Where the load is stopped, the error keeps them: nothing that is there then is looked through.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    except CancelledError:
        gc.freeze()
        raise
    finally:
        if enabled:
            gc.enable()


class SnapshotFile(NamedTuple):
    """Hold what a snapshot file has recorded."""

    history: AllocatorHistory
    meta: Meta


def _read(path: Path, progress: Progress) -> AllocatorHistory:
    """Read the history; the objects of the file, which it was made of, are gone afterwards."""
    root, size = read_objects(path, LoadPart(progress, 0, 0.5))
    return read_history(root, size, LoadPart(progress, 0.5, 1))


def read_snapshot(path: Path, options: LoadOptions, progress: Progress) -> SnapshotFile:
    """Read the snapshot at ``path``; InputError where it is none, or is damaged."""
    try:
        with _no_collection():
            history = _read(path, progress)
    except InputError as error:
        raise InputError(f"{path}: memory snapshot: {error}") from None
    except PackedError as error:
        raise InputError(f"{path}: damaged: {error}; compress or copy it again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    meta = Meta(path=str(path), format="memory snapshot", producer="PyTorch")
    return SnapshotFile(history, meta)
