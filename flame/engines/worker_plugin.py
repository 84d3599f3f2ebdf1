"""Prepare the workers of a cluster for a run, also those that come later."""

from __future__ import annotations

from typing import Any

import dask
from distributed import Worker, WorkerPlugin

from flame.core.memory import free_memory
from flame.engines import on_worker

MEMORY = "flame-memory"
"""The resource that says how many bytes of memory a worker may take."""

_CONNECT = "distributed.comm.timeouts.connect"
_PATIENCE = "3s"
"""How long a worker waits for one that may be dead; by default the others lose half a minute."""

_UNKNOWN = 1 << 62


class RunPlugin(WorkerPlugin):
    """Has workers say how much memory they have, and ends the processes of a run with it."""

    def __init__(self, run: str) -> None:
        self.name = f"flame-{run}"
        self._run = run
        self._before: Any = None

    async def setup(self, worker: Worker) -> None:
        """Prepare a worker."""
        self._before = dask.config.get(_CONNECT, None)
        dask.config.set({_CONNECT: _PATIENCE})
        limit = int(worker.memory_manager.memory_limit or 0)
        on_worker.begin(self._run, limit)
        await worker.set_resources(**{MEMORY: limit or _memory_of_machine()})

    def teardown(self, worker: Worker) -> None:
        """Leave a worker as it was."""
        dask.config.set({_CONNECT: self._before})
        on_worker.end(self._run)


def _memory_of_machine() -> int:
    found = free_memory()
    return found.free if found else _UNKNOWN
