"""Live recordings: dumps that grow, read and added up as they do, and snapshots of them."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from flame.core.errors import InputError
from flame.core.frames import NO_LAUNCH, Frame, Kind
from flame.core.live import rates
from flame.core.live.groups import HostGroups, WorkGroups
from flame.core.live.lexicon import Lexicon
from flame.core.live.liveness import Liveness
from flame.core.live.snapshot import Pictures, Snapshot
from flame.core.live.source import LiveSource
from flame.core.live.spans import SpanStore
from flame.core.live.status import SourceStatus, State, Status
from flame.core.live.store import Store
from flame.core.live.sums import WindowSums
from flame.core.live.window import LONGEST, SECOND, Window
from flame.core.live.work import WorkSegment
from flame.core.marks import Joiner
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import Bytes, named
from flame.core.readers.fdump.growing import Growing
from flame.core.readers.fdump.shared import Shared

MOST_ROWS = 4_000_000
"""Activities that are kept, and calls and ranges: with more the windows are shorter."""


def monotonic() -> int:
    """The clock that dumps keep, ns."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Feed:
    """Follows the dumps that are added to it. Used by one thread; snapshots by any.

    ``clock`` gives the time, ns of CLOCK_MONOTONIC.
    """

    def __init__(self, options: LoadOptions, clock: Callable[[], int] = monotonic) -> None:
        self._options = options
        self._clock = clock
        self._shared = Shared()
        self._lexicon = Lexicon(self._shared)
        self._work = WorkGroups(Joiner(self._shared.frames, self._shared.stacks))
        self._host = HostGroups()
        self._no_launch = self._shared.frames.add(Frame(Kind.LAUNCH, NO_LAUNCH))
        self._sources: list[LiveSource] = []
        self._turns: deque[LiveSource] = deque()
        self._files: set[tuple[int, int]] = set()
        self._version = 0
        self._sums = WindowSums(self._clock())
        self._pictures = Pictures(self._lexicon, self._work, self._host)

    @property
    def sources(self) -> tuple[Growing, ...]:
        """The dumps, in the order in which they were added."""
        return tuple(one.growing for one in self._sources)

    def add(self, path: Path, fd: int | None = None) -> None:
        """Follow the dump at ``path``, or that open as ``fd``; one that is followed already is not.

        InputError where it is no dump (yet).
        """
        with named(path):
            data = Bytes(path, fd)
        file = data.identity
        if file in self._files:
            data.close()
            return
        growing = Growing(data, str(path), len(self._sources), self._shared, self._options)
        store = Store(self._work, growing.process, self._no_launch)
        spans = SpanStore(self._host, growing.process, self._lexicon.parents)
        self._files.add(file)
        self._sources.append(LiveSource(growing, store, spans, Liveness(file[1])))
        self._turns.append(self._sources[-1])

    def close(self) -> None:
        """Let go of all files."""
        for one in self._sources:
            one.growing.close()
        self._turns.clear()
