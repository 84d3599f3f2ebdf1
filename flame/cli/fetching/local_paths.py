"""Have a command read files, whatever its paths name."""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

from flame.cli.fetching.copies import fetch_paths, is_foreign
from flame.core.errors import FlameError, UsageError
from flame.core.fetching.given_names import is_pattern, shown_name
from flame.options.config import allows_cache

Command = Callable[[argparse.Namespace], int]


def run_with_local_paths(command: Command, args: argparse.Namespace) -> int:
    """Run ``command`` on ``args``, whose traces are files of this machine by then.

    Patterns that the shell has left are those files that they match. What else is no file is
    copied to one, which is gone when the command ends. Errors name it as it was given.
    """
    runs = list(_runs(args))
    _refuse_remote_side_inputs(args)
    if args.command == "ranks":
        return _run_on_files(command, args, runs)
    if not any(_is_special(path) for run in runs for path in run):
        return command(args)
    for run in runs:
        run[:] = [file for path in run for file in _matching(path)]
    if not any(is_foreign(path) for run in runs for path in run):
        return command(args)
    if getattr(args, "web", False):
        return _run_in_browser(command, args, runs)
    with ExitStack() as stack:
        given = args.given = {}
        try:
            fetch_paths(runs, given, stack, cache=allows_cache(args))
            return command(args)
        except FlameError as error:
            raise type(error)(_respelled(str(error), given)) from None


def _refuse_remote_side_inputs(args: argparse.Namespace) -> None:
    """Raise UsageError where what is read besides traces is elsewhere: only these are fetched."""
    named = [("--ncu", path) for path in getattr(args, "ncu", None) or ()]
    named += [("--phases", path) for path in (getattr(args, "phases", None),) if path]
    for option, path in named:
        if "://" in path:
            raise UsageError(f"{option} {shown_name(path)}: only traces are fetched: copy it here")


def _run_on_files(command: Command, args: argparse.Namespace, runs: list[list[str]]) -> int:
    """Run ``flame ranks``: its summaries say where the trace of each rank lies."""
    for path in (path for run in runs for path in run):
        if is_foreign(path):
            name = shown_name(path)
            raise UsageError(f"{name}: flame ranks keeps where traces lie: copy it to a file first")
    return command(args)


def _runs(args: argparse.Namespace) -> Iterator[list[str]]:
    """The lists of ``args`` that name traces."""
    if isinstance(paths := getattr(args, "paths", None), list):
        yield paths
    for side in ("base", "new"):
        yield from getattr(args, side, None) or ()


def _is_special(path: str) -> bool:
    return is_foreign(path) or is_pattern(path)


def _matching(path: str) -> list[str]:
    """The files that match a quoted pattern, in order; itself where it is none, or none match.

    Each is there once, by whichever links it is found, and no pipe, which somebody may never write.
    """
    if "://" in path or not is_pattern(path) or os.path.lexists(path):
        return [path]
    from glob import iglob

    found: dict[tuple[int, int], str] = {}
    for match in sorted(iglob(path, recursive=True)):  # noqa: PTH207 (absolute ones, too)
        with suppress(OSError):
            status = os.stat(match)  # noqa: PTH116 (of thousands, quickly)
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                found.setdefault((status.st_dev, status.st_ino), match)
    return [*found.values()] or [path]


def _run_in_browser(command: Command, args: argparse.Namespace, runs: list[list[str]]) -> int:
    """Every page opens the traces anew: what is remote is kept for that, a pipe cannot be."""
    for path in (path for run in runs for path in run if "://" not in path):
        if is_foreign(path):
            raise UsageError(f"--web opens {path} for every page: write it to a file first")
    return command(args)


def _respelled(text: str, given: dict[str, str]) -> str:
    for path, name in given.items():
        text = text.replace(path, shown_name(name))
    return text
