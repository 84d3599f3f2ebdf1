"""Waiting for what must happen, as long as it takes, up to a limit that only failures meet."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

PATIENCE = float(os.environ.get("FLAME_TEST_PATIENCE", "60"))
"""Seconds after which something that must happen counts as missing, on a machine of any load."""

_PAUSE = 0.01


def wait_until(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until that is true; fail where it does not become so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(_PAUSE)
