"""Dumps as they are read, and the frames of their activities."""

from __future__ import annotations

from pathlib import Path

from flame.core.loading.many import load
from flame.core.model.frames import Frame
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from tests.support.writers.fdumpfile import DumpFile

SYMBOL = "_ZN4nccl6reduceIfEEvPT_"


def read(file: DumpFile, folder: Path, options: LoadOptions | None = None) -> Profile:
    return load(file.write(folder / "x.fdump"), options)


def stack(profile: Profile, column: str, row: int = 0) -> list[Frame]:
    table = profile.activities
    return [profile.frames[frame] for frame in table.stacks.path(int(getattr(table, column)[row]))]


def names(profile: Profile, column: str, row: int = 0) -> list[str]:
    return [frame.name for frame in stack(profile, column, row)]


def leaf(profile: Profile, row: int = 0) -> Frame:
    return profile.frames[profile.activities.frame[row]]
