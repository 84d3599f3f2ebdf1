"""Define the errors meant for users, each with the exit code that a script sees."""

from __future__ import annotations


class FlameError(Exception):
    """Report an error to the user in one line that says what, where and what to do."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        # Paths and quoted names may hold line breaks.
        super().__init__(" ".join(message.splitlines()))


class UsageError(FlameError):
    """Report a wrong option or option value."""

    exit_code = 2


class InputError(FlameError):
    """Report a file that cannot be read (missing, no trace, damaged, no permission) or written."""

    exit_code = 3


class NoMatchError(FlameError):
    """Report that nothing in the profile matches the selection."""

    exit_code = 4


class CancelledError(FlameError):
    """Report that the user stopped a load, which is not a failure."""

    exit_code = 130
