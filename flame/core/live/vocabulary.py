"""Resolve the numbers in live rows: tables that are rebuilt only when they have grown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.frames import FrameTable
from flame.core.model.grouping import Grouping, add_grouping
from flame.core.model.meta import Device, Process, Source, Thread
from flame.core.model.stacks import StackTable
from flame.core.projection.labels import Labeller, Naming, keep_labels, kept_namings
from flame.core.readers.fdump.context import SharedTables


@dataclass(frozen=True, eq=False)
class SnapshotVocabulary:
    """The vocabulary of one snapshot. ``process`` i4: new numbers of the processes, by their old.

    The last of these is for what is unknown (-1).
    """

    frames: FrameTable
    stacks: StackTable
    processes: tuple[Process, ...]
    threads: tuple[Thread, ...]
    devices: tuple[Device, ...]
    sources: tuple[Source, ...]
    process: I4
    grouping: Grouping


class LiveVocabulary:
    """Builds the `SnapshotVocabulary` from the tables that all dumps of a recording share."""

    def __init__(self, shared: SharedTables) -> None:
        self._shared = shared
        self._stacks = shared.stacks.build()
        self._labellers: dict[Naming, Labeller] = {}
        self._known: SnapshotVocabulary | None = None
        self._signature: tuple[object, ...] = ()

    def stacks(self) -> StackTable:
        """Return all stacks so far."""
        if len(self._stacks) < len(self._shared.stacks):
            self._stacks = self._shared.stacks.build()
        return self._stacks

    def parents(self) -> I4:
        """Return the stack around each stack; around the empty stack is itself."""
        return np.maximum(self.stacks().parent, 0)

    def snapshot(
        self, numbers: Sequence[int], sources: Sequence[Source], streams: I8
    ) -> SnapshotVocabulary:
        """Return the vocabulary now. ``numbers`` are those of ``sources`` in shared tables."""
        shared = self._shared
        ids = tuple(streams.tolist())
        listed = tuple(shared.processes), tuple(shared.threads), tuple(shared.devices)
        labels = tuple((source.label, source.meta.path) for source in sources)
        sizes = len(shared.frames), len(shared.stacks)
        signature = (listed, tuple(numbers), labels, ids, sizes)
        if self._known is None or signature != self._signature:
            self._known = self._build(numbers, tuple(sources), np.array(ids, np.int32))
            sizes = len(shared.frames), len(shared.stacks)
            self._signature = (listed, tuple(numbers), labels, ids, sizes)
        return replace(self._known, sources=tuple(sources))

    def _build(
        self, numbers: Sequence[int], sources: tuple[Source, ...], streams: Column
    ) -> SnapshotVocabulary:
        shared, known = self._shared, self._known
        place = {number: at for at, number in enumerate(numbers)}
        process, processes = self._number_processes(place)
        threads = tuple(replace(t, process=int(process[t.process])) for t in shared.threads)
        devices = tuple(
            replace(device, source=place.get(device.source, 0)) for device in shared.devices
        )
        listed = processes, threads, devices
        grouping = add_grouping(
            shared.frames, *listed, streams, sources, known.grouping if known else None
        )
        if known and len(known.frames) == len(shared.frames):
            frames = known.frames
        else:
            frames = shared.frames.build()
            self._label(frames)
        return SnapshotVocabulary(frames, self.stacks(), *listed, sources, process, grouping)

    def _number_processes(self, place: dict[int, int]) -> tuple[I4, tuple[Process, ...]]:
        """Select the processes of the dumps that are shown, and number them anew."""
        known = self._shared.processes
        shown = [number for number, process in enumerate(known) if process.source in place]
        shown.sort(key=lambda number: place[known[number].source])
        numbers = np.full(len(known) + 1, NONE, np.int32)
        numbers[shown] = np.arange(len(shown))
        kept = [replace(known[number], source=place[known[number].source]) for number in shown]
        return numbers, tuple(kept)

    def _label(self, frames: FrameTable) -> None:
        """Label ``frames`` under every naming that has been asked for."""
        if self._known is None:
            return
        for naming in kept_namings(self._known.frames):
            self._labellers.setdefault(naming, Labeller(naming))
        keep_labels(
            frames,
            {naming: labeller.labels(frames) for naming, labeller in self._labellers.items()},
        )
