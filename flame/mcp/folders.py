"""Keep to the folders that were named: which traces are in them, and what is outside of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from flame.core.errors import InputError, UsageError
from flame.core.loading.search import FolderSearch, FoundTrace
from flame.core.readers.fdump.folder import is_recording
from flame.core.shown_text import cut

_MOST_LOOKS = 5_000
"""Files and folders that are looked at in each folder."""

_LONGEST_NAME = 200


class FoundTraces(NamedTuple):
    """Hold the traces that were found; ``more`` says that there are, or may be, others."""

    traces: list[FoundTrace]
    more: bool


class Folders:
    """The only folders whose files may be read."""

    def __init__(self, names: Sequence[str]) -> None:
        """Resolve the folders called ``names``; UsageError where one is none."""
        self._roots = [_folder(name) for name in names]

    def find(self, name: str) -> Path:
        """Resolve the file or recording ``name``, also relative to one of the folders.

        InputError where there is none, or it is not in one of them: links do not lead out, nor do
        those of which a recording consists.
        """
        for root in self._roots:
            try:
                path = (root / name).resolve(strict=True)
            except (OSError, RuntimeError, ValueError):
                continue
            if self._has(path) and (path.is_file() or path.is_dir()):
                self._check_recording(path)
                return path
        known = ", ".join(map(str, self._roots))
        raise InputError(f"{cut(name, _LONGEST_NAME)}: no such file in {known}")

    def _check_recording(self, folder: Path) -> None:
        """Raise InputError for a folder that is no recording, or has a link that leads out."""
        if not folder.is_dir():
            return
        if not is_recording(folder):
            raise InputError(f"{folder}: is a folder with no dump (*.fdump) in it: name a trace")
        try:
            links = [entry for entry in folder.iterdir() if entry.is_symlink()]
            out = [link for link in links if not self._has(link.resolve())]
        except (OSError, RuntimeError) as error:
            raise InputError(f"{folder}: cannot be read: {error}") from None
        if out:
            raise InputError(f"{out[0]}: is a link that leads out of {folder}")

    def _has(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self._roots)

    def traces(self, most: int) -> FoundTraces:
        """List at most ``most`` traces, the newest first. No link is followed."""
        searches = [FolderSearch(root, _MOST_LOOKS, links=False) for root in self._roots]
        found = {one.paths: one for search in searches for one in search.looks() if one}
        newest = sorted(found.values(), key=lambda one: (-one.modified, one.paths))
        more = len(newest) > most or any(search.cut for search in searches)
        return FoundTraces(newest[:most], more)


def _folder(name: str) -> Path:
    try:
        path = Path(name).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    if not path.is_dir():
        raise UsageError(f"{name}: is no folder")
    return path
