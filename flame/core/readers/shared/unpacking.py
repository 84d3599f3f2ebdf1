"""Unpack files whose readers seek in them, such as databases; the cache keeps the results."""

from __future__ import annotations

from pathlib import Path
from shutil import disk_usage

from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.options import Progress
from flame.core.readers.shared.conversion import Conversion
from flame.core.readers.shared.packed_files import PackedError, open_binary, raw_position
from flame.core.units import format_bytes

_PIECE = 1 << 20
_LEFT = 10
"""The part of a disk that stays free."""


@dataclass(frozen=True)
class Unpacking(Conversion):
    """Unpack files to ones with a ``suffix``."""

    suffix: str

    @property
    def stage(self) -> str:
        """The stage that progress is reported for."""
        return "unpacking"

    @property
    def way(self) -> str:
        """What is asked for, as a name."""
        return "unpacked"

    @property
    def maker(self) -> str:
        """What unpacks makes no difference."""
        return ""

    def make(self, path: Path, folder: Path, progress: Progress) -> Path:
        """Unpack into ``folder``; InputError where the file is damaged or the disk full."""
        made = folder / f"unpacked{self.suffix}"
        size = path.stat().st_size
        try:
            with open_binary(path) as packed, made.open("wb") as file:
                while piece := packed.read(_PIECE):
                    _refuse_full_disk(path, folder, len(piece))
                    file.write(piece)
                    progress(self.stage, raw_position(packed), size)
        except PackedError as error:
            raise InputError(f"{path}: damaged: {error}; compress or copy it again") from None
        return made


def _refuse_full_disk(path: Path, folder: Path, more: int) -> None:
    total, _, free = disk_usage(folder)
    if free - more < total // _LEFT:
        left = f"only {format_bytes(free)} are left on the disk of {folder.parent}"
        raise InputError(f"{path}: too large to unpack: {left}")
