"""Make the frames of the grouping levels: processes, threads, devices, streams, shapes, ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from flame.core.columns import I4, Bool, Column, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import SMALLER, Frame, FrameBuilder, FrameTable, Kind
from flame.core.model.meta import Device, Process, Source, Thread, file_labels
from flame.core.names.kernel_category import COMMUNICATION, COPY, OTHER, category_of


@dataclass(frozen=True)
class Grouping:
    """Hold the ids of the frames to group by.

    ``process``, ``thread``, ``device``: i4 by index of the profile's lists. ``stream``: i4 by
    place of the stream id in ``stream_ids`` (sorted). ``shapes``: i4 by frame id of a range, -1
    where it has no shapes. ``rank``: i4 by index of the processes. ``category``: i4 by frame id of
    a kernel, copy, memset or graph, -1 for other frames. ``rest`` is the frame for what is too
    small to show.
    """

    process: I4
    thread: I4
    device: I4
    stream_ids: I4
    stream: I4
    shapes: I4
    rank: I4
    category: I4
    rest: int

    def padded(self, size: int) -> Grouping:
        """Make the same for a table of ``size`` frames, of which those behind are of no group."""
        more = np.full(size - len(self.category), -1, np.int32)
        shapes, category = (np.append(one, more) for one in (self.shapes, self.category))
        return replace(self, shapes=shapes, category=category)

    def communicates(self, frames: FrameTable) -> Bool:
        """Say which of ``frames`` are of the category that moves data between GPUs, bool by id."""
        categories = np.flatnonzero(frames.kind == Kind.CATEGORY).tolist()
        named = [frame for frame in categories if frames[frame].name == COMMUNICATION]
        found: Bool = np.isin(self.category, named)
        return found

    def stream_of(self, ids: Column) -> I4:
        """Look up the frame ids of the stream ``ids``; -1 for the unknown stream (-1)."""
        place = np.searchsorted(self.stream_ids, ids)
        return np.append(self.stream, np.int32(-1))[np.where(ids < 0, -1, place)]


def add_grouping(
    frames: FrameBuilder,
    processes: tuple[Process, ...],
    threads: tuple[Thread, ...],
    devices: tuple[Device, ...],
    streams: Column,
    sources: tuple[Source, ...] = (),
    beginning: Grouping | None = None,
) -> Grouping:
    """Add the grouping frames of a profile to ``frames``; those of its ``beginning`` are there."""
    shapes = _extend_shapes(frames, _NONE if beginning is None else beginning.shapes)
    category = _extend_categories(frames, _NONE if beginning is None else beginning.category)
    files = [source.label for source in sources] or [""]
    of_process = [files[process.source] for process in processes]
    of_thread = [of_process[one.process] if one.process >= 0 else files[0] for one in threads]
    of_device = [file_labels(device, sources) if sources else "" for device in devices]
    stream_ids = unique(streams).astype(np.int32)
    stream_ids = stream_ids[stream_ids >= 0]
    return Grouping(
        _add(frames, Kind.PROCESS, _label(map(process_name, processes), of_process)),
        _add(frames, Kind.THREAD, _label(map(thread_name, threads), of_thread)),
        _add(frames, Kind.DEVICE, _label(map(device_name, devices), of_device)),
        stream_ids,
        _add(frames, Kind.STREAM, (f"stream {number}" for number in stream_ids.tolist())),
        shapes,
        _add_ranks(frames, processes, sources),
        category,
        frames.add(Frame(Kind.REST, SMALLER)),
    )


def _add_ranks(
    frames: FrameBuilder, processes: tuple[Process, ...], sources: tuple[Source, ...]
) -> I4:
    """The frame of each process's file; -1 where there is only one file."""
    if len(sources) < 2:
        return np.full(len(processes), -1, np.int32)
    return _add(frames, Kind.RANK, (sources[process.source].label for process in processes))


def _label(names: Iterable[str], of_name: Sequence[str]) -> Iterator[str]:
    """Label the ``names`` that several files have by the file; ``of_name`` is each name's file."""
    pairs = list(zip(names, of_name, strict=True))
    files = Counter(name for name, _ in set(pairs))
    for name, file in pairs:
        yield f"{name} · {file}" if files[name] > 1 else name


def process_name(process: Process) -> str:
    """Name ``process`` as ``name [pid]``, without the pid where it is not known (-1)."""
    return f"{process.name or 'process'} [{process.pid}]" if process.pid >= 0 else process.name


def thread_name(thread: Thread) -> str:
    """Name ``thread`` as ``name [tid]``."""
    return f"{thread.name or 'thread'} [{thread.tid}]"


def device_name(device: Device) -> str:
    """Name ``device`` as ``GPU id name``."""
    return f"GPU {device.id} {device.name}".rstrip()


def _add(frames: FrameBuilder, kind: Kind, names: Iterable[str]) -> I4:
    return np.array([frames.add(Frame(kind, name)) for name in names], np.int32)


_NONE: I4 = np.zeros(0, np.int32)


def _extend_shapes(frames: FrameBuilder, shapes: I4) -> I4:
    """Extend ``shapes``, which has those of the first ``frames``, to all of them."""
    first = len(shapes)
    shapes = np.append(shapes, np.full(len(frames) - first, -1, np.int32))
    texts = {index: frames[index].get("shapes") for index in frames.described(first)}
    for index, text in sorted(texts.items()):
        if text:
            shapes[index] = frames.add(Frame(Kind.SHAPES, text))
    return shapes


def _extend_categories(frames: FrameBuilder, category: I4) -> I4:
    """Extend ``category``, which has those of the first ``frames``, to all of them."""
    first = len(category)
    category = np.append(category, np.full(len(frames) - first, -1, np.int32))
    for index in frames.activities(first):
        category[index] = frames.add(Frame(Kind.CATEGORY, category_of_frame(frames[index])))
    return category


def category_of_frame(frame: Frame) -> str:
    """Choose the category of what ran on a GPU: a kernel by its name, a memset is a copy."""
    if frame.kind == Kind.KERNEL:
        return category_of(frame.name, frame.get("demangled"))
    return OTHER if frame.kind == Kind.GRAPH else COPY
