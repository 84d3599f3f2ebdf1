"""Write what ran when as trace events of Chrome: for Perfetto, chrome://tracing, and others.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
Categories and arguments are called as PyTorch's profiler (Kineto) does: other tools know these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np

from flame.core.analysis.node_activities import rows_in_tree
from flame.core.columns import I4, I8, Bool, Column, unique_rows
from flame.core.errors import NoMatchError, UsageError
from flame.core.model.activities import NONE, ThreadPieces, has_times
from flame.core.model.frames import Frame, Kind
from flame.core.model.launches import LaunchConfig
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.project import project, shown_profile
from flame.core.projection.selection import Selection
from flame.exporters.chrome_tracks import Tracks, free_lanes, nested_lanes
from flame.exporters.stacks import NO_NAME, encodable

_AT_ONCE = 1 << 12
"""Events that are objects at the same time."""

_CATEGORIES = {Kind.MEMCPY: "gpu_memcpy", Kind.MEMSET: "gpu_memset"}
_KERNEL, _CALL, _RANGE, _FUNCTION = "kernel", "cuda_runtime", "user_annotation", "python_function"

Event = dict[str, Any]


class _Host(NamedTuple):
    """Intervals of threads: a kind of them (`_KINDS`), and the place of each in what it is from."""

    kind: I8
    source: I8
    thread: I8
    frame: I8
    start: I8
    end: I8


_KINDS = (_FUNCTION, _RANGE, _CALL)


def write(
    tree: StackTree, profile: Profile, selection: Selection, file: BinaryIO, *, name: str
) -> list[str]:
    """Write the activities of ``tree``, of ``profile`` under ``selection``, and what led to them.

    Rows are streams of GPUs and threads; arrows lead from calls to what they launched. Of threads
    there is all that overlaps the time from the first launch to the last end. Returns notes for
    the user. Raises UsageError of a file without times, NoMatchError where nothing ran.
    """
    if profile.resolved or profile.totals is not None:
        raise UsageError(f"{name}: has no activities with times to lay out: choose another format")
    if tree.metric.table != "gpu":
        selection = replace(selection, metric="gpu", levels=None)
        tree = project(profile, selection)
    timeline = _Timeline(tree, profile, selection)
    head = msgspec.json.encode(_about(profile, name)).removesuffix(b"}")
    file.write(head + b',"traceEvents":[\n')
    separator = b""
    for some in _batches(timeline.events()):
        file.write(separator + b",\n".join(map(msgspec.json.encode, some)))
        separator = b",\n"
    file.write(b"\n]}\n")
    return []


def _batches(events: Iterator[Event]) -> Iterator[list[Event]]:
    while some := list(islice(events, _AT_ONCE)):
        yield some


def _about(profile: Profile, name: str) -> dict[str, Any]:
    devices = [{"id": one.id, "name": encodable(one.name)} for one in profile.devices]
    about: dict[str, Any] = {"schemaVersion": 1, "traceName": encodable(name)}
    about |= {"displayTimeUnit": "ns", "deviceProperties": devices}
    if profile.meta.origin is not None:
        about["baseTimeNanoseconds"] = profile.meta.origin + profile.begin
    return about


class _Timeline:
    """Lays out the activities of ``tree`` that have times, and what their threads did meanwhile."""

    def __init__(self, tree: StackTree, profile: Profile, selection: Selection) -> None:
        table = profile.activities
        rows = rows_in_tree(shown_profile(profile, selection), tree, selection.where)
        self._rows = rows[has_times(table)[rows]]
        if not len(self._rows):
            raise NoMatchError("nothing to lay out: no activity has a time")
        self._profile, self._tree, self._tracks = profile, tree, Tracks(profile)
        self._texts: dict[int, str] = {}
        self._call = _launching_calls(profile, self._rows)

    def events(self) -> Iterator[Event]:
        """Make all events; names come last, when it is known what there is to name."""
        yield from self._activities()
        yield from self._host_events()
        yield from self._tracks.metadata()

    # GPUs

    def _activities(self) -> Iterator[Event]:
        table, rows = self._profile.activities, self._rows
        device, stream = table.device[rows], table.stream[rows]
        _, track = unique_rows([device, stream])
        start, duration = table.start[rows], table.duration[rows]
        lane = free_lanes(track.astype(np.int64), start, start + duration)
        columns = (device, stream, lane, table.kind[rows], table.frame[rows], start, duration)
        details = self._details()
        numbers = zip(*(column.tolist() for column in (rows, self._call, *columns)), strict=True)
        for row, call, gpu, queue, row_lane, kind, frame, begin, length in numbers:
            track_ = self._tracks.stream(gpu, queue, row_lane)
            args: Event = {"device": track_.pid, "stream": queue, "correlation": call}
            name = self._text(frame) if kind not in _CATEGORIES else _copied(self._text(frame))
            event = {"ph": "X", "cat": _CATEGORIES.get(kind, _KERNEL), "name": name}
            times = {"ts": self._time(begin), "dur": length / 1_000}
            yield {**event, **track_._asdict(), **times, "args": args | details(row)}
            if call:
                yield from self._arrow(row, track_._asdict(), begin)

    def _details(self) -> Callable[[int], Event]:
        """Make what describes the launch of an activity, by its row."""
        launches = self._profile.launches
        if launches is None:
            return lambda row: {}
        described = [_described(config) for config in launches.configs]

        def details(row: int) -> Event:
            config, size = int(launches.config[row]), int(launches.bytes[row])
            known = described[config] if config >= 0 else {}
            return {**known, "bytes": size} if size >= 0 else known

        return details

    def _arrow(self, row: int, target: Event, begin: int) -> Iterator[Event]:
        """An arrow from the call to the activity in ``row``."""
        table = self._profile.activities
        thread = int(table.thread[row])
        common = {"cat": "ac2g", "name": "ac2g", "id": row + 1}
        source = self._tracks.thread(thread)._asdict()
        yield {"ph": "s", **common, **source, "ts": self._time(int(table.launch_start[row]))}
        yield {"ph": "f", "bp": "e", **common, **target, "ts": self._time(begin)}

    # Threads

    def _host_events(self) -> Iterator[Event]:
        host = self._host()
        order, lane = nested_lanes(host.thread, host.start, host.end)
        known = self._call_numbers()
        parents = {_FUNCTION: self._profile.functions}
        columns = (lane, *(column[order] for column in host))
        for row_lane, kind, source, thread, frame, start, end in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            track = self._tracks.thread(thread, row_lane)._asdict()
            category = _KINDS[kind]
            text, args = self._text(frame), dict[str, Any]()
            if category == _CALL and (number := known.get((thread, start))):
                args = {"correlation": number}
            elif category == _FUNCTION:
                text, args = self._placed(frame), _python_ids(parents[_FUNCTION], source)
            times = {"ts": self._time(start), "dur": (end - start) / 1_000}
            yield {"ph": "X", "cat": category, "name": text, **track, **times, "args": args}

    def _host(self) -> _Host:
        """What threads did in the time of the activities: the outermost kinds first."""
        profile = self._profile
        pieces = (profile.functions, profile.ranges, _calls(profile))
        there = ((kind, found) for kind, found in enumerate(pieces) if found is not None)
        parts = [self._within(kind, found) for kind, found in there]
        columns = zip(*parts, strict=True)
        return _Host(*(np.concatenate(column).astype(np.int64) for column in columns))

    def _within(self, kind: int, found: ThreadPieces | _Calls) -> tuple[Column, ...]:
        low, high = self._window
        rows = np.flatnonzero((found.end > low) & (found.start < high) & (found.thread >= 0))
        columns = (found.thread, found.frame, found.start, found.end)
        return np.full(len(rows), kind), rows, *(column[rows] for column in columns)

    @property
    def _window(self) -> tuple[int, int]:
        """From the first launch of an activity to the last end."""
        table, rows = self._profile.activities, self._rows
        launched = rows[self._call > 0]
        begin = np.concatenate([table.start[rows], table.launch_start[launched]]).min()
        return int(begin), int((table.start[rows] + table.duration[rows]).max())

    def _call_numbers(self) -> dict[tuple[int, int], int]:
        """The number of each call that launched an activity, by thread and start."""
        table, rows = self._profile.activities, self._rows[self._call > 0]
        keys = zip(table.thread[rows].tolist(), table.launch_start[rows].tolist(), strict=True)
        return dict(zip(keys, self._call[self._call > 0].tolist(), strict=True))

    # Words

    def _time(self, ns: int) -> float:
        return (ns - self._profile.begin) / 1_000

    def _text(self, frame: int) -> str:
        if frame not in self._texts:
            self._texts[frame] = encodable(self._tree.text[frame]) or NO_NAME
        return self._texts[frame]

    def _placed(self, frame: int) -> str:
        """The name of a Python function as PyTorch's profiler writes it."""
        known: Frame = self._tree.frames[frame]
        place = f"{encodable(known.file)}({known.line}): " if known.file else ""
        return place + self._text(frame)


