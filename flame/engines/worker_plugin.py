"""Prepare the workers of a cluster for a run, also those that come later."""

from __future__ import annotations

from typing import Any

import dask
from distributed import Worker, WorkerPlugin

from flame.engines import on_worker

_CONNECT = "distributed.comm.timeouts.connect"
_TIMEOUT = "3s"
"""How long a worker waits for one that may be dead; by default the others lose half a minute."""


class RunPlugin(WorkerPlugin):  # type: ignore[misc]
    """Tells workers how much memory they have for a run, and ends its processes with it."""

    def __init__(self, run: str) -> None:
        self.name = f"flame-{run}"
        self._run = run
        self._before: Any = None

    def setup(self, worker: Worker) -> None:
        """Prepare a worker."""
        self._before = dask.config.get(_CONNECT, None)
        dask.config.set({_CONNECT: _TIMEOUT})
        on_worker.begin(self._run, int(worker.memory_manager.memory_limit or 0))

    def teardown(self, worker: Worker) -> None:
        """Leave a worker as it was."""
        dask.config.set({_CONNECT: self._before})
        on_worker.end(self._run)
