"""Show the progress of a long load on stderr, only where a person sees it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flame.console.interrupting import load_interruptibly
from flame.core.options import LoadOptions, Progress, silent
from flame.core.shown_text import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from flame.core.loading.inputs import Inputs
    from flame.core.model.profile import Profile
    from flame.core.reopening.profile_cache import ProfileCache

DELAY = 0.5
"""Seconds before a load is worth a progress bar; most loads end sooner."""


def load_with_progress(
    inputs: Inputs, options: LoadOptions, cache: ProfileCache | None = None
) -> Profile:
    """Load as `flame.core.loading.many.load_inputs`, with a progress bar if it takes long."""
    from flame.core.loading.many import load_inputs

    def load(progress: Progress) -> Profile:
        return load_inputs(inputs, options, progress, cache)

    return load_interruptibly(load, progress_on_stderr())


@contextmanager
def progress_on_stderr() -> Iterator[Progress]:
    """Yield a `Progress`: a bar on a terminal, which is removed at the end, or silence."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield silent
        return
    display = _Display()
    try:
        yield display
    finally:
        display.close()


class _Display:
    """Shows nothing, and does not even import rich, until the load has lasted a while."""

    def __init__(self) -> None:
        self._due = time.monotonic() + DELAY
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __call__(self, stage: str, done: int, expected: int) -> None:
        if self._bar is None:
            if time.monotonic() < self._due:
                return
            self._bar = _new_bar()
        if self._task is None:
            self._task = self._bar.add_task("")
        total = expected if expected > 0 else None
        self._bar.update(self._task, description=printable(stage), completed=done, total=total)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()


def _new_bar() -> Bar:
    from rich import progress
    from rich.console import Console

    text = progress.TextColumn("{task.description}", markup=False)
    share, elapsed = progress.TaskProgressColumn(), progress.TimeElapsedColumn()
    columns = (text, progress.BarColumn(), share, elapsed, progress.TimeRemainingColumn())
    bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
    bar.start()
    return bar
