"""Rotate runs of py-spy without a gap between them, so that what is sampled is seen soon."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from flame.attach.discover.proc import read_process
from flame.attach.pyspy.run import PySpyRun, program
from flame.core.errors import InputError
from flame.core.files.temporary import scratch_folder

_FIRST, _PERIOD = 0.5, 2.0
"""Seconds of a run. Every one takes 0.1 s of CPU to begin, and is seen when it has ended."""
_SHORTEST = 0.2  # it is told to stop by a signal, which it has to be ready for
_PAUSE = 0.05
_MOST_FAILURES, _REST = 3, 0.3

TakeSamples = Callable[[bytes, int, int], None]
"""Takes a speedscope file, and from when to when it was sampled, ns of CLOCK_MONOTONIC."""


class Rotation:
    """Sample ``pid`` in a thread of its own until that ends; `took` is called in that thread.

    ``error`` says why nothing more is sampled though the program goes on, ``lost`` counts the runs
    that have brought nothing, ``unread`` the samples that could not be made sense of.
    """

    def __init__(self, pid: int, took: TakeSamples) -> None:
        """Return when it samples. UsageError without py-spy, InputError where it cannot do it."""
        self.error = ""
        self.lost = self.unread = 0
        self._pid, self._took = pid, took
        self._program = program()
        self._identity = read_process(pid)
        self._room = ExitStack()
        try:
            self._folder = self._room.enter_context(scratch_folder())
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{pid}: no room for what py-spy writes: {reason}") from None
        self._runs: set[PySpyRun] = set()
        self._number = 0
        self._cut, self._closing = threading.Event(), threading.Event()
        first = self._started(tries=1)
        if not first:
            self._room.close()
            raise InputError(f"{pid}: {self.error or 'it has ended'}")
        self._thread = threading.Thread(target=self._go, args=(first,), daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Tell whether there is more to come."""
        return self._thread.is_alive()

    def cut(self) -> None:
        """Begin the next run now."""
        self._cut.set()

    def close(self) -> None:
        """Stop sampling."""
        self._closing.set()
        for run in tuple(self._runs):
            run.kill()
        self._thread.join()
        self._room.close()

    def _go(self, first: PySpyRun) -> None:
        try:
            self._run_after_run(first)
        except OSError as error:
            self.error = f"{error.filename}: {error.strerror}"

    def _run_after_run(self, run: PySpyRun | None) -> None:
        seconds = _FIRST
        while run and not self._closing.is_set():
            self._let_run(run, seconds)
            seconds = _FIRST if self._cut.is_set() else _PERIOD
            self._cut.clear()
            # The next one samples before this one stops; that one ended by itself if it has.
            following = self._started(_MOST_FAILURES) if self._lives() else None
            self._finish(run)
            run = following
        if run:
            run.kill()

    def _let_run(self, run: PySpyRun, seconds: float) -> None:
        begin = time.monotonic()
        while run.running and not self._closing.is_set():
            passed = time.monotonic() - begin
            if passed >= seconds or (passed >= _SHORTEST and self._cut.is_set()):
                return
            self._closing.wait(_PAUSE)

    def _started(self, tries: int) -> PySpyRun | None:
        """A run that samples; None if the program has ended, or it fails again and again."""
        for _ in range(tries):
            run = self._new()
            if run and run.begins():
                self.error = ""
                return run
            if run:
                self.error = run.error or "py-spy does not begin"
                self._drop(run)
            if not self._lives() or self._closing.is_set():
                self.error = ""
                return None
            self._closing.wait(_REST)  # a program that is ending cannot be read and is still there
        return None

    def _new(self) -> PySpyRun | None:
        self._number += 1
        try:
            run = PySpyRun(self._program, self._pid, self._folder, self._number)
        except OSError as error:
            self.error = f"{self._program}: {error.strerror or error}"
            return None
        self._runs.add(run)
        if self._closing.is_set():
            run.kill()
        return run

    def _finish(self, run: PySpyRun) -> None:
        """Take what it has sampled."""
        run.stop()
        data = run.take()
        self.unread += run.unread
        try:
            if data:
                self._took(data, run.begin, run.end)
        except InputError:
            data = b""
        if not data and not self._closing.is_set():
            self.lost += 1
        self._drop(run)

    def _drop(self, run: PySpyRun) -> None:
        run.kill()
        run.remove()
        self._runs.discard(run)

    def _lives(self) -> bool:
        now = read_process(self._pid)
        return bool(
            now and self._identity and now.start == self._identity.start and not now.is_zombie
        )
