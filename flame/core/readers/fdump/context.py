"""Share the state of reading a dump: the vocabulary, threads, GPUs, and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from flame.core.columns import I4, I8, Bool, Column
from flame.core.model.activities import NONE
from flame.core.model.frames import FrameBuilder, Kind
from flame.core.model.launches import LaunchConfig
from flame.core.model.meta import Device, Process, Thread
from flame.core.model.stacks import StackBuilder
from flame.core.options import LoadOptions
from flame.core.readers.fdump import metadata
from flame.core.readers.fdump.ids import OptionalRowIds
from flame.core.readers.fdump.layout import DumpHeader
from flame.core.readers.fdump.records import Records
from flame.core.readers.fdump.stacks import NodeStacks
from flame.core.readers.fdump.vocabulary import DEVICE, DEVICE_UUID, THREAD, DumpVocabulary
from flame.core.readers.shared import cupti
from flame.core.units import format_counted

# A range may have been opened by the process that this one was forked from. Nothing is recorded for
# a hundred days, though, and the time lines of all threads must fit 62 bits.
_LONGEST = 1 << 53
_31_BITS = 0x7FFFFFFF


class DumpContext:
    """State of reading one dump, which has the number ``source`` among those that share ``shared``.

    Times are ns since ``origin`` on the monotonic clock.
    """

    def __init__(
        self,
        header: DumpHeader,
        shared: SharedTables,
        options: LoadOptions,
        origin: int,
        source: int = 0,
    ) -> None:
        self.shared = shared
        self.source = source
        self.vocabulary = DumpVocabulary(shared.frames, clean=options.nvtx_names == "clean")
        self.stacks = NodeStacks(self.vocabulary, shared.stacks)
        self.process = len(shared.processes)
        shared.processes.append(metadata.build_process(header, self.vocabulary, source))
        self.threads = OptionalRowIds(self._new_thread)
        self.devices = OptionalRowIds(self._new_device)
        self.last_time = 0
        self.untimed: Counter[str] = Counter()
        self.timeless_ranges = 0
        self.deep_ranges = 0
        self._header = header
        self._origin = origin

    def _new_thread(self, tid: int) -> int:
        self.shared.threads.append(Thread(self.process, tid, self.thread_name(tid)))
        return len(self.shared.threads) - 1

    def _new_device(self, number: int) -> int:
        self.shared.devices.append(metadata.build_device(self.vocabulary, number, self.source))
        return len(self.shared.devices) - 1

    def learn(self, records: Records, last: bool = True, more: bool = False) -> None:
        """Learn the vocabulary among ``records``, a part of what there is now if there is ``more``.

        Not the ``last``: what is missing may come later.
        """
        self.vocabulary.learn(records)
        self.stacks.learn(records, last, more)
        if records.pieces("meta"):
            process = metadata.build_process(self._header, self.vocabulary, self.source)
            self.shared.processes[self.process] = process
        if records.pieces("name"):
            self._learn_names(records.table("name", ("kind", "id")))

    def _learn_names(self, named: dict[str, I8]) -> None:
        """Replace threads and devices by ones with the names that have come since."""
        header, vocabulary, shared = self._header, self.vocabulary, self.shared
        kinds, ids = named["kind"], named["id"]
        for tid in ids[kinds == THREAD].tolist():
            if (index := self.threads.get(tid)) != NONE:
                name = metadata.thread_name(header, vocabulary, tid)
                shared.threads[index] = replace(shared.threads[index], name=name)
        for number in ids[np.isin(kinds, (DEVICE, DEVICE_UUID))].tolist():
            if (index := self.devices.get(number)) != NONE:
                shared.devices[index] = metadata.build_device(vocabulary, number, self.source)

    def thread_indices(self, tids: Column) -> I4:
        """Return indices of threads by their ids; -1 for 0, which is no thread."""
        return self.threads.look_up([np.where(tids == 0, NONE, tids & _31_BITS)])

    def thread_and_stacks(self, piece: dict[str, I8]) -> dict[str, I4]:
        """Return columns of `RecordedOrigins`: the thread and the stacks of each record."""
        return {
            "thread": self.thread_indices(piece["tid"]),
            "python": self.stacks.stacks_of(piece["python"], Kind.PYTHON),
            "nvtx": self.stacks.stacks_of(piece["nvtx"], Kind.NVTX),
        }

    def times(self, column: I8) -> tuple[I8, Bool]:
        """Do as `since`; the recording lasts until the last of them."""
        since, known = self.since(column)
        self.last_time = max(self.last_time, int(since[known].max(initial=0)))
        return since, known

    def since(self, column: I8) -> tuple[I8, Bool]:
        """Return times since ``origin``, and which of them were recorded and are not absurd."""
        known = (column > 0) & (np.abs(column - self._header.start_monotonic) < _LONGEST)
        return column - self._origin, known

    def thread_name(self, tid: int) -> str:
        """Return what a thread is called; empty where that is not known."""
        return metadata.thread_name(self._header, self.vocabulary, tid)

    def reach_end(self, header: DumpHeader) -> None:
        """Let the recording last until it was ended, or was last seen to go on."""
        self.times(np.array([header.end_monotonic]).astype(np.int64))

    def spans(self, what: str, start: I8, end: I8) -> tuple[I8, I8]:
        """Return starts and ends of ``what``; a missing one is taken from the other: 0 ns."""
        (start, started), (end, ended) = self.times(start), self.times(end)
        self.untimed[what] += int((~(started & ended)).sum())
        return cupti.complete_spans(start, started, end, ended)

    def time_warnings(self) -> Iterator[str]:
        """Yield a warning for each kind of record without usable times."""
        if self.timeless_ranges:
            have = format_counted(self.timeless_ranges, "NVTX range has", "NVTX ranges have")
            yield f"{have} no time that makes sense: left out"
        if self.deep_ranges:
            yield format_counted(
                self.deep_ranges,
                "NVTX range is nested too deep: its time counts in the range around it",
                "NVTX ranges are nested too deep: their time counts in the range around them",
            )
        yield from cupti.untimed_warnings(self.untimed)


class SharedTables:
    """The tables that dumps of one recording share; index columns are indices into its lists.

    ``source`` of a process or device is its dump's number. Names may come late: then the entry is
    replaced by one with the name.
    """

    def __init__(self) -> None:
        self.frames = FrameBuilder()
        self.stacks = StackBuilder()
        self.processes: list[Process] = []
        self.threads: list[Thread] = []
        self.devices: list[Device] = []
        self.configs: list[LaunchConfig] = []
        self._configs: dict[LaunchConfig, int] = {}

    def config_index(self, config: LaunchConfig) -> int:
        """Return the index of a launch configuration, new or known."""
        index = self._configs.setdefault(config, len(self.configs))
        if index == len(self.configs):
            self.configs.append(config)
        return index
