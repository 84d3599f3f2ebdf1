"""Keep to the folders that were named: which traces are in them, and what is outside of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from flame.core.errors import InputError, UsageError

_ENDINGS = (
    *(".sqlite", ".nsys-rep", ".json", ".json.gz", ".flame", ".pickle", ".ncu-rep"),
    *(".folded", ".txt", ".hatchet", ".flamesum"),
)
"""How files are called that may be traces; others open too, by their path."""

_DEEPEST = 4


class FoundTrace(NamedTuple):
    """Say where a file is that may be a trace, and its size in bytes."""

    path: str
    size: int


class Folders:
    """The only folders whose files may be read."""

    def __init__(self, names: Sequence[str]) -> None:
        """Resolve the folders called ``names``; UsageError where one is none."""
        self._roots = [_folder(name) for name in names]

    def find(self, name: str) -> Path:
        """Resolve the file or folder ``name``, also relative to one of the folders.

        InputError where there is none, or it is not in one of them: links do not lead out.
        """
        candidates = [root / name for root in self._roots]
        for candidate in candidates:
            try:
                path = candidate.resolve(strict=True)
            except (OSError, RuntimeError, ValueError):
                continue
            if self._has(path) and (path.is_file() or path.is_dir()):
                return path
        known = ", ".join(map(str, self._roots))
        raise InputError(f"{name}: no such file in {known}")

    def _has(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self._roots)

    def traces(self, most: int) -> list[FoundTrace]:
        """List at most ``most`` files that may be traces, the newest first."""
        found = [one for root in self._roots for one in _walk(root)]
        found.sort(key=lambda entry: -entry.stat().st_mtime_ns)
        return [FoundTrace(str(path), path.stat().st_size) for path in found[:most]]


def _folder(name: str) -> Path:
    try:
        path = Path(name).expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    if not path.is_dir():
        raise UsageError(f"{name}: is no folder")
    return path


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root, followlinks=False):
        path = Path(folder)
        if len(path.relative_to(root).parts) >= _DEEPEST:
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.endswith(_ENDINGS) and not (path / name).is_symlink():
                yield path / name
