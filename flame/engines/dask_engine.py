"""Read ranks on a Dask cluster: workers read and merge, their client does the last merges."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future as Outcome
from concurrent.futures import wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from distributed import Future, KilledWorker

from flame.core.errors import FlameError
from flame.core.lazy_dataclass import dataclass
from flame.core.loading.worker import EndedError
from flame.core.memory import MemoryShortError
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.job import Meter, PartsByHeight, RankFile, lost_summary, place_of, reason_of
from flame.engines import on_worker
from flame.engines.cluster import Cluster, ClusterLostError, in_thread

if TYPE_CHECKING:
    from flame.core.rank_summary.collective_table import CollectiveTable
    from flame.core.ranks.communication.arrivals import Arrivals
    from flame.core.ranks.summarise import RankOptions

_POLL = 0.1
_TALL = 2
"""Height of parts, of 64 ranks, which are fetched from the workers."""
_AHEAD = 2
"""Files in the hands of the cluster for each of its threads."""
_ANSWER, _SHORT = 5.0, 0.5
_TRIES = 3
"""How often a merge is tried, and a file whose part was lost with the worker that had it."""

T = TypeVar("T")


@dataclass(eq=False)
class _Node:
    """A part on a worker: of which files, how high in the tree, made of what, and its copy here."""

    future: Future[Any]
    files: tuple[RankFile, ...]
    height: int
    inputs: tuple[_Node, ...] = ()
    tries: int = 1
    alone: bool = False
    is_copied: bool = False
    copy: RankSummary | None = None


class DaskEngine:
    """Reads files on the workers of a cluster, as many at a time as these have memory for."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._waiting: deque[RankFile] = deque()
        self._suspects: deque[RankFile] = deque()
        self._lost_with_worker: dict[RankFile, int] = {}
        self._reads: set[_Node] = set()
        self._merges: set[_Node] = set()
        self._fetches: set[_Node] = set()
        self._parts = PartsByHeight[_Node]()
        self._held: set[_Node] = set()
        self._arrivals: dict[RankFile, Future[Any]] = {}
        self._done: list[tuple[tuple[RankFile, ...], RankSummary]] = []
        self._is_lost = False

    def read(
        self, files: Sequence[RankFile], options: RankOptions, meter: Meter
    ) -> Iterator[Sequence[RankSummary]]:
        """Yield summaries of up to 64 files each; if the cluster is lost, of all that are left."""
        missing = dict.fromkeys(files)
        self._waiting.extend(files)
        try:
            for _ in self._run(options, meter):
                yield self._settle(missing)
        except ClusterLostError as error:
            self._is_lost = True
            yield self._settle(missing)
            yield self._give_up(missing, str(error))

    def _settle(self, missing: dict[RankFile, None]) -> list[RankSummary]:
        """Return what has been fetched since; its files are no longer ``missing``."""
        done, self._done = self._done, []
        for files, _ in done:
            for file in files:
                del missing[file]
        return [summary for _, summary in done]

    def _give_up(self, missing: dict[RankFile, None], reason: str) -> list[RankSummary]:
        """Return the copies there are of what is ``missing``, and name the rest as lost."""
        copies = [(node.files, node.copy) for node in self._held if node.copy is not None]
        self._done = [(files, copy) for files, copy in copies if files[0] in missing]
        found = self._settle(missing)
        return [*found, *(lost_summary(file.path, reason) for file in missing)]

    def _run(self, options: RankOptions, meter: Meter) -> Iterator[None]:
        while not self._cluster.workers.memory:
            meter.say("waiting for workers")
            self._cluster.look()
            time.sleep(_POLL)
            yield
        prepared = in_thread(self._cluster.prepare)
        while not prepared.done():
            time.sleep(_POLL)
            yield
        prepared.result()
        while self._waiting or self._suspects or self._reads or self._held or self._fetches:
            self._cluster.look()
            meter.say("" if self._cluster.workers.memory else "waiting for workers")
            self._submit_reads(options, meter)
            self._merge_rest()
            self._take_events()
            yield

    def _take_events(self) -> None:
        """Wait a little for something to end; note all that has."""
        try:
            self._events.get(timeout=_POLL)()
            while True:
                self._events.get_nowait()()
        except queue.Empty:
            return

    # Reading

    def _submit_reads(self, options: RankOptions, meter: Meter) -> None:
        """Have the next files read: so many that no worker waits; a suspect when it is alone."""
        while self._waiting and len(self._reads) < _AHEAD * self._cluster.workers.threads:
            self._submit_read(self._waiting.popleft(), options, meter, alone=False)
        if self._suspects and not self._waiting and not self._reads:
            self._submit_read(self._suspects.popleft(), options, meter, alone=True)

    def _submit_read(
        self, file: RankFile, options: RankOptions, meter: Meter, *, alone: bool
    ) -> None:
        arguments = (self._cluster.run, file.path, place_of(file.path), file.size, options)
        future = self._cluster.submit(on_worker.read, *arguments, memory=file.memory)
        node = _Node(future, (file,), 0, alone=alone)
        self._reads.add(node)
        self._watch(node, partial(self._end_read, node, meter))

    def _watch(self, node: _Node, end: Callable[[], None]) -> None:
        node.future.add_done_callback(lambda _: self._events.put(end))

    def _end_read(self, node: _Node, meter: Meter) -> None:
        self._reads.discard(node)
        file = node.files[0]
        error = _error_of(node.future)
        if error is None:
            meter.end(file)
            self._arrivals[file] = self._cluster.submit(on_worker.arrivals_of, node.future)
            self._hold(node)
        elif isinstance(error, _GoneError):
            self._read_again(node, str(error))
        elif isinstance(error, KilledWorker | EndedError | MemoryShortError) and not node.alone:
            self._suspects.append(file)
        else:
            meter.end(file)
            self._done.append((node.files, lost_summary(file.path, _reason(error, file))))

    def _read_again(self, node: _Node, reason: str) -> None:
        """Have the files of a part read again that is gone; too often, they are lost."""
        if node.copy is not None:
            self._done.append((node.files, node.copy))
            return
        for file in node.files:
            times = self._lost_with_worker[file] = self._lost_with_worker.get(file, 0) + 1
            if times < _TRIES:
                self._waiting.append(file)
            else:
                self._done.append(((file,), lost_summary(file.path, reason)))

    # Merging

    def _hold(self, node: _Node) -> None:
        """Keep a part until it is part of another."""
        self._held.add(node)
        if batch := self._parts.put(node, node.height):
            self._merge(tuple(batch), node.height + 1)

    def _merge_rest(self) -> None:
        """Merge what is left when nothing else will come."""
        if self._waiting or self._suspects or self._reads or self._merges or self._fetches:
            return
        if rest := self._parts.take():
            self._merge(tuple(rest), _TALL)

    def _merge(self, inputs: tuple[_Node, ...], height: int, tries: int = 1) -> None:
        future = self._cluster.submit(on_worker.merge, *(node.future for node in inputs))
        files = tuple(file for node in inputs for file in node.files)
        node = _Node(future, files, height, inputs, tries)
        self._merges.add(node)
        self._watch(node, partial(self._end_merge, node))

    def _end_merge(self, node: _Node) -> None:
        self._merges.discard(node)
        error = _error_of(node.future)
        if error is not None and node.tries < _TRIES:
            self._merge(node.inputs, node.height, node.tries + 1)
            return
        inputs, node.inputs = node.inputs, ()  # Their workers may forget them.
        self._held.difference_update(inputs)
        if error is not None:
            for part in inputs:
                self._read_again(part, _reason(error, part.files[0]))
        elif node.height < _TALL:
            self._hold(node)
        else:
            self._held.add(node)
            self._fetch(node)

    def _fetch(self, node: _Node) -> None:
        """Have a part come here, in a thread: its worker may die meanwhile, which takes time."""
        self._fetches.add(node)
        outcome = in_thread(node.future.result)
        outcome.add_done_callback(
            lambda outcome: self._events.put(partial(self._end_fetch, node, outcome))
        )

    def _end_fetch(self, node: _Node, outcome: Outcome[RankSummary]) -> None:
        self._fetches.discard(node)
        self._held.discard(node)
        if outcome.exception() is None:
            self._done.append((node.files, outcome.result()))
        else:
            self._read_again(node, "its summary was lost with the worker that had it")

    # What else is asked of an engine

    def unfinished(self) -> Sequence[RankSummary]:
        """Fetch what has been read and merged; what comes too late is there the next time."""
        nodes = [node for node in self._held if not node.is_copied and not self._is_lost]
        wait([self._copy(node) for node in nodes], _SHORT)
        copies = [node.copy for node in self._held if node.copy is not None]
        return [*(summary for _, summary in self._done), *copies]

    def _copy(self, node: _Node) -> Outcome[Any]:
        """Have a copy of a part come here, while the part stays in the cluster."""

        def note(outcome: Outcome[Any]) -> None:
            if outcome.exception() is None:
                node.copy = on_worker.summary_of(outcome.result())

        node.is_copied = True
        outcome = in_thread(node.future.result)
        outcome.add_done_callback(note)
        return outcome

    def second_pass(
        self, work: Callable[[Arrivals, CollectiveTable], T], table: CollectiveTable
    ) -> Sequence[T]:
        """Have the workers call ``work`` with the collectives that they have kept."""
        try:
            return self._second_pass(work, table)
        except ClusterLostError:
            self._is_lost = True
            return []

    def _second_pass(
        self, work: Callable[[Arrivals, CollectiveTable], T], table: CollectiveTable
    ) -> Sequence[T]:
        if self._is_lost:
            return []
        submit = self._cluster.submit
        shared = submit(on_worker.same, table)
        kept = [future for future in self._arrivals.values() if future.status != "cancelled"]
        outcomes = [
            in_thread(submit(on_worker.apply, work, future, shared).result) for future in kept
        ]
        pending: Collection[Outcome[list[T]]] = outcomes
        while pending:
            self._cluster.look()
            _, pending = wait(pending, _POLL)
        found = [outcome.result() for outcome in outcomes if outcome.exception() is None]
        return [one for ones in found for one in ones]

    def close(self) -> None:
        """Let go of the cluster."""
        for node in self._reads | self._merges:
            node.future.cancel()
        self._cluster.close()


class _GoneError(Exception):
    """Report that a part is no longer in the cluster."""


def _error_of(future: Future[Any]) -> BaseException | None:
    """Return what kept a future, which has ended, from its result."""
    if future.status == "finished":
        return None
    if future.status == "error":
        error: BaseException | None = future.exception(timeout=_ANSWER)
        return error
    return _GoneError("it was lost with the worker that had it")


def _reason(error: BaseException, file: RankFile) -> str:
    if isinstance(error, KilledWorker):
        return "its worker was killed each time: is there enough memory?"
    if isinstance(error, FlameError | _GoneError):
        return reason_of(error, Path(place_of(file.path)))
    return f"{type(error).__name__}: {error}"
