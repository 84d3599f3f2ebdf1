"""Read a dump while it grows: at every look the records that have come since the last."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import BinaryIO

import numpy as np

from flame.core.columns import I8, Bool, unique_rows
from flame.core.errors import InputError
from flame.core.live.decode.batch import DumpBatch, NewActivities, NewCalls, NewRanges
from flame.core.live.decode.captures import GraphCaptures
from flame.core.live.decode.pending import DeliveredCalls, PendingRows
from flame.core.live.decode.snapshot_copy import copy_dump
from flame.core.model.activities import NONE
from flame.core.model.meta import Meta
from flame.core.model.raw import TableBuilder
from flame.core.options import LoadOptions
from flame.core.readers.fdump import gpu, host, metadata
from flame.core.readers.fdump.chunks import Chunks, DumpBytes, piece_of, prefix_errors
from flame.core.readers.fdump.context import DumpContext, SharedTables
from flame.core.readers.fdump.layout import (
    HEADER_SIZE,
    RUNNING,
    TEXT,
    Chunk,
    DumpHeader,
    parse_header,
)
from flame.core.readers.fdump.records import NamedColumns, RecordPiece, Records
from flame.core.readers.fdump.samples import FIELDS as SAMPLE_FIELDS
from flame.core.readers.fdump.samples import (
    MODULE_ENDS,
    MODULES,
    SAMPLES,
    DumpSamples,
    SampleRows,
)
from flame.core.readers.fdump.warnings import Losses, growing_dump_warnings
from flame.core.units import format_counted

# In the order in which it is learnt: what refers to something comes after it.
_VOCABULARY = (
    *(TEXT, "name", "meta", "drop", "frame", "range_name", "node", gpu.NODES),
    *(gpu.EXECS, MODULES, MODULE_ENDS, SAMPLES),
)
_EVENTS = (gpu.KERNELS, gpu.COPIES, gpu.GRAPHS, host.LAUNCHES, host.CALLS, host.RANGES)
# What a record refers to is written before the record, and so looked at after it. An open range is
# no longer open after it is written as ended.
_LOOKS = (
    (host.OPEN_RANGES,),
    (gpu.KERNELS, gpu.COPIES, gpu.GRAPHS, SAMPLES),
    (host.LAUNCHES, host.CALLS, host.RANGES, gpu.NODES, gpu.EXECS),
    ("node",),
    ("frame", "range_name"),
    ("name", "meta", "drop", MODULES, MODULE_ENDS),
    (TEXT,),
)
_EVER = (1 << 63) - 1
_LONGEST_CALL = 2_000_000_000  # ns that work waits for its call to return
_MOST_WAITING = 1 << 20  # rows; more would be a dump whose times are wrong
_MOST_OPEN = 1 << 23  # bytes of open ranges, which are all read at every look
_MOST_NAMED = 1 << 21  # different frames, stacks, texts ...: gigabytes of memory
_MOST_DEVICES = 1 << 10
# Reading vocabulary takes so much longer than reading events, and a record at least as long as one
# of so many bytes.
_DEAR, _USUAL = 8, 48


class GrowingDump:
    """A dump that may be growing; its rows refer to the tables in ``shared``.

    ``header`` is as old as the last look at the file: all that was in the file then has been read
    when `read` says that there is no ``rest``. ``process`` is the index of its process. InputError
    where it is no dump, and from then on where it is none any more. ``data`` is closed with it.
    ``sample_records`` rises with every PC sample that was read.
    """

    def __init__(
        self, data: DumpBytes, path: str, source: int, shared: SharedTables, options: LoadOptions
    ) -> None:
        self.path = path
        self.source = source
        self.shared = shared
        self._data = data
        with prefix_errors(path):
            try:
                self._chunks = Chunks(data)
            except BaseException:
                data.close()
                raise
        self.header: DumpHeader = self._chunks.header
        self._context = DumpContext(self.header, shared, options, 0, source)
        self.process = self._context.process
        self._work, self._calls = gpu.GpuRows(self._context), host.DumpCallRows(self._context)
        self._payloads = host.Payloads(self._context)
        self._samples = SampleRows(self._context.vocabulary)
        self.sample_records = 0
        self._captures, self._losses, self._delivered = (
            GraphCaptures(shared),
            Losses(),
            DeliveredCalls(),
        )
        self._taken: dict[int, int] = {}
        self._queue: deque[tuple[str, RecordPiece]] = deque()
        self._behind = 0
        self._seen_open: dict[str, I8] | None = None
        nothing = self._chunks.records_in({})
        self._open, *_ = host.build_push_pop_rows(self._context, _read_open_ranges(nothing))
        self._last_ended: NamedColumns = {
            name: np.zeros(0, np.int64) for name in ("thread", "start")
        }
        self._open_chunks: dict[int, Chunk] = {}
        self._held_work, self._held_calls = PendingRows(NewActivities), PendingRows(NewCalls)
        self._held_others, self._held_ended = PendingRows(NewCalls), PendingRows(NewRanges)
        self._waiting = 0

    def close(self) -> None:
        """Close the file."""
        self._data.close()

    def read(self, most: int = 8 << 20, last: bool = False) -> DumpBatch:
        """Read about ``most`` bytes of new records, less where these name what comes after them.

        ``last``: the process is gone; then nothing waits for what would come.
        """
        with prefix_errors(self.path):
            if not self._queue:
                self._look()
            self._read_pieces(most)
        over = not self._queue and (last or self.header.state != RUNNING)
        due = self._take_due(over)
        rest, newest = bool(self._queue), self._context.last_time
        return DumpBatch(self.source, *due, self._open_ranges(), rest, newest)

    def unread_bytes(self) -> int:
        """Return the bytes that had been written at the last look and have not been read."""
        return self._behind

    def read_heartbeat(self) -> int:
        """Read when the process last said that it goes on, ns; now, however old ``header`` is."""
        with suppress(InputError, OSError):
            return parse_header(self._data.read(0, HEADER_SIZE)).end_monotonic
        return self.header.end_monotonic

    def build_samples(self) -> DumpSamples | None:
        """Build the PC samples so far, of all launches of each kernel; None without any."""
        return self._samples.build(self.process)

    def meta(self) -> Meta:
        """Return the metadata of the recording so far."""
        return metadata.read_meta(self.header, self._context.vocabulary, self.path)

    def warnings(self) -> tuple[str, ...]:
        """Return what the reader of a flame graph has to know of the dump so far."""
        late = self._delivered.late
        notes = growing_dump_warnings(self._chunks, self._context, self._losses)
        more = format_counted(
            late,
            "GPU activity is shown without its call, which took very long",
            "GPU activities are shown without their call, which took very long",
        )
        return (*notes, *([more] if late else []))

    def copy_to(self, file: BinaryIO) -> None:
        """Write the dump as it is now, which may be more than has been read; raises OSError too."""
        with prefix_errors(self.path):
            copy_dump(self._data, file, _LOOKS)

    # A look at the file

    def _look(self) -> None:
        """Look at the file: queue new vocabulary first, then events in the order of the file."""
        pieces: dict[str, list[RecordPiece]] = {}
        beyond_tail = self.header.state != RUNNING
        for keys in _LOOKS:
            self._chunks.update(beyond_tail, keys)
            if host.OPEN_RANGES in keys:
                self.header = self._chunks.header
                self._seen_open = self._open_records()
            else:
                pieces |= {key: self._take_new_pieces(key) for key in keys}
        self._queue.extend((key, piece) for key in _VOCABULARY for piece in pieces[key])
        events = ((key, piece) for key in _EVENTS for piece in pieces[key])
        self._queue.extend(sorted(events, key=lambda queued: queued[1].begin))
        self._behind = sum(piece.end - piece.begin for _, piece in self._queue)

    def _open_records(self) -> dict[str, I8]:
        """Read the records of ranges that are open, which are rewritten in place."""
        self._open_chunks |= {
            chunk.offset: chunk for chunk in self._chunks.take_changed(host.OPEN_RANGES)
        }
        self._open_chunks = {
            at: chunk for at, chunk in self._open_chunks.items() if chunk.committed
        }
        if sum(chunk.committed for chunk in self._open_chunks.values()) > _MOST_OPEN:
            raise InputError("damaged: more ranges are open than in any program")
        return _read_open_ranges(self._chunks.records_of(self._open_chunks.values()))

    def _take_new_pieces(self, key: str) -> list[RecordPiece]:
        """Take the records of a kind that have come since the last call."""
        size = max(self._chunks.layouts[key].size, 1) if key in self._chunks.layouts else 1
        pieces = []
        for chunk in self._chunks.take_changed(key):
            low, high = self._taken.pop(chunk.offset, 0), chunk.committed // size * size
            if high > low:
                pieces.append(piece_of(chunk, low))
            if not chunk.sealed:
                self._taken[chunk.offset] = max(low, high)
        return pieces

    # What it has shown

    def _read_pieces(self, most: int) -> None:
        """Read about ``most`` bytes of what the last look has shown."""
        records = self._chunks.records_in(self._next_pieces(most))
        if self._seen_open is not None:
            self._learn(records)
        if self._seen_open is not None and not self._is_learning:
            self._open, *_ = host.build_push_pop_rows(self._context, self._seen_open)
            self._seen_open = None
            self._close_ranges(self._last_ended)
        self._read_events(records)
        self._check_size()

    def _next_pieces(self, most: int) -> dict[str, list[RecordPiece]]:
        """Take the next pieces from the queue, about ``most`` bytes."""
        pieces: dict[str, list[RecordPiece]] = {}
        while self._queue and most > 0:
            key, piece = self._queue.popleft()
            pieces.setdefault(key, []).append(piece)
            most -= self._estimate_cost(key, piece)
            self._behind -= piece.end - piece.begin
        return pieces

    def _estimate_cost(self, key: str, piece: RecordPiece) -> int:
        """Estimate what it takes to read ``piece``, in bytes of usual events."""
        size = piece.end - piece.begin
        if key in _VOCABULARY:
            return size * _DEAR
        return max(size, size // self._chunks.layouts[key].size * _USUAL)

    @property
    def _is_learning(self) -> bool:
        """Whether vocabulary is still to be read."""
        return bool(self._queue) and self._queue[0][0] in _VOCABULARY

    def _learn(self, records: Records) -> None:
        context, more = self._context, self._is_learning
        context.learn(records, last=self.header.state != RUNNING and not more, more=more)
        self._losses.learn(records)
        if records.pieces("name"):
            self._calls.forget_names()
        self._captures.learn_execs(records.table(gpu.EXECS, gpu.FIELDS[gpu.EXECS]))
        for piece in records.columns(gpu.NODES, gpu.FIELDS[gpu.NODES]):
            self._captures.learn(gpu.build_node_rows(context, piece))
        self._samples.learn_modules(records)
        for piece in records.columns(SAMPLES, SAMPLE_FIELDS):
            self._add_samples(piece)

    def _add_samples(self, piece: dict[str, I8]) -> None:
        """Add samples without their launch: single launches are not kept for good."""
        self._samples.add(piece | {"correlation": np.zeros_like(piece["correlation"])})
        self.sample_records += len(piece["samples"])

    def _check_size(self) -> None:
        """Raise InputError where the dump names more than any program: names are kept for good."""
        shared, names = self.shared, len(self._context.vocabulary)
        lists = len(shared.threads), len(shared.configs), len(shared.frames), len(shared.stacks)
        if max(*lists, names, len(self._samples), len(self._samples.modules)) > _MOST_NAMED:
            raise InputError(f"too much: it names more than {_MOST_NAMED:,} different things")
        if len(self._context.devices) > _MOST_DEVICES:
            raise InputError(f"damaged: it names more than {_MOST_DEVICES:,} GPUs")

    def _read_events(self, records: Records) -> None:
        for table in records.columns(host.LAUNCHES, host.FIELDS[host.LAUNCHES]):
            within = self._calls.frames_around(table["flags"])
            self._held_calls.add(self._calls.launch_rows(table) | {"within": within})
        for table in records.columns(host.CALLS, host.FIELDS[host.CALLS]):
            rows = self._calls.call_rows(table)
            self._held_others.add(rows | {"within": np.full(len(rows["start"]), NONE)})
        for table in records.columns(host.RANGES, host.FIELDS[host.RANGES]):
            self._add_ended(host.select_kinds(table, (host.PUSH_POP,)))
        for table in records.columns(gpu.KERNELS, gpu.FIELDS[gpu.KERNELS]):
            self._add_work(self._work.kernel_rows(table))
        for table in records.columns(gpu.COPIES, gpu.FIELDS[gpu.COPIES]):
            self._add_work(self._work.copy_rows(table))
        for table in records.columns(gpu.GRAPHS, gpu.FIELDS[gpu.GRAPHS]):
            self._add_work(self._work.graph_rows(table))

    def _add_ended(self, table: dict[str, I8]) -> None:
        context = self._context
        rows, kept, deep = host.build_push_pop_rows(context, table)
        context.deep_ranges += deep
        context.timeless_ranges += len(table["start"]) - len(rows["start"]) - deep
        self._payloads.add(kept)
        self._held_ended.add(rows)
        self._close_ranges(rows)
        both = {name: np.append(self._last_ended[name], rows[name]) for name in self._last_ended}
        latest, _ = unique_rows([both["thread"][::-1]])
        self._last_ended = {name: column[::-1][latest] for name, column in both.items()}

    def _close_ranges(self, rows: NamedColumns) -> None:
        """Note that these ranges are no longer open, although they may look so for a moment."""
        self._open = host.select_rows(self._open, ~host.share_begin(self._open, rows))

    def _open_ranges(self) -> NewRanges:
        rows = TableBuilder(NewRanges)
        rows.add(**self._open, end=self._open["start"])
        return rows.build()

    def _add_work(self, rows: NamedColumns) -> None:
        python, nvtx = self._captures.stacks_of(rows["graph_node"])
        captured = {"captured_python": python, "captured_nvtx": nvtx}
        self._held_work.add(rows | captured | {"graph": rows["graph_node"] != NONE})

    # What is due

    def _take_due(self, over: bool) -> tuple[NewActivities, NewCalls, NewCalls, NewRanges]:
        """Take the rows that have been read and need not wait; all when the dump is ``over``.

        What is not read yet began to be written after ``upto``: up to then it is complete.
        """
        all_at_once = over or not self._queue or self._waiting > _MOST_WAITING
        upto = _EVER if all_at_once else min(self._queue[0][1].made, _EVER)
        if self._is_learning:
            upto = 0
        calls, later = self._held_calls.take(lambda rows: rows.end <= upto)
        others, much = self._held_others.take(lambda rows: rows.end <= upto)
        ended, more = self._held_ended.take(lambda rows: rows.end <= upto)
        self._delivered.learn(calls)
        everything = over or self._waiting > _MOST_WAITING
        work, most = self._held_work.take(lambda rows: self._need_no_call(rows, upto) | everything)
        self._waiting = later + much + more + most
        return work, calls, others, ended

    def _need_no_call(self, work: NewActivities, upto: int) -> Bool:
        """Return which rows need not wait for their calls."""
        past = work.end <= upto
        delivered = self._delivered.are_delivered(work)
        now = min(upto, max(self._context.last_time, self.header.end_monotonic))
        alone = ~delivered & past & (work.end < now - _LONGEST_CALL)
        self._delivered.deliver_without_call(work, alone)
        return (delivered & past) | alone


def _read_open_ranges(records: Records) -> dict[str, I8]:
    return records.table(host.OPEN_RANGES, host.FIELDS[host.OPEN_RANGES])
