"""Convert Nsight Systems reports (``.nsys-rep``, ``.qdrep``) with the user's own nsys."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TypeVar

from flame.core.options import Progress
from flame.core.readers.shared.conversion import Converted, Reading
from flame.core.readers.shared.converter import Converter
from flame.core.readers.shared.unpacking import Unpacking
from flame.core.readers.signs.nsys import SUFFIXES

T = TypeVar("T")


def read_by_export(
    path: Path, progress: Progress, read: Reading[T], *, cache: bool = True
) -> Converted[T]:
    """Convert the report at ``path`` by ``nsys export`` and ``read`` that; as `Converter`."""
    return _NSYS.read(path, progress, read, cache=cache)


def read_by_unpacking(
    path: Path, progress: Progress, read: Reading[T], *, cache: bool = True
) -> Converted[T]:
    """Unpack the export at ``path`` and ``read`` that; as `Unpacking`."""
    return _UNPACKED.read(path, progress, read, cache=cache)


def _export_command(path: Path, made: Path) -> list[str]:
    options = ["--type=sqlite", "--force-overwrite=true", f"--output={made}"]
    return ["export", *options, str(path)]


def _user_command(path: Path) -> str:
    """Return the command that does the same, for the user to run."""
    written = path.with_suffix(".sqlite") if path.suffix.lower() in SUFFIXES else f"{path}.sqlite"
    return shlex.join(["nsys", "export", "--type", "sqlite", "-o", str(written), str(path)])


_NSYS = Converter("nsys", "an Nsight Systems report", _export_command, _user_command, ".sqlite")
_UNPACKED = Unpacking(".sqlite")
STAGE = _NSYS.stage
