"""What all parts of the reader share: the vocabulary, threads, GPUs, and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.columns import I4, I8, Bool, Column
from flame.core.frames import FrameBuilder
from flame.core.options import LoadOptions, Progress
from flame.core.profile import NONE
from flame.core.readers import cupti
from flame.core.readers.fdump.chunks import AT_ONCE, Records
from flame.core.readers.fdump.ids import Numbers
from flame.core.readers.fdump.layout import Header
from flame.core.readers.fdump.names import Vocabulary
from flame.core.readers.fdump.stacks import Stacks

# A range may have been opened by the process that this one was forked from. Nothing is recorded for
# a hundred days, though, and the time lines of all threads must fit 62 bits.
_LONGEST = 1 << 53
_31_BITS = 0x7FFFFFFF


class Context:
    """State of one load. Times are ns since the recording began."""

    def __init__(
        self,
        header: Header,
        records: Records,
        vocabulary: Vocabulary,
        stacks: Stacks,
        options: LoadOptions,
        progress: Progress,
    ) -> None:
        self.records = records
        self.vocabulary = vocabulary
        self.options = options
        self.frames: FrameBuilder = vocabulary.frames
        self.stacks = stacks
        self.threads = Numbers()
        self.devices = Numbers()
        self.last_time = 0
        self.notes: list[str] = []
        self.untimed: Counter[str] = Counter()
        self._start = header.start_monotonic
        self._end = header.end_monotonic
        self._progress = progress
        self._expected = 0
        self._done = 0

    def expect(self, keys: Sequence[str]) -> None:
        """Add the chunks with records of these kinds to what the progress counts up to."""
        self._expected += sum(len(self.records.chunks(key)) for key in keys)

    def columns(self, stage: str, key: str, names: Sequence[str]) -> Iterator[dict[str, I8]]:
        """As of `Records`; progress is reported, which may raise CancelledError."""
        for piece in self.records.columns(key, names):
            yield piece
            self._done += AT_ONCE
            self._progress(stage, min(self._done, self._expected), self._expected)

    def thread(self, tids: Column) -> I4:
        """Numbers of threads; -1 for 0, which is none."""
        return self.threads(np.where(tids == 0, NONE, tids & _31_BITS))

    def times(self, column: I8) -> tuple[I8, Bool]:
        """Recorded times, and which of them are any: neither absent nor absurd."""
        since = column - self._start
        known = (column > 0) & (np.abs(since) < _LONGEST)
        self.last_time = max(self.last_time, int(since[known].max(initial=0)))
        return since, known

    def reach_end(self) -> None:
        """Let the recording last until it was ended, or last seen to go on."""
        self.times(np.array([self._end]))

    def spans(self, what: str, start: I8, end: I8) -> tuple[I8, I8]:
        """Starts and ends of ``what``; one that is missing is taken from the other: 0 ns."""
        (start, started), (end, ended) = self.times(start), self.times(end)
        self.untimed[what] += int((~(started & ended)).sum())
        return cupti.spans(start, started, end, ended)

    def warnings(self) -> list[str]:
        """What was noted, and what had no times."""
        return [*self.notes, *cupti.untimed_notes(self.untimed)]
