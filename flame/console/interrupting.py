"""Let ctrl+c end a load at once, also while it is in a long call of compiled code."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from types import FrameType
from typing import TYPE_CHECKING

from flame.core.errors import CancelledError
from flame.core.options import Progress

if TYPE_CHECKING:
    from flame.core.model.profile import Profile

_GRACE = 0.6
"""Seconds that a load has to clean up after itself, which it does when it next reports."""

_kept: list[object] = []


def load_interruptibly(
    load: Callable[[Progress], Profile], shown: AbstractContextManager[Progress]
) -> Profile:
    """Call ``load`` in a thread and wait for it: Python would see no signal during a long call.

    Its progress is ``shown`` until then. Raises what ``load`` does; on ctrl+c KeyboardInterrupt
    once it has ended, or ends the process where it does not.
    """
    loader = _Loader(load)
    try:
        with shown as progress:
            loader.wait(progress)
    except KeyboardInterrupt:
        loader.end()
        raise
    return loader.result()


@contextmanager
def ended_by_interrupt(progress: Progress) -> Iterator[Progress]:
    """Yield ``progress``, which raises CancelledError once ctrl+c has been pressed.

    So what is done between two reports is never left half done; ctrl+c again ends that, too.
    """
    pressed = Event()

    def note(number: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    def report(stage: str, done: int, expected: int) -> None:
        if pressed.is_set():
            raise CancelledError("stopped")
        progress(stage, done, expected)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield report
    finally:
        signal.signal(signal.SIGINT, before)


class _Loader:
    def __init__(self, load: Callable[[Progress], Profile]) -> None:
        self._load = load
        self._stopped = Event()
        # `Thread.join`, once interrupted, holds that the thread has ended (Python 3.11 and 3.12).
        self._ended = Event()
        self._profile: Profile | None = None
        self._error: BaseException | None = None

    def wait(self, progress: Progress) -> None:
        """Load, and wait for the end."""
        thread = Thread(target=self._run, args=(progress,), name="loader", daemon=True)
        try:
            thread.start()
            self._ended.wait()
        except KeyboardInterrupt:
            self._stopped.set()
            self._ended.wait(_GRACE)
            raise

    def _run(self, progress: Progress) -> None:
        def report(stage: str, done: int, expected: int) -> None:
            if self._stopped.is_set():
                raise CancelledError("stopped")
            progress(stage, done, expected)

        try:
            self._profile = self._load(report)
        except BaseException as error:  # raised again by `result`
            self._error = error
        finally:
            self._ended.set()

    def end(self) -> None:
        """End the process at once where the load still runs.

        Where it does not, its error, and what had been loaded until then, is kept to the end:
        to take millions of objects apart takes seconds.
        """
        _kept.append(self)
        if not self._ended.is_set():
            # To end in order Python would stop the thread wherever it is, which may be in C++.
            os._exit(CancelledError.exit_code)

    def result(self) -> Profile:
        """Return what was loaded, or raise what kept it from that."""
        if self._error is not None:
            raise self._error
        assert self._profile is not None
        return self._profile