class _Calls(NamedTuple):
    """Calls as `CallRows` has them, or those alone that launched something."""

    thread: I4
    frame: I4
    start: I8
    end: I8


def _calls(profile: Profile) -> _Calls:
    found = profile.callrows
    if found is not None:
        return _Calls(found.thread, found.frame, found.start, found.end)
    table = profile.activities
    rows = np.flatnonzero(_called(profile, np.arange(len(table))))
    first, _ = unique_rows([table.thread[rows], table.launch_start[rows]])
    rows = rows[first]
    start, end = table.launch_start[rows], table.launch_end[rows]
    return _Calls(table.thread[rows], table.launch[rows], start, end)


def _called(profile: Profile, rows: I8) -> Bool:
    """Which activities have a launch on a known thread, bool[rows]."""
    table = profile.activities
    called: Bool = table.launched[rows] & (table.thread[rows] >= 0)
    called &= table.launch_start[rows] != NONE
    return called


def _launching_calls(profile: Profile, rows: I8) -> I8:
    """Number the calls that launched the activities in ``rows`` from 1 on; 0 is none, i8[rows]."""
    table, called = profile.activities, _called(profile, rows)
    _, number = unique_rows([table.thread[rows[called]], table.launch_start[rows[called]]])
    found = np.zeros(len(rows), np.int64)
    found[called] = number + 1
    return found


def _python_ids(functions: ThreadPieces | None, piece: int) -> Event:
    parent = -1 if functions is None else int(functions.parent[piece])
    return {"Python id": piece + 1, "Python parent id": parent + 1 if parent >= 0 else None}


def _copied(name: str) -> str:
    """Spell the name of a copy or set as PyTorch's profiler does: ``Memcpy DtoH``."""
    return name[:1].upper() + name[1:]


def _described(config: LaunchConfig) -> Event:
    """Say what is known of a launch by the names that PyTorch's profiler has for it."""
    shared = config.shared
    if shared is None and config.static_shared is not None:
        shared = config.static_shared + (config.dynamic_shared or 0)
    known = {
        "grid": config.grid,
        "block": config.block,
        "registers per thread": config.registers,
        "shared memory": shared,
    }
    return {key: value for key, value in known.items() if value is not None}
