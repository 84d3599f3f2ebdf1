"""Read a file through a window that moves on: bounded memory, however long the file."""

from __future__ import annotations

from pathlib import Path

from flame.core.options import Progress
from flame.core.readers.shared.packed_files import (
    CUT_OFF,
    DAMAGED,
    PackedError,
    UnpackedFile,
    open_binary,
    raw_position,
)

PIECE = 1 << 20
"""As fast as more, which would only take memory and keep a progress bar waiting."""


class FileStream:
    """The bytes from ``offset`` (in the unpacked file) on in ``window``; ``at`` is a place in it.

    ``stage`` is what progress calls the reading, ``piece`` the number of bytes read at a time.
    ``damage`` says why a compressed file could not be read to its end, where it could not, and
    ``detail`` as much as is known of that.
    """

    def __init__(self, path: Path, progress: Progress, stage: str, piece: int = PIECE) -> None:
        self.piece = piece
        self.window = b""
        self.at = 0
        self.offset = 0
        self.damage = self.detail = ""
        self.ended = False
        self._progress = progress
        self._stage = stage
        self._size = path.stat().st_size
        self._file = open_binary(path)
        self.packed = isinstance(self._file, UnpackedFile)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def position(self) -> int:
        """The place of ``at`` in the unpacked file."""
        return self.offset + self.at

    def ensure(self, size: int) -> bool:
        """Read until ``size`` bytes from ``at`` on are there, or as many as the file still has."""
        if len(self.window) - self.at < size and not self.ended:
            self._read(size)
        return len(self.window) - self.at >= size

    def _read(self, size: int) -> None:
        """Move the window to ``at`` and fill it up to ``size``."""
        parts = [self.window[self.at :]]
        have = len(parts[0])
        while have < size and not self.ended:
            parts.append(self._chunk(max(size - have, self.piece)))
            have += len(parts[-1])
            self.ended = not parts[-1]
        self.window = b"".join(parts)
        self.offset, self.at = self.offset + self.at, 0
        self.report_progress()

    def report_progress(self) -> None:
        """Report how far the file has been read; what the callback raises stops reading."""
        self._progress(self._stage, min(raw_position(self._file), self._size), self._size)

    def _chunk(self, size: int) -> bytes:
        """Read the next bytes, at most ``size``; none at the end or where the file is damaged."""
        try:
            # One step of decompression at a time: what came before damage is not lost.
            return self._file.read1(size)  # type: ignore[attr-defined, no-any-return]
        except PackedError as error:
            self.damage = CUT_OFF if error.reason == CUT_OFF else DAMAGED
            self.detail = str(error)
        return b""

    def double(self) -> bool:
        """Double what is there from ``at`` on; return False at the end of the file."""
        before = len(self.window) - self.at
        self.ensure(2 * max(before, self.piece))
        return len(self.window) - self.at > before
