"""Turn the entries of a device's history into columns: many at once where they are alike.

A history has half a million entries in 100 MB. Those that a recent PyTorch has written have all
the same keys, and then C takes them apart, 3 times as fast; where one is odd, each of the piece is
looked at by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from flame.core.columns import I8
from flame.core.model.allocator.history import AllocatorAction
from flame.core.readers.snapshot.frame_lists import FrameLists
from flame.core.readers.snapshot.values import (
    Values,
    amounts,
    columns,
    is_amount,
    time_in_ns,
    times_in_ns,
)

ACTIONS = {
    "alloc": AllocatorAction.ALLOC,
    "free_requested": AllocatorAction.FREE,
    "free_completed": AllocatorAction.FREED,
    "segment_alloc": AllocatorAction.SEGMENT_ALLOC,
    "segment_free": AllocatorAction.SEGMENT_FREE,
    "segment_map": AllocatorAction.SEGMENT_MAP,
    "segment_unmap": AllocatorAction.SEGMENT_UNMAP,
    "oom": AllocatorAction.OUT_OF_MEMORY,
    "snapshot": AllocatorAction.SNAPSHOT,
}
_WITH_ADDRESS = ACTIONS.keys() - {"oom"}
_FIELDS = itemgetter("action", "addr", "size", "stream", "time_us", "frames")
_PIECE = 1 << 14
WIDTH = 8


class Entries:
    """Reads entries; counts what makes no sense (``left_out``) and ``unknown`` actions."""

    def __init__(self, lists: FrameLists) -> None:
        self.unknown: Counter[str] = Counter()
        self.left_out = 0
        self._lists = lists

    def read(self, device: int, trace: Sequence[Any]) -> Iterator[I8]:
        """Read the history of a device, in pieces: i8[`WIDTH`, entries] each.

        The columns are those of `AllocatorEvents`, with the number of a list of frames for stacks.
        """
        for first in range(0, len(trace), _PIECE):
            piece = trace[first : first + _PIECE]
            found = self._alike(device, first, piece)
            yield self._each(device, first, piece) if found is None else found

    def _alike(self, device: int, first: int, piece: Sequence[Any]) -> I8 | None:
        """The columns of a piece; None where an entry is not as most are."""
        if set(map(type, piece)) != {dict}:
            return None
        try:
            action, *others, time, frames = zip(*map(_FIELDS, piece), strict=True)
        except KeyError:
            return None
        if set(map(type, action)) != {str} or not _WITH_ADDRESS.issuperset(action):
            return None
        found = [*map(amounts, others), times_in_ns(time)]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        size, lists = len(piece), map(self._lists.number, frames)
        place = np.full(size, device, np.int64), np.arange(first, first + size, dtype=np.int64)
        kind = np.fromiter(map(ACTIONS.__getitem__, action), np.int64, size)
        return np.stack([*place, kind, *known, np.fromiter(lists, np.int64, size)])

    def _each(self, device: int, first: int, piece: Sequence[Any]) -> I8:
        rows = list[Values]()
        for position, entry in enumerate(piece, first):
            found = self._entry(entry) if isinstance(entry, dict) else None
            if found is None:
                self.left_out += 1
            else:
                rows.append((device, position, *found))
        return columns(rows, WIDTH)

    def _entry(self, entry: Mapping[str, Any]) -> Values | None:
        name = entry.get("action")
        action = ACTIONS.get(name) if isinstance(name, str) else None
        if action is None:
            self.unknown[name if isinstance(name, str) else type(name).__name__] += 1
            return None
        address = entry.get("device_free" if action == AllocatorAction.OUT_OF_MEMORY else "addr", 0)
        size, stream = entry.get("size", 0), entry.get("stream", 0)
        if not (is_amount(address) and is_amount(size) and is_amount(stream)):
            return None
        frames = self._lists.number(entry.get("frames"))
        return action, address, size, stream, time_in_ns(entry.get("time_us")), frames
