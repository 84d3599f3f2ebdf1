"""Find frames by a pattern that users type, whatever kernels are called at the moment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.columns import I8
from flame.core.model.frames import FrameTable, Kind
from flame.core.projection.labels import Naming, labels_of_frames
from flame.core.regex import find_matching

_SHORT = Naming("short")


def matching_frames(
    table: FrameTable,
    text: Sequence[str],
    frames: I8,
    pattern: re.Pattern[str],
    exact: bool = False,
) -> list[int]:
    """Find those of ``frames`` that ``pattern`` matches; ``table`` calls them by ``text``.

    A kernel is matched by the name that is shown, by its short name, and by its base name: what
    was written for one of them goes on to match when others are shown. With ``exact`` the name that
    is shown counts alone.
    """
    found = find_matching(text, frames, pattern)
    if exact:
        return found
    kernels = frames[table.kind[frames] == Kind.KERNEL]
    missed: list[int] = kernels[~np.isin(kernels, found)].tolist()
    return found + [frame for frame in missed if any(map(pattern.search, _names(table, frame)))]


def _names(table: FrameTable, kernel: int) -> Iterator[str]:
    """The names of a kernel that do not depend on which are shown."""
    yield table[kernel].name
    yield labels_of_frames(table, _SHORT).text[kernel]
