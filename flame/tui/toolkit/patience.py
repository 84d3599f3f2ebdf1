"""A limit on what the event loop itself may spend on one thing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

from flame.core.errors import UsageError


@contextmanager
def at_most(seconds: float, complaint: str) -> Iterator[None]:
    """Stop the block with a UsageError after ``seconds``, where the system can.

    A regular expression may take years; only a signal to the main thread gets it out of one.
    """
    if not hasattr(signal, "setitimer") or current_thread() is not main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise UsageError(complaint)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
