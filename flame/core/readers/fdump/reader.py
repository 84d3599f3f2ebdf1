"""Reads a dump of the injection library into a `RawTrace`, also while it is being written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from flame.core.columns import I8
from flame.core.frames import FrameBuilder
from flame.core.options import LoadOptions, Progress
from flame.core.raw import Paths, RawTrace
from flame.core.readers.fdump import gpu, host, machine
from flame.core.readers.fdump.chunks import Bytes, Chunks, Records, named
from flame.core.readers.fdump.context import Context
from flame.core.readers.fdump.layout import MAGIC
from flame.core.readers.fdump.names import Vocabulary
from flame.core.readers.fdump.remarks import remarks
from flame.core.readers.fdump.stacks import Stacks

_GROWING = (gpu.KERNELS, gpu.COPIES, gpu.NODES, host.CALLS, host.RANGES)


def looks_like(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a dump."""
    return head.startswith(MAGIC)


def read(path: Path, options: LoadOptions, progress: Progress) -> RawTrace:
    """Decode what is whole; what is not is left out and counted.

    Raises InputError where nothing can be read at all.
    """
    with named(path), closing(Bytes(path)) as data:
        return _read(Chunks(data), str(path), options, progress)


def _read(chunks: Chunks, path: str, options: LoadOptions, progress: Progress) -> RawTrace:
    still_open, records, latest = _moments(chunks)
    frames, header = FrameBuilder(), chunks.header
    vocabulary = Vocabulary(latest, frames, clean=options.nvtx_names == "clean")
    stacks = Stacks(latest, vocabulary)
    context = Context(header, records, vocabulary, stacks, options, progress)
    context.expect(_GROWING)
    work = gpu.Work(context)
    nodes, made = gpu.read_nodes(context)
    calls, paths = host.read_calls(context)
    ranges = host.read_ranges(context, still_open)
    return RawTrace(
        work.activities,
        calls,
        ranges,
        nodes,
        frames,
        stacks.builder,
        (machine.read_process(header, vocabulary),),
        machine.read_threads(header, vocabulary, context.threads.ids),
        machine.read_devices(context),
        machine.read_meta(header, vocabulary, path),
        context.last_time,
        [*remarks(chunks, latest, context), *context.warnings()],
        launches=work.launches,
        # Start/end ranges are on no path: then time tells for all of them.
        paths=Paths(None if options.nvtx_start_end else paths, work.recorded, made),
    )


def _moments(chunks: Chunks) -> tuple[dict[str, I8], Records, Records]:
    """The ranges that are open, then the records there are, then those that they may refer to.

    In this order nothing is missed in a file that grows: a range is written as ended before it is
    no longer open, and what a record refers to before the record.
    """
    chunks.update(beyond_tail=True)
    still_open = chunks.records().table(host.OPEN_RANGES, host.OPEN_FIELDS)
    chunks.update(beyond_tail=True)
    records = chunks.records()
    chunks.update(beyond_tail=True)
    return still_open, records, chunks.records()
