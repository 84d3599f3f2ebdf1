"""Carry out ``flame record``: make a folder, run the command with the library, report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from flame.console.terminal import print_traceback, say
from flame.core.errors import CancelledError
from flame.record.environment import environment_for, library_path, replaced
from flame.record.folder import RecordingFolder, make_folder, remove_stale_sockets
from flame.record.plan import Plan
from flame.record.process import (
    death_of,
    ended_by_signals,
    exit_code_of,
    signals_held,
    start,
    wait_for,
)
from flame.record.status_line import open_status_line


def record(plan: Plan) -> int:
    """Run the command of ``plan`` and record it; return its exit code.

    Raises UsageError without a library, NotFoundError and NotExecutableError without a command, and
    what `make_folder` raises.
    """
    library = library_path()
    folder = make_folder(plan.output, plan.command)
    try:
        for line in replaced(os.environ):
            say(line)
        begin = time.monotonic_ns()
        status = _run(plan, environment_for(plan, library, folder.path, os.environ), folder.path)
        elapsed = time.monotonic_ns() - begin
        if not folder.is_replaced():
            remove_stale_sockets(folder.path)
        _report(plan, folder, status, elapsed)
    finally:
        folder.drop_if_empty()
    return exit_code_of(status)


def _run(plan: Plan, environment: dict[str, str], folder: Path) -> int:
    with ExitStack() as cleanup:
        blocked = cleanup.enter_context(signals_held())
        line = None if plan.quiet else open_status_line(folder)
        if line is None:
            child = start(plan.command, environment, blocked)
            return wait_for(child)
        cleanup.callback(line.close)
        child = start(plan.command, environment, blocked)
        return wait_for(child, line.update, line.release)


def _report(plan: Plan, folder: RecordingFolder, status: int, elapsed: int) -> None:
    """Say what came of it; nothing that fails here may hide the exit code of the command."""
    if death := death_of(status):
        say(f"{plan.command[0]}: {death}")
    if folder.is_replaced():
        say(f"{folder.path}: something else is there now than what was recorded to: not read")
        return
    try:
        with ended_by_signals():
            _finish(plan, folder.path, elapsed)
    except (KeyboardInterrupt, CancelledError):
        say("interrupted: the rest of the summary is left out")


def _finish(plan: Plan, folder: Path, elapsed: int) -> None:
    """Take the steps after a recording; one that fails is told, and keeps no other from its."""
    from flame.record.finish import report_recording, sum_up_ranks

    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        ("no summary", partial(report_recording, plan, folder, elapsed)),
        ("ranks are not summed up", partial(sum_up_ranks, plan, folder)),
    )
    for what, take in steps:
        try:
            take()
        except CancelledError:
            raise
        except Exception as error:
            say(f"{what}: {error or type(error).__name__}")
            if os.environ.get("FLAME_DEBUG"):
                print_traceback(error)
