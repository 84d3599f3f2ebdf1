"""Source lines of instructions: from the report that has them, or else from the file itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from flame.core.model.pc_samples import Code

MOST_BYTES = 8_000_000
"""What is longer was hardly written by hand; it is not read."""

_MOST_LINES = 200_000
_TAB = 4


@dataclass
class Sources:
    """The source lines of ``code``; a file is read once, when a line of it is first asked for."""

    code: Code
    _read: dict[int, list[str]] = field(init=False, default_factory=dict)

    def name(self, file: int) -> str:
        """The name of ``file`` (an index into ``code.files``) without its folders."""
        return self.code.files[file].replace("\\", "/").rpartition("/")[2]

    def text(self, file: int, line: int) -> str | None:
        """Line ``line`` (from 1) of ``file``, as it stands there; None if it is not to be had."""
        known = self.code.source.get((file, line))
        if known is not None:
            return known.strip("\r\n").expandtabs(_TAB)
        if file not in self._read:
            self._read[file] = lines_of(self.code.files[file])
        lines = self._read[file]
        return lines[line - 1].expandtabs(_TAB) if 0 < line <= len(lines) else None


def lines_of(name: str) -> list[str]:
    """The lines of the file ``name`` on this machine; none if it is absent, too long or no text."""
    try:
        # What is not a plain file may never end, and what says it is empty may wait (/proc).
        path = Path(name)
        if not path.is_file() or not 0 < path.stat().st_size <= MOST_BYTES:
            return []
        with path.open(encoding="utf-8", errors="replace", newline=None) as file:
            return [line.rstrip("\n") for line in islice(file, _MOST_LINES)]
    except (OSError, ValueError):
        return []
