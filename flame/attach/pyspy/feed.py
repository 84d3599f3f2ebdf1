"""Feed the app with the Python stacks of a process without the library, sampled by py-spy."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np

from flame.attach.discover.model import job_name
from flame.attach.discover.permission import explain
from flame.attach.discover.proc import command_of, read_process
from flame.attach.pyspy.rotation import Rotation
from flame.attach.pyspy.run import RATE
from flame.attach.pyspy.samples import CpuSamples
from flame.core.attribution.resolved import resolve_stacks
from flame.core.errors import InputError
from flame.core.live.snapshot import RecordingSnapshot
from flame.core.live.status import LiveStatus, Rates, SourceState, SourceStatus
from flame.core.live.window import SECOND, LiveWindow
from flame.core.model.meta import Meta

_FORMAT = "py-spy"
_NOTE = (
    "[cpu] Python samples of the CPU by py-spy, no GPU time in them: start the program with flame "
    "record to see what it does on the GPU"
)


class CpuFeed:
    """Sample the process ``pid`` and its children, as `core.live.feed.RecordingFeed` reads dumps.

    The only metric is how often py-spy has seen a thread that runs (`RATE` times a second); there
    are no single activities, no times, and no dump to be saved. ``title`` and the first warning of
    every snapshot say so. Sampling runs in a thread of its own, whether `update` is called or not.
    """

    def __init__(self, pid: int) -> None:
        """Begin to sample; InputError where that cannot be done, UsageError without py-spy."""
        if reason := explain(pid):
            raise InputError(f"{pid}: {reason}")
        process = read_process(pid)
        name = job_name(process.name if process else "", command_of(pid))
        self.title = f"[cpu] {name} [{pid}]"
        self._pid = pid
        self._lock = threading.Lock()
        self._samples = CpuSamples()
        self._version, self._seen = 0, (0, False)
        self._begin = self._end = time.monotonic_ns()
        self._rotation = Rotation(pid, self._take)

    def _take(self, data: bytes, begin: int, end: int) -> None:
        with self._lock:
            self._samples.add(data, begin, end)
            self._version, self._end = self._version + 1, end

    def update(self, budget: float = 0.0) -> bool:
        """Tell whether anything has changed since the last call; ``budget`` is not needed."""
        now = (self._version, self._rotation.running)
        changed, self._seen = now != self._seen, now
        return changed

    def mark(self) -> None:
        """Let "since the mark" begin now."""
        with self._lock:
            self._samples.mark(time.monotonic_ns())
        self._rotation.cut()

    def snapshot(self, window: LiveWindow) -> RecordingSnapshot:
        """Make a profile of resolved stacks of what was sampled in ``window``."""
        with self._lock:
            now = self._now()
            meta = Meta(self.title, _FORMAT, options={"rate": f"{RATE} samples/s"})
            profile = resolve_stacks(
                self._samples.stacks(window, now, meta, [_NOTE, *self._notes()])
            )
            begin = max(now - window.length, self._begin) if window.length else self._begin
            return RecordingSnapshot(
                profile, window, self._version, begin - self._begin, now - self._begin
            )

    def status(self) -> LiveStatus:
        """Return how it is doing. There are no rates: nothing of the GPU is known."""
        nothing = np.zeros(0, np.int64)
        return LiveStatus(
            sources=(SourceStatus(self._pid, "", self._state(), 0, 0),),
            rates=Rates(SECOND, nothing.astype(np.float64), nothing),
            lag=0,
            behind=0,
            elapsed=self._now() - self._begin,
            notes=(_NOTE, *self._notes()),
        )

    def close(self) -> None:
        """Stop sampling. The last snapshot stays as it is."""
        self._rotation.close()

    def _now(self) -> int:
        """Now, or when it ended."""
        return time.monotonic_ns() if self._rotation.running else self._end

    def _state(self) -> SourceState:
        if self._rotation.running:
            return SourceState.RUNNING
        return SourceState.STOPPED if self._rotation.error else SourceState.ENDED

    def _notes(self) -> Iterator[str]:
        rotation = self._rotation
        if rotation.error and not rotation.running:
            yield f"nothing more is sampled: {rotation.error}"
        if rotation.lost:
            yield f"parts of about 2 s that py-spy has not written: {rotation.lost:,}"
        if rotation.unread:
            yield f"samples that could not be read, as the program went on: {rotation.unread:,}"
