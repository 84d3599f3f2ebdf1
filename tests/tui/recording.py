"""A recording that goes on when a test says so: what the app follows, without any process."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np

from flame.core.live.status import Rates, SourceStatus, State, Status
from flame.core.live.window import SECOND, Window
from flame.core.load import load
from flame.core.options import LoadOptions
from tests.fdumpfile import DumpFile

MS = 1_000_000
Stack = tuple[str, ...]
"""Ranges, outermost first, and a kernel."""


class Recording:
    """One process, whose ``now`` (ns since its start) is what `run` and `wait` make it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._rows: list[tuple[Stack, int, int]] = []
        self._changed = False
        self._mark = 0
        self.now = 0
        self.state = State.RUNNING
        self.dropped = 0
        self.added: list[Path] = []
        self.updates = self.snapshots = 0
        self.closed = False

    # What the process does

    def run(self, *stacks: Stack, each: int = MS) -> None:
        """Run the kernels of ``stacks`` one after the other, each so long."""
        with self._lock:
            for stack in stacks:
                self._rows.append((stack, self.now, each))
                self.now += each
            self._changed = True

    def wait(self, ns: int) -> None:
        """Let time pass."""
        with self._lock:
            self.now += ns

    def end(self, state: State = State.ENDED) -> None:
        """The process is gone."""
        with self._lock:
            self.state, self._changed = state, True

    # What the app asks for

    @property
    def sources(self) -> tuple[()]:
        return ()

    def add(self, path: Path, fd: int | None = None) -> None:
        self.added.append(path)

    def update(self, budget: float = 0.1) -> bool:
        with self._lock:
            self.updates += 1
            changed, self._changed = self._changed, False
            return changed

    def mark(self) -> None:
        with self._lock:
            self._mark = self.now

    def snapshot(self, window: Window) -> Any:
        with self._lock:
            self.snapshots += 1
            begin = self._mark if window.marked else self.now - (window.length or self.now)
            rows = [row for row in self._rows if row[1] >= begin]
            path = self._folder / f"{self.snapshots}.fdump"
            _dump(rows).write(path)
        profile = load(path, LoadOptions())
        path.unlink()
        return SimpleNamespace(profile=profile)

    def status(self) -> Status:
        with self._lock:
            source = SourceStatus(100, "rank 0", self.state, self.dropped, 1 << 20)
            rates = Rates(SECOND, np.full(60, 0.5), np.full(60, 1_000))
            return Status((source,), rates, 0, 0, self.now)

    def close(self) -> None:
        self.closed = True


def _dump(rows: list[tuple[Stack, int, int]]) -> DumpFile:
    dump = DumpFile()
    for number, (stack, start, length) in enumerate(rows, 1):
        *ranges, kernel = stack
        node = dump.nvtx(*ranges)
        dump.launch(start, start + 1_000, number, nvtx=node, api=307)
        dump.kernel(kernel, start, start + length, number, nvtx=node, tid=100)
    return dump
