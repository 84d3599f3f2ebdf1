"""Parse arguments as argparse does, but say what is wrong as flame does."""

from __future__ import annotations

import argparse
import sys

from flame.core.errors import InputError, UsageError
from flame.core.nearest import did_you_mean

TYPE_CHECKING = False  # `flame --help` needs nothing of the module typing.
if TYPE_CHECKING:
    from typing import NoReturn

    from _typeshed import SupportsWrite


def group_called(title: str, parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Return the group of options that ``--help`` calls by that title; a new one if need be."""
    known = (group for group in parser._action_groups if group.title == title)
    return next(known, None) or parser.add_argument_group(title)


class Parser(argparse.ArgumentParser):
    """Parse arguments, raising UsageError where argparse would print and exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        known = None if action.choices is None else [*map(str, action.choices)]
        if known is not None and value not in known:
            meant = did_you_mean(str(value), known)
            text = f"'{value}' is none of {', '.join(dict.fromkeys(known))}{meant}"
            raise argparse.ArgumentError(action, text)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        # argparse passes over what cannot be written.
        try:
            print(message, end="", file=file or sys.stderr)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InputError(f"cannot write to standard output: {error.strerror}") from None
