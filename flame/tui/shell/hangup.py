"""Find out whether the terminal is gone, where no signal says so: `docker exec` sends none."""

from __future__ import annotations

import select
import sys


def reads_terminal() -> bool:
    """Tell whether standard input is a terminal, which can go away."""
    return sys.__stdin__ is not None and sys.__stdin__.isatty()


def has_hung_up() -> bool:
    """Tell whether the other end of standard input, a terminal once, has been closed."""
    if sys.__stdin__ is None:
        return True
    look = select.poll()
    look.register(sys.__stdin__.fileno(), 0)  # a hangup is told in any case
    return any(events & select.POLLHUP for _, events in look.poll(0))
