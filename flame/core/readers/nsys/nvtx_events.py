"""Tell what NVTX holds besides ranges that nest: marks, start/end ranges, the GIL."""

from __future__ import annotations

from functools import partial

import numpy as np

from flame.core.columns import (
    I4,
    I8,
    SUM_LIMIT,
    U1,
    Bool,
    Column,
    distinct,
    is_any,
    order_by,
    unique_rows,
)
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.raw import close_open_ends
from flame.core.model.threads.events import EventName, EventStyle, EventThread, ThreadEvents
from flame.core.readers.nsys import metadata
from flame.core.readers.nsys.context import NsysContext, pid_of, process_keys, tid_of
from flame.core.readers.nsys.nvtx_frames import (
    GIL_TRACE,
    MARK,
    PUSH_POP,
    PYTHON_BACKTRACE,
    START_END,
    RangeFrames,
    RangeNames,
)
from flame.core.readers.shared.row_ids import IdByKey
from flame.core.readers.sqlite.source import NULL

_STYLES = {MARK: EventStyle.MARK, START_END: EventStyle.START_END}
NOTED = tuple(_STYLES)
"""Types of rows that may be events whatever their domain."""
_NONE = 255


@dataclass(frozen=True, eq=False)
class NumberedRows:
    """Hold rows of the table; what names each is the row ``number`` of keys, i4[n].

    Keys begin with code of the text, id of the text, domain, category, thread and type.
    """

    start: I8
    end: I8
    number: I4

    def take(self, rows: Column) -> NumberedRows:
        """Take some of the rows."""
        return NumberedRows(self.start[rows], self.end[rows], self.number[rows])


@dataclass(frozen=True, eq=False)
class NotedRows(NumberedRows):
    """Hold rows that may be events; ``place`` i4[n] is how many ranges come before each."""

    place: I4


@dataclass(frozen=True, eq=False)
class NvtxEvents:
    """Hold the events of a table in its order; ``key`` i8[n] is a place in what names them.

    That is ``style`` u1, ``name`` (a place in ``names``) i4 and ``thread`` (its globalTid) i8.
    """

    start: I8
    end: I8
    key: I8
    style: U1
    names: tuple[EventName, ...]
    name: I4
    thread: I8


def find_events(
    frames: RangeFrames, names: RangeNames, keys: I8, noted: NotedRows, ranges: NumberedRows
) -> NvtxEvents | None:
    """Find the events among ``noted`` rows, and ``ranges`` that nsys itself made.

    ``keys`` i8[m, 6+] are what rows are numbered by. None where none of them is of events.
    """
    style = _styles_of_all(keys, names)
    if (style == _NONE).all():
        return None
    some = np.flatnonzero((style[noted.number] != _NONE) & (noted.start != NULL))
    own = (style == EventStyle.OF_PROFILER) & (keys[:, 5] == PUSH_POP)
    rows = noted.take(some)
    if own.any():
        rows = _in_order(rows, noted.place[some], ranges, own)
    used, key = distinct(rows.number.astype(np.int64))
    named, name = _names(frames, names, keys[used])
    return NvtxEvents(rows.start, rows.end, key, style[used], named, name, keys[used, 4])


def _styles_of_all(keys: I8, names: RangeNames) -> U1:
    """The `EventStyle` of rows by their keys, u1[m]; `_NONE` of others."""
    found = np.full(len(keys), _NONE, np.uint8)
    candidates = is_any(keys[:, 5], NOTED) | (GIL_TRACE in names.domains.values())
    found[candidates] = _styles(keys[candidates], names)
    return found


def _in_order(rows: NumberedRows, place: I4, ranges: NumberedRows, own: Bool) -> NumberedRows:
    """Put those of ``ranges`` whose keys are ``own`` among ``rows``, in the order of the table."""
    made = np.flatnonzero(own[ranges.number])
    order = order_by([np.concatenate([2 * place.astype(np.int64), 2 * made + 1])])
    both = NumberedRows(
        np.concatenate([rows.start, ranges.start[made]]),
        np.concatenate([rows.end, ranges.end[made]]),
        np.concatenate([rows.number, ranges.number[made]]),
    )
    return both.take(order)


def _styles(keys: I8, names: RangeNames) -> U1:
    """The `EventStyle` of rows with these ``keys``, u1[n]; `_NONE` of what is no event."""
    domain, _, thread, kind = keys.T[2:6]
    found = np.full(len(keys), _NONE, np.uint8)
    for number, style in _STYLES.items():
        found[kind == number] = style
    own = _of_domains(domain, thread, names)
    of_gil, is_range = own == GIL_TRACE, is_any(kind, (PUSH_POP, START_END))
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


def _names(frames: RangeFrames, names: RangeNames, keys: I8) -> tuple[tuple[EventName, ...], I4]:
    """Names of events, and which of them each of ``keys`` has."""
    codes = [frames.text_code(*pair) for pair in keys[:, :2].tolist()]
    domains = _of_domains(keys[:, 2], keys[:, 4], names).tolist()
    found: list[EventName] = []

    def add(code: int, domain: str) -> int:
        found.append(EventName(frames.texts.names[code].name, domain))
        return len(found) - 1

    ids: IdByKey[tuple[int, str]] = IdByKey(add)
    places = np.array([ids[pair] for pair in zip(codes, domains, strict=True)], np.int32)
    return tuple(found), places


def events_builder(events: NvtxEvents, context: NsysContext, path: str) -> partial[ThreadEvents]:
    """Tell how to build the events of the file at ``path``, once all else of it is read."""
    threads, thread = _threads(context, events.thread)
    in_ranges = context.options.nvtx_start_end
    return partial(_build, events, threads, thread, context.last_time, in_ranges, path)


def _build(
    found: NvtxEvents,
    threads: tuple[EventThread, ...],
    thread: I4,
    last_time: int,
    in_ranges: bool,
    path: str,
) -> ThreadEvents:
    """Build the events, of which those without an end last until ``last_time``.

    Raises InputError where their times add up to more than 64 bits hold.
    """
    style, start = found.style[found.key], found.start
    end = close_open_ends(found.end, last_time)
    end = np.where(style == EventStyle.MARK, start, np.maximum(end, start))
    if float((end - start).sum(dtype=np.float64)) >= SUM_LIMIT:
        what = "damaged: the times in it add up to more than a century"
        raise InputError(f"{path}: {what}; export the report again")
    columns = (style, found.name[found.key], thread[found.key], start, end)
    return ThreadEvents(found.names, threads, *columns, in_ranges=in_ranges)


def _threads(context: NsysContext, keys: I8) -> tuple[tuple[EventThread, ...], I4]:
    """The threads of ``keys``, and which of them each is."""
    used, place = distinct(keys)
    names, programs = metadata.thread_names(context), metadata.process_names(context)
    threads, processes = (
        {key: number for number, key in enumerate(numbered.keys)}
        for numbered in (context.threads, context.processes)
    )
    made = [
        EventThread(
            pid_of(key),
            tid_of(key),
            names.get(key) or programs.get(process, ""),
            processes.get(process, NONE),
            threads.get(key, NONE),
        )
        for key, process in zip(used.tolist(), process_keys(used).tolist(), strict=True)
    ]
    return tuple(made), place.astype(np.int32)
