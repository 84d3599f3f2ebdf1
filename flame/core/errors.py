"""What can go wrong, each with the exit code a script sees."""

from __future__ import annotations


class FlameError(Exception):
    """Root of all errors meant for the user: one line that says what, where and what to do."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        # Paths and quoted names may hold line breaks.
        super().__init__(" ".join(message.splitlines()))


class UsageError(FlameError):
    """A wrong option or option value."""

    exit_code = 2


class InputError(FlameError):
    """A file that cannot be read (missing, not a trace, damaged, no permission) or written."""

    exit_code = 3


class NoMatchError(FlameError):
    """Nothing in the profile matches the selection."""

    exit_code = 4


class CancelledError(FlameError):
    """The user stopped a load; not a failure."""

    exit_code = 130
