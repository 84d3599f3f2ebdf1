"""Number the processes and threads of a timeline, and part what does not nest."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from flame.core.columns import I8, order_by
from flame.core.model.profile import Profile

_OTHER = 1_000_000
"""Numbers that two of one file would share are that much apart."""

_Owner = tuple[str, int]
"""A process or a GPU, by its place in the profile."""


class ChromeTrack(NamedTuple):
    """Name a row of a timeline by the numbers of its process and thread."""

    pid: int
    tid: int


class Tracks:
    """Numbers what is on a timeline as it was recorded; those that would be one get another number.

    GPUs are processes, as in the traces of PyTorch, and their streams are threads.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._pids: dict[_Owner, int] = {}
        self._taken: set[int] = set()
        self._known: dict[tuple[_Owner, int, int], ChromeTrack] = {}
        self._names: dict[ChromeTrack, tuple[str, str]] = {}

    def thread(self, thread: int, lane: int = 0) -> ChromeTrack:
        """Number a thread (place in `Profile.threads`); ``lane`` counts its rows from 0 on."""
        one = self._profile.threads[thread]
        process = self._profile.processes[one.process] if one.process >= 0 else None
        pid = self._pid(("process", one.process), process.pid if process else one.tid)
        name = (process.name if process else "") or "process"
        row = f"{one.name or 'thread'} {one.tid}"
        return self._track(("process", one.process), pid, one.tid, lane, (name, row))

    def stream(self, device: int, stream: int, lane: int = 0) -> ChromeTrack:
        """Number a stream of a GPU (place in `Profile.devices`, -1: not known)."""
        gpu = self._profile.devices[device] if device >= 0 else None
        pid = self._pid(("gpu", device), gpu.id if gpu else _OTHER)
        name = f"GPU {gpu.id} {gpu.name}".strip() if gpu else "GPU"
        row = f"stream {stream}" if stream >= 0 else "stream unknown"
        return self._track(("gpu", device), pid, max(stream, 0), lane, (name, row))

    def metadata(self) -> Iterator[dict[str, Any]]:
        """Name all that have been numbered, those of programs before GPUs."""
        gpus = {pid for key, pid in self._pids.items() if key[0] == "gpu"}
        for track, (name, row) in self._names.items():
            common = {"ph": "M", "ts": 0, "pid": track.pid, "tid": track.tid}
            yield {**common, "name": "process_name", "args": {"name": name}}
            yield {**common, "name": "thread_name", "args": {"name": row}}
            index = _OTHER + track.pid if track.pid in gpus else track.pid
            yield {**common, "name": "process_sort_index", "args": {"sort_index": index}}

    def _pid(self, key: _Owner, number: int) -> int:
        if key not in self._pids:
            while number in self._taken:
                number += _OTHER
            self._taken.add(number)
            self._pids[key] = number
        return self._pids[key]

    def _track(
        self, key: _Owner, pid: int, number: int, lane: int, names: tuple[str, str]
    ) -> ChromeTrack:
        place = (key, number, lane)
        if place not in self._known:
            track = ChromeTrack(pid, number + lane * _OTHER)
            while track in self._names:
                track = ChromeTrack(pid, track.tid + 1)
            more = f" ({lane + 1})" if lane else ""
            self._known[place] = track
            self._names[track] = (names[0], names[1] + more)
        return self._known[place]


def nested_lanes(track: I8, start: I8, end: I8) -> tuple[I8, I8]:
    """Sort intervals of tracks for a timeline that nests them, and part those that cross.

    (order i8[n], lane i8[n] in that order): by track and start, the longest first; equal ones stay
    as they were. What is open when another begins and ends before that is over crosses it, which
    then is on lane 1; what crosses there too, on lane 2, and so on.
    """
    order = order_by([track, start, -end])
    lane = np.zeros(len(order), np.int64)
    open_until: dict[int, list[list[int]]] = {}
    columns = (track[order].tolist(), start[order].tolist(), end[order].tolist())
    for place, (of, low, high) in enumerate(zip(*columns, strict=True)):
        lane[place] = _nest(open_until.setdefault(of, []), low, high)
    return order, lane


def _nest(lanes: list[list[int]], low: int, high: int) -> int:
    """Choose the first of ``lanes``, each of the ends of what is open, that holds an interval."""
    for number, ends in enumerate(lanes):
        while ends and ends[-1] <= low:
            ends.pop()
        if not ends or high <= ends[-1]:
            ends.append(high)
            return number
    lanes.append([high])
    return len(lanes) - 1


def free_lanes(track: I8, start: I8, end: I8) -> I8:
    """Part intervals of tracks that overlap: the lane of each, i8[n], the first that is free.

    Work of one stream may overlap, such as the nodes of a graph.
    """
    order = order_by([track, start])
    lane = np.zeros(len(order), np.int64)
    running: dict[int, list[tuple[int, int]]] = {}
    free: dict[int, list[int]] = {}
    columns = (track[order].tolist(), start[order].tolist(), end[order].tolist())
    for place, (of, low, high) in enumerate(zip(*columns, strict=True)):
        busy, left = running.setdefault(of, []), free.setdefault(of, [])
        while busy and busy[0][0] <= low:
            heappush(left, heappop(busy)[1])
        lane[place] = chosen = heappop(left) if left else len(busy)
        heappush(busy, (high, chosen))
    found = np.empty_like(lane)
    found[order] = lane
    return found
