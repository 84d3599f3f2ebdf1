"""A recording that goes on when a test says so: a dump that grows, of no process but this one."""

from __future__ import annotations

import mmap
import os
import time
from dataclasses import replace
from pathlib import Path
from threading import RLock

from flame.core.live.feed import RecordingFeed
from flame.core.live.snapshot import RecordingSnapshot
from flame.core.live.status import LiveStatus, SourceState
from flame.core.live.window import LiveWindow
from flame.core.options import LoadOptions
from tests.support.writers.fdumpfile import API, STALL_REASON, DumpFile

MS = 1_000_000
Stack = tuple[str, ...]
"""Ranges, outermost first, and a kernel."""

_LAUNCH = 307
_LAUNCH_NS = 1_000
_CODE = 0xAB
_REASON = 4


class Recording:
    """What the app follows: one dump, at the time ``now`` (ns since it began).

    Everything but `run`, `sample`, `wait` and `end` is what `core.live.feed.RecordingFeed` does.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = RLock()
        start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self._dump = DumpFile(os.getpid(), start=start)
        self._dump.ended = False
        self._dump.name(API, _LAUNCH, "cuLaunchKernel")
        self._dump.name(STALL_REASON, _REASON, "smsp__pcsamp_warps_issue_stalled_wait")
        self._path = folder / f"{os.getpid()}-{start:x}.fdump"
        self._path.touch()
        self._write()
        with self._path.open("r+b") as file:
            # A dump that nobody has mapped is nobody's any more.
            self._map = mmap.mmap(file.fileno(), 4096)
        self._launches = 0
        self._state: SourceState | None = None
        self.now = 0
        self.updates = 0
        self.marks = 0
        self.closed = False
        self._feed = RecordingFeed(LoadOptions(), lambda: start + self.now)
        self._feed.add(self._path)

    # What the process does

    def run(self, *stacks: Stack, each: int = MS) -> None:
        """Run the kernels of ``stacks`` one after the other, each so long."""
        with self._lock:
            for *ranges, kernel in stacks:
                self._launches += 1
                made = {"correlation": self._launches, "nvtx": self._dump.nvtx(*ranges)}
                self._dump.launch(self.now, self.now + _LAUNCH_NS, api=_LAUNCH, **made)
                self._dump.kernel(kernel, self.now, self.now + each, tid=100, **made)
                self.now += each
            self._write()

    def sample(self, kernel: str, samples: int) -> None:
        """PC samples of ``kernel`` come in."""
        with self._lock:
            where = {"crc": _CODE, "function": self._dump.text(kernel), "offset": 16}
            self._dump.record("sample", **where, reason=_REASON, samples=samples)
            self._write()

    def wait(self, ns: int) -> None:
        """Let time pass."""
        with self._lock:
            self.now += ns

    def end(self, state: SourceState = SourceState.ENDED) -> None:
        """The process is gone, or records no more."""
        with self._lock:
            self._state = state
            self._dump.ended = True
            self._write()

    def _write(self) -> None:
        with self._path.open("r+b") as file:
            file.write(self._dump.data())

    # What the app asks for

    def update(self, budget: float) -> bool:
        with self._lock:
            self.updates += 1
            return self._feed.update(budget)

    def mark(self) -> None:
        with self._lock:
            self.marks += 1
            self._feed.mark()

    def snapshot(self, window: LiveWindow) -> RecordingSnapshot:
        with self._lock:
            return self._feed.snapshot(window)

    def status(self) -> LiveStatus:
        with self._lock:
            status = self._feed.status()
            if self._state is None:
                return status
            sources = (replace(one, state=self._state) for one in status.sources)
            return replace(status, sources=tuple(sources))

    def close(self) -> None:
        self.closed = True
        self._feed.close()
