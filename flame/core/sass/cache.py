"""Cache instructions that nvdisasm has printed, by the content of the cubin."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from flame.core.external import cache_folder
from flame.core.model.pc_samples import Code
from flame.core.sass.code_files import read_codes, write_codes

_FOLDER = "sass"
_SUFFIX = ".sass"
_MOST = 2_000
"""Files: some hundred megabytes, of dozens of programs."""


class CodeCache:
    """The cached code of the cubin open as ``cubin``, by nvdisasm of this ``version``."""

    def __init__(self, cubin: BufferedReader, version: str) -> None:
        cubin.seek(0)
        content = hashlib.file_digest(cubin, "sha256").hexdigest()
        self._version = version
        self._name = f"{content[:32]}-{version}{_SUFFIX}"

    def read(self) -> dict[str, Code]:
        """Read the code of functions by name; nothing where none is kept."""
        with suppress(OSError, RuntimeError), _open_folder() as folder:
            return read_codes(folder, self._name)
        return {}

    def write(self, codes: Mapping[str, Code]) -> None:
        """Write ``codes``, where there is a place for them."""
        with suppress(OSError, RuntimeError):
            _folder_path().mkdir(mode=0o700, parents=True, exist_ok=True)
            with _open_folder() as folder:
                write_codes(folder, self._name, self._version, codes)
                _remove_oldest(folder)


def _folder_path() -> Path:
    """Return the cache folder; RuntimeError where nobody's home is known."""
    return cache_folder() / _FOLDER


@contextmanager
def _open_folder() -> Iterator[int]:
    folder = os.open(_folder_path(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)


def _remove_oldest(folder: int) -> None:
    with os.scandir(folder) as entries:
        known = [(entry.stat().st_mtime_ns, entry.name) for entry in entries]
    for _, name in sorted(known)[:-_MOST]:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
