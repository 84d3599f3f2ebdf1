"""Tell how far the reading of many files is."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from flame.core.options import Progress
from flame.core.ranks.job import RankFile
from flame.core.units import format_bytes


class RankMeter:
    """Adds up how far files are, which are weighed by size, and reports it to ``progress``.

    Any thread may note; `tell` is called by one.
    """

    def __init__(self, files: Sequence[RankFile], progress: Progress) -> None:
        self._progress = progress
        self._files = len(files)
        self._whole = sum(map(_weight, files))
        self._lock = Lock()
        self._share: dict[RankFile, float] = {}
        self._ended: set[RankFile] = set()
        self._done = 0
        self._waits = ""

    def note(self, file: RankFile, share: float) -> None:
        """Note that ``share`` of a file, 0 to 1, has been read."""
        with self._lock:
            self._share[file] = max(share, self._share.get(file, 0.0))

    def end(self, file: RankFile) -> None:
        """Note that a file has been read, or will never be."""
        with self._lock:
            self._share.pop(file, None)
            if file not in self._ended:
                self._ended.add(file)
                self._done += _weight(file)

    def say(self, text: str) -> None:
        """Note what all wait for, '' for nothing."""
        self._waits = text

    def tell(self) -> None:
        """Report: ranks that are done, bytes and of how many."""
        with self._lock:
            begun = sum(share * _weight(file) for file, share in self._share.items())
        done = min(self._done + int(begun), self._whole)
        amount = f"{format_bytes(done)} of {format_bytes(self._whole)}"
        text = f"reading {self._files} files: {len(self._ended)} done, {amount}"
        self._progress(f"{text}; {self._waits}" if self._waits else text, done, self._whole)


def _weight(file: RankFile) -> int:
    return max(file.size, 1)
