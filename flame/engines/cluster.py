"""Ask a Dask cluster without waiting for it for ever, and know its workers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future as Outcome
from concurrent.futures import TimeoutError as LateError
from contextlib import suppress
from itertools import count
from math import inf
from threading import Thread
from typing import Any, NamedTuple, TypeVar

from distributed import Client, Future

from flame._version import __version__
from flame.core.errors import InputError
from flame.engines import on_worker
from flame.engines.worker_plugin import RunPlugin

_LOOK = 0.5
"""Seconds from one look at the workers to the next."""
_ANSWER = 30.0
"""Seconds in which a cluster that is well answers."""
_END = 2.0

T = TypeVar("T")


class ClusterLostError(Exception):
    """Report that the cluster will answer no more; the message says why."""


class Patience(NamedTuple):
    """Say how many seconds to wait for a worker; None: as long as it takes.

    ``first``: before any has come. ``next``: when there is none any more.
    """

    first: float | None
    next: float | None


class Workers(NamedTuple):
    """Tell of the workers: their ``threads`` together, and how much ``memory`` each may take."""

    threads: int
    memory: Mapping[str, float]

    def with_room(self, need: int) -> list[str] | None:
        """Name those that have ``need`` bytes, else those that have most; None: any."""
        enough = min(need, max(self.memory.values(), default=0.0))
        found = [worker for worker, limit in self.memory.items() if limit >= enough]
        return found if len(found) < len(self.memory) else None


def in_thread(call: Callable[[], T]) -> Outcome[T]:
    """Begin a call in a thread that nobody has to wait for, not even at the end of the program."""
    outcome = Outcome[T]()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, name="cluster", daemon=True).start()
    return outcome


class Cluster:
    """Hands work to a cluster, and says when it is lost."""

    def __init__(self, client: Client, patience: Patience) -> None:
        self.workers = Workers(0, {})
        self._client = client
        self._patience = patience
        self._run = uuid.uuid4().hex[:12]
        self._plugin: RunPlugin | None = None
        self._number = count()
        self._look: Outcome[Workers] | None = None
        self._asked = self._empty_since = time.monotonic()
        self._had_workers = False

    @property
    def run(self) -> str:
        """The name of what is done now."""
        return self._run

    def submit(self, work: Callable[..., Any], *arguments: object, memory: int = 0) -> Future[Any]:
        """Have a worker call ``work``, one that may take ``memory`` bytes, if there is any."""
        key = f"flame-{work.__name__}-{self._run}-{next(self._number)}"
        workers = self.workers.with_room(memory)
        return self._client.submit(
            work,
            *arguments,
            key=key,
            pure=False,
            workers=workers,
            allow_other_workers=workers is not None,
        )

    def prepare(self) -> None:
        """Prepare the workers, now that there are some; InputError where their flame is another."""
        self._check_versions()
        self._plugin = plugin = RunPlugin(self._run)
        self._ask(lambda: self._client.register_plugin(plugin))

    def _check_versions(self) -> None:
        for worker, found in self._ask(self._versions).items():
            if isinstance(found, BaseException):
                remedy = f"install flame {__version__} there"
                raise InputError(f"the worker {worker} cannot run flame: {found}: {remedy}")
            if found != __version__:
                what = f"runs flame {found}, and this is {__version__}"
                raise InputError(f"the worker {worker} {what}: install the same version there")

    def _versions(self) -> dict[str, object]:
        found: dict[str, object] = self._client.run(on_worker.version, on_error="return")
        return found

    def _ask(self, call: Callable[[], T]) -> T:
        try:
            return in_thread(call).result(_ANSWER)
        except LateError:
            raise ClusterLostError("the cluster does not answer") from None
        except OSError as error:
            raise ClusterLostError(f"the cluster does not answer: {error}") from None

    def look(self) -> None:
        """See, now and then, which workers there are; ClusterLostError where there is nobody."""
        now = time.monotonic()
        if self._client.status != "running":
            raise ClusterLostError("the scheduler of the cluster is gone")
        if self._look is None and now - self._asked >= _LOOK:
            self._asked, self._look = now, in_thread(self._count_workers)
        if self._look is not None and self._look.done():
            with suppress(Exception):  # As if it had not been asked.
                self.workers = self._look.result()
            self._look = None
        elif self._look is not None and now - self._asked > _ANSWER:
            raise ClusterLostError("the scheduler of the cluster does not answer")
        self._note_workers(now)

    def _note_workers(self, now: float) -> None:
        if self.workers.memory:
            self._had_workers, self._empty_since = True, now
            return
        limit = self._patience.next if self._had_workers else self._patience.first
        if limit is not None and now - self._empty_since >= limit:
            left = "is left in" if self._had_workers else "has come to"
            raise ClusterLostError(f"no worker {left} the cluster for {limit:.0f} s")

    def _count_workers(self) -> Workers:
        found = self._client.scheduler_info(n_workers=-1)["workers"]
        # Those that are short of memory are paused, perhaps for ever.
        workers = {name: one for name, one in found.items() if one["status"] == "running"}
        memory = {name: worker["memory_limit"] or inf for name, worker in workers.items()}
        return Workers(sum(worker["nthreads"] for worker in workers.values()), memory)

    def close(self) -> None:
        """Leave the workers as they were, and the cluster; it has two seconds for that."""
        with suppress(LateError, Exception):
            in_thread(self._close).result(_END)

    def _close(self) -> None:
        if self._plugin is not None and self._client.status == "running":
            self._client.unregister_worker_plugin(self._plugin.name)
        self._client.close(timeout=_END)
