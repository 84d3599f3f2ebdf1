"""Read and write the memory of another process, without running or opening anything of it."""

from __future__ import annotations

import errno
import os

_END = 1 << 63


class ProcessMemory:
    """Keep the memory of ``pid`` as it is now: what the process becomes by exec is not reached.

    Used as a context, it is closed in the end. All raise OSError.
    """

    def __init__(self, pid: int) -> None:
        self._file = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)

    def __enter__(self) -> ProcessMemory:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def read(self, address: int, size: int) -> bytes:
        """Read ``size`` bytes."""
        _check_range(address, size)
        data = os.pread(self._file, size, address)
        if len(data) != size:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return data

    def write(self, address: int, data: bytes) -> None:
        """Write ``data``."""
        _check_range(address, len(data))
        if os.pwrite(self._file, data, address) != len(data):
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def _check_range(address: int, size: int) -> None:
    if not 0 <= address <= _END - size:
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
