"""Find frames by a pattern that users type, and the activities that have such frames."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.model.activities import Activities
from flame.core.model.frames import FrameTable, Kind
from flame.core.regex import Limit, find_matching, fits


def matching_frames(
    table: FrameTable,
    text: Sequence[str],
    frames: I8,
    pattern: re.Pattern[str],
    exact: bool = False,
) -> list[int]:
    """Find those of ``frames`` that ``pattern`` matches; ``table`` calls them by ``text``.

    A kernel is matched by the name that is shown and by its base name: ``reduce_kernel`` finds
    ``reduce<MeanOps>``. With ``exact`` the name that is shown counts alone.
    UsageError where that takes too long.
    """
    found = find_matching(text, frames, pattern)
    if exact:
        return found
    kernels = frames[table.kind[frames] == Kind.KERNEL]
    missed: list[int] = kernels[~np.isin(kernels, found)].tolist()
    limit = Limit()
    return found + [kernel for kernel in missed if fits(pattern, table[kernel].name, limit)]


def groups_with(table: Activities, marks: Bool) -> Bool:
    """Tell which groups of ``table`` have a frame of ``marks`` on their path, bool[groups].

    ``marks`` is bool[frames].
    """
    groups, within = table.groups, table.stacks.contain_any(marks)
    found: Bool = within[groups.python] | within[groups.nvtx] | within[groups.native]
    found |= within[groups.stack]
    marked = np.append(marks, False)
    found |= marked[groups.frame] | marked[groups.launch]
    return found
