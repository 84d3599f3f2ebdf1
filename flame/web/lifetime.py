"""End the process of an app when the server that has started it is gone."""

from __future__ import annotations

import os
import select
import signal
import time
from threading import Thread

_GRACE = 5.0
"""Seconds that the app has to end by itself."""


def end_with_server() -> None:
    """End this process when nobody is left who could write to its standard input."""
    Thread(target=_end_at_hangup, daemon=True).start()


def _end_at_hangup() -> None:
    hangup = select.poll()
    hangup.register(0, 0)  # That the other end is closed is reported without being asked for.
    hangup.poll()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(1)
