"""What growing dumps say at a moment, by plain loops over all their records.

Live views are held against it: it shares no code with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.writers.fdumprecords import header, records, stack, text

API, THREAD, SET = 5, 3, 1
NO_LAUNCH = "[no launch recorded]"
COPIES = {1: "memcpy HtoD", 2: "memcpy DtoH", 8: "memcpy DtoD"}
METRICS = ("gpu", "count", "launch", "queue", "idle")

Step = tuple[Any, ...]
"""A frame: ``(level, name, file, line, captured)``, the last three only of Python and ranges."""
Sums = dict[tuple[Step, ...], tuple[int, int]]
"""(value, number of rows) that end at a path, outermost frame first."""


class Row(NamedTuple):
    """One GPU activity; times are ns of CLOCK_MONOTONIC, ``path`` is in the natural order."""

    start: int
    values: Mapping[str, int]
    path: tuple[Step, ...]
    device: tuple[int, int]
    stream: int


class Span(NamedTuple):
    """A range or call: where its time goes, and from where it is taken (nothing: nowhere)."""

    start: int
    end: int
    path: tuple[Step, ...]
    around: tuple[Step, ...]


class Dump:
    """The records of one dump as they are now; ``label`` is its rank, none if it is alone.

    Work whose call is not there, and may still come, is only believed in once it had ended before
    ``patient``, ns.
    """

    def __init__(self, path: Path, label: str = "", patient: int | None = None) -> None:
        self.of = records(path)
        head = header(path)
        self.start, self.pid = int(head["start_monotonic"]), int(head["pid"])
        self.top: tuple[Step, ...] = (("rank", label),) if label else ()
        self._stacks: dict[int, list[tuple[str, str, int]]] = {}
        self.apis = self._names(API)
        self.thread_names = self._names(THREAD)
        self.made: dict[int, Mapping[str, Any]] = {}
        for row in self.of["graph_node"]:
            known = self.made.get(int(row["node"]))
            if known is None or (known["original"] == 0 and row["original"] != 0):
                self.made[int(row["node"])] = row
        self.calls: dict[int, Mapping[str, Any]] = {}
        for row in sorted(self.of["launch"], key=lambda r: (int(r["start"]), -int(r["end"]))):
            self.calls.setdefault(int(row["correlation"]), row)
        self.last_call: dict[int, int] = defaultdict(int)
        for row in self.of["launch"]:
            tid = int(row["tid"])
            self.last_call[tid] = max(self.last_call[tid], int(row["correlation"]))
        self.patient = patient
        self.rows = list(self._work())

    def _names(self, kind: int) -> dict[int, str]:
        return {
            int(row["id"]): text(self.of, int(row["text"]))
            for row in self.of["name"]
            if row["kind"] == kind
        }

    def _stack(self, node: int) -> list[tuple[str, str, int]]:
        if node not in self._stacks:
            self._stacks[node] = stack(self.of, node)
        return self._stacks[node]

    # GPU work

    def _work(self) -> Iterator[Row]:
        work = [(row, "kernel", text(self.of, int(row["symbol"]))) for row in self.of["kernel"]]
        for row in self.of["memop"]:
            is_set = row["kind"] == SET
            name = "memset" if is_set else COPIES.get(int(row["copy_kind"]), "memcpy")
            work.append((row, "memset" if is_set else "memcpy", name))
        work = [one for one in work if not self._waits(one[0])]
        order = sorted(range(len(work)), key=lambda at: (self._times(work[at][0])[0], at))
        share, idle = self._shares(work, order), self._idle(work, order)
        for at in order:
            row, kind, name = work[at]
            start, end = self._times(row)
            call = self._call(row)
            values = {
                "gpu": max(end - start, 0),
                "count": 1,
                "launch": share[at],
                "queue": max(start - int(call["end"]), 0) if call is not None else 0,
                "idle": idle[at],
            }
            path = (*self.top, *self._python_to_range(row), (kind, name))
            where = self.start, int(row["device"])
            yield Row(start, values, path, where, int(row["stream"]))

    def _waits(self, row: Mapping[str, Any]) -> bool:
        if self.patient is None or not row["tid"] or not row["correlation"]:
            return False
        passed = self.last_call[int(row["tid"])] >= row["correlation"]
        return not passed and self._times(row)[1] >= self.patient

    def _times(self, row: Mapping[str, Any]) -> tuple[int, int]:
        """Start and end; one that is not known is the other, and neither the recording's start."""
        start, end = int(row["start"]), int(row["end"])
        return start or end or self.start, end or start or self.start

    def _call(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self.calls.get(int(row["correlation"])) if row["correlation"] else None

    def _shares(self, work: list[Any], order: list[int]) -> dict[int, int]:
        """A call's time is shared by its activities, and what is left goes to the first."""
        of_call: dict[int, list[int]] = defaultdict(list)
        for at in order:
            if self._call(work[at][0]) is not None:
                of_call[int(work[at][0]["correlation"])].append(at)
        share = dict.fromkeys(order, 0)
        for number, rows in of_call.items():
            call = self.calls[number]
            length = max(int(call["end"]) - int(call["start"]), 0)
            for place, at in enumerate(rows):
                share[at] = length // len(rows) + (length % len(rows) if place == 0 else 0)
        return share

    def _idle(self, work: list[Any], order: list[int]) -> dict[int, int]:
        busy: dict[int, int] = {}
        idle = {}
        for at in order:
            start, end = self._times(work[at][0])
            device = int(work[at][0]["device"])
            idle[at] = max(start - busy[device], 0) if device in busy else 0
            busy[device] = max(busy.get(device, 0), start, end)
        return idle

    def _python_to_range(self, row: Mapping[str, Any]) -> tuple[Step, ...]:
        """Python frames, the call, and ranges; those of a graph node's capture are marked."""
        call = self._call(row)
        origin = row if call is None else call
        made = self._capture(int(row["graph_node"]))
        python = [(*one, False) for one in self._stack(int(origin["python"]))]
        nvtx = [(one[0], False) for one in self._stack(int(origin["nvtx"]))]
        if made is not None:
            python += [(*one, True) for one in self._stack(int(made["python"]))]
            nvtx += [(one[0], True) for one in self._stack(int(made["nvtx"]))]
        api = NO_LAUNCH if call is None else self.apis[int(call["api"])]
        return (
            *(("python", *one) for one in python),
            ("launch", api),
            *(("nvtx", name, captured) for name, captured in nvtx),
        )

    def _capture(self, node: int) -> Mapping[str, Any] | None:
        seen: set[int] = set()
        while node in self.made and node not in seen:
            if self.made[node]["original"] == 0:
                return self.made[node]
            seen.add(node)
            node = int(self.made[node]["original"])
        return None

    # The host

    def spans(self, now: int) -> Iterator[Span]:
        """Calls and push/pop ranges; what is open lasts until ``now``."""
        for row in self.of["launch"]:
            yield self._call_span(row, int(row["flags"]) >> 16)
        for row in self.of["call"]:
            yield self._call_span(row, 0)
        ended = set()
        for row in self.of["range"]:
            if row["kind"] == 0:
                path = self._ranges(row, int(row["node"]))
                ended.add((int(row["tid"]), int(row["start"])))
                yield Span(int(row["start"]), int(row["end"]), path, path[:-1])
        for row in self.of["open_range"]:
            if (int(row["tid"]), int(row["start"])) not in ended:
                path = self._ranges(row, int(row["node"]))
                yield Span(int(row["start"]), now, path, path[:-1])

    def _call_span(self, row: Mapping[str, Any], within: int) -> Span:
        path = self._ranges(row, int(row["nvtx"]))
        around = (*path, ("launch", self.apis[within])) if within else path
        name = ("launch", self.apis[int(row["api"])])
        return Span(*self._times(row), (*path, name), around)

    def _ranges(self, row: Mapping[str, Any], node: int) -> tuple[Step, ...]:
        tid = int(row["tid"])
        known = self.thread_names.get(tid, "main" if tid == self.pid else "thread")
        thread = ("thread", f"{known} [{tid}]")
        return (*self.top, thread, *(("nvtx", one[0], False) for one in self._stack(node)))


class Moment:
    """Several dumps, by path and rank, as they are now; ``patient`` as of `Dump`."""

    def __init__(
        self, dumps: Sequence[tuple[Path, str]], patient: Sequence[int | None] = ()
    ) -> None:
        waits = patient or [None] * len(dumps)
        self.dumps = [Dump(*one, until) for one, until in zip(dumps, waits, strict=True)]

    def rows(self, begin: int | None, end: int | None = None) -> list[Row]:
        """The GPU activities that start from ``begin`` on, and before ``end``."""
        return [
            row
            for dump in self.dumps
            for row in dump.rows
            if (begin is None or row.start >= begin) and (end is None or row.start < end)
        ]

    def host(self, begin: int | None, ends: Sequence[int]) -> Sums:
        """Wall self time; ``ends`` is until when what is open in each dump lasts.

        What is left of a range is never below nothing, and nothing where it was never seen.
        """
        often: dict[tuple[Step, ...], int] = defaultdict(int)
        own: dict[tuple[Step, ...], int] = defaultdict(int)
        for dump, now in zip(self.dumps, ends, strict=True):
            for span in dump.spans(now):
                start = span.start if begin is None else max(span.start, begin)
                if span.end <= start:
                    continue
                often[span.path] += 1
                own[span.path] += span.end - start
                own[span.around] -= span.end - start
        return {path: (max(own[path], 0), count) for path, count in often.items()}


def sums(rows: Sequence[Row], metric: str) -> Sums:
    """The sums of ``rows`` by path."""
    found: dict[tuple[Step, ...], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        found[row.path][0] += row.values[metric]
        found[row.path][1] += 1
    return {path: (value, count) for path, (value, count) in found.items()}
