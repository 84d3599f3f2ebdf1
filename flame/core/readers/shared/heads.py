"""Read the beginnings of files, by which their formats are recognized."""

from __future__ import annotations

import stat
from pathlib import Path

from flame.core.errors import InputError
from flame.core.readers.shared.packed_files import PackedError, open_binary

_HEAD = 64
_PIECE = 1 << 12


def read_head(path: Path) -> bytes:
    """Read the first bytes of a regular, readable file; InputError for anything else."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: not a regular file; copy it to one first")
        with path.open("rb") as file:
            return file.read(_HEAD)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except PermissionError:
        raise InputError(f"{path}: no permission to read it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read: {reason}") from None


def read_unpacked_head(path: Path, size: int) -> bytes:
    """Read the first ``size`` bytes, unpacked if it is packed; of a damaged file what there is."""
    head = b""
    try:
        with open_binary(path) as file:
            while len(head) < size and (more := file.read(_PIECE)):
                head += more
        return head
    except PackedError as error:
        if head:
            return head
        raise InputError(f"{path}: damaged: {error}; compress or copy it again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
