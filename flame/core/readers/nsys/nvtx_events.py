"""Read what NVTX holds besides ranges that nest, once somebody asks: marks, start/end, the GIL."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial

import numpy as np

from flame.core.columns import I4, I8, U1, Column, distinct, unique_rows
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.raw import OPEN, TableBuilder, close_open_ends
from flame.core.model.threads.events import EventName, EventStyle, EventThread, ThreadEvents
from flame.core.options import LoadOptions, silent
from flame.core.readers.nsys import metadata
from flame.core.readers.nsys.context import NsysContext, pid_of, process_keys, tid_of
from flame.core.readers.nsys.nvtx_frames import (
    GIL_TRACE,
    MARK,
    PUSH_POP,
    PYTHON_BACKTRACE,
    START_END,
    TABLE,
    RangeFrames,
    RangeNames,
    RangeTexts,
)
from flame.core.readers.shared.row_ids import IdByKey
from flame.core.readers.sqlite.numbering import KeyColumns, RowNumbers
from flame.core.readers.sqlite.source import (
    NULL,
    NUMBER,
    TEXT,
    TableKey,
    TableQuery,
    TableSource,
)

_KEY = (TEXT, "textId", "domainId", "globalTid", "eventType")
_STYLES = {MARK: EventStyle.MARK, START_END: EventStyle.START_END}
_NONE = 255
_SUM_LIMIT = 1 << 62
_64_BITS = (1 << 64) - 1


@dataclass
class TableSign:
    """Tell a table from another one by the number of its rows, and the sum of their starts."""

    rows: int = 0
    total: int = 0

    def add(self, start: I8) -> None:
        """Add rows with these starts as recorded."""
        self.rows += len(start)
        self.total = (self.total + int(start.sum())) & _64_BITS


@dataclass(frozen=True)
class NvtxEvents:
    """Hold what a load knows of the events that it leaves out, to read them later.

    ``threads`` and ``processes`` are the keys of those that the trace knows, in their order, and
    ``last_time`` is its last, until which ranges without an end are open.
    """

    sign: TableSign
    names: RangeNames
    options: LoadOptions
    threads: tuple[int, ...] = ()
    processes: tuple[int, ...] = ()
    last_time: int = 0


def has_events(keys: I8, names: RangeNames) -> bool:
    """Tell whether rows with any of these ``keys`` are events: domains, threads and types."""
    candidates = np.isin(keys[:, 2], (MARK, START_END)) | (GIL_TRACE in names.domains.values())
    return bool((_styles(keys[candidates], names) != _NONE).any())


def _styles(keys: I8, names: RangeNames) -> U1:
    """The `EventStyle` of rows by domain, thread and type, u1[n]; `_NONE` of others."""
    domain, thread, kind = keys.T
    found = np.full(len(keys), _NONE, np.uint8)
    for number, style in _STYLES.items():
        found[kind == number] = style
    own = _of_domains(domain, thread, names)
    of_gil, is_range = own == GIL_TRACE, np.isin(kind, (PUSH_POP, START_END))
    found[of_gil & is_range] = EventStyle.OF_PROFILER
    found[(own == PYTHON_BACKTRACE) | (of_gil & ~is_range) | (thread == NULL)] = _NONE
    return found


def _of_domains(domain: I8, thread: I8, names: RangeNames) -> Column:
    """The names of the domains of rows, as objects."""
    process = process_keys(thread)
    first, place = unique_rows([domain, process])
    where = zip(domain[first].tolist(), process[first].tolist(), strict=True)
    texts = [names.domains.get((pid_of(pid), 0 if key == NULL else key), "") for key, pid in where]
    return np.array(texts, object)[place]


@dataclass(frozen=True)
class _Rows:
    """Events while the table is read; what names them is one row of keys."""

    start: I8
    end: I8
    number: I8


@dataclass
class _Table:
    """What one pass over the table finds."""

    context: NsysContext
    known: NvtxEvents
    texts: RangeTexts
    keys: RowNumbers = field(default_factory=lambda: RowNumbers(len(_KEY)))
    sign: TableSign = field(default_factory=TableSign)

    def read(self) -> _Rows:
        styles = KeyColumns(self.keys, lambda keys: [_styles(keys[:, 2:], self.known.names)])
        rows = TableBuilder(_Rows)
        query = TableQuery(
            TABLE, ("start", "end"), TableKey(_KEY, self.keys, "text", self.texts.numbers)
        )
        for chunk in self.context.source.chunks(query):
            self.sign.add(chunk["start"])
            (style,) = styles.of(chunk[NUMBER])
            start, end = (self.context.times(chunk[name]) for name in ("start", "end"))
            some = np.flatnonzero((style != _NONE) & (start != NULL))
            end = np.where(end == NULL, OPEN, end)
            rows.add(start=start[some], end=end[some], number=chunk[NUMBER][some])
        return rows.build()

    def build(self, rows: _Rows) -> ThreadEvents:
        """Give the events their names and threads."""
        keys = self.keys.rows()
        used, place = distinct(rows.number)
        keys = keys[used]
        style = _styles(keys[:, 2:], self.known.names)[place]
        end = close_open_ends(rows.end, self.known.last_time)
        end = np.where(style == EventStyle.MARK, rows.start, np.maximum(end, rows.start))
        _check_total(end - rows.start)
        names, name = self._names(keys)
        threads, thread = _threads(self.context, self.known, keys[:, 3])
        in_ranges = self.known.options.nvtx_start_end
        columns = (style, name[place], thread[place], rows.start, end)
        return ThreadEvents(names, threads, *columns, in_ranges=in_ranges)

    def _names(self, keys: I8) -> tuple[tuple[EventName, ...], I4]:
        """Names of events, and which of them each of ``keys`` has."""
        frames = RangeFrames(self.context, self.texts, self.known.names)
        codes = self.texts.codes()[keys[:, 0]]
        texts = zip(codes.tolist(), keys[:, 1].tolist(), strict=True)
        text = [frames.text_code(*pair) for pair in texts]
        domains = _of_domains(keys[:, 2], keys[:, 3], self.known.names).tolist()
        names: list[EventName] = []

        def add(code: int, domain: str) -> int:
            names.append(EventName(self.texts.names[code].name, domain))
            return len(names) - 1

        ids: IdByKey[tuple[int, str]] = IdByKey(add)
        places = np.array([ids[pair] for pair in zip(text, domains, strict=True)], np.int32)
        return tuple(names), places


def read_events(known: NvtxEvents, source: TableSource) -> ThreadEvents | None:
    """Read the events of which ``known`` tells; None if the table is not the same any more.

    Raises InputError where their times add up to more than 64 bits hold.
    """
    context = NsysContext(source, known.options, silent)
    table = _Table(context, known, RangeTexts(known.options.nvtx_names == "clean"))
    rows = table.read()
    return table.build(rows) if table.sign == known.sign else None


def _check_total(lengths: I8) -> None:
    if float(lengths.sum(dtype=np.float64)) >= _SUM_LIMIT:
        raise InputError("damaged: the times in it add up to more than a century")


def _threads(
    context: NsysContext, known: NvtxEvents, keys: I8
) -> tuple[tuple[EventThread, ...], I4]:
    """The threads of ``keys``, and which of them each is."""
    number = context.thread_numbers(keys)
    threads, processes = metadata.read_threads(context), metadata.read_processes(context)
    threads_known, processes_known = (
        {key: place for place, key in enumerate(listed)}
        for listed in (known.threads, known.processes)
    )
    made = [
        EventThread(
            pid_of(key),
            tid_of(key),
            thread.name or processes[thread.process].name,
            processes_known.get(key & ~0xFFFFFF, -1),
            threads_known.get(key, -1),
        )
        for key, thread in zip(context.threads.keys, threads, strict=True)
    ]
    return tuple(made), number


def events_reader(known: NvtxEvents, context: NsysContext) -> partial[ThreadEvents | None]:
    """Tell how to read the events of which ``known`` tells, once all else of the trace is."""
    threads, processes = tuple(context.threads.keys), tuple(context.processes.keys)
    whole = replace(known, threads=threads, processes=processes, last_time=context.last_time)
    return partial(read_events, whole)
