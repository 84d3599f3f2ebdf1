"""The attribution rules once more, slowly and plainly: row loops over an nsys SQLite file.

An independent check of flame: it shares no code with it, uses no numpy, and follows the written
rules (join by process and correlation id, ranges by time on a thread, …) one row at a time.
"""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

PUSH_POP, START_END, DOMAIN_CREATE = 59, 60, 75
BACKTRACE = 67
PYTHON = "[Python] "
TID_BITS = 24
LOW_24 = (1 << TID_BITS) - 1

RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
GPU_TABLES = {
    "kernel": "CUPTI_ACTIVITY_KIND_KERNEL",
    "memcpy": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "memset": "CUPTI_ACTIVITY_KIND_MEMSET",
    "graph": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
}
NODE_TABLES = ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")
COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}

Record = dict[str, Any]


class Range(NamedTuple):
    """An NVTX range on its thread. `order` is its place in the table, `end` is never None."""

    start: int
    end: int
    order: int
    text: str
    domain: str
    type: int


class Call(NamedTuple):
    """An API call; `name` has no version suffix."""

    start: int
    end: int
    order: int
    name: str
    pid: int
    tid: int
    chain: int | None
    event_class: int


Path_ = tuple[Range, ...]


@dataclass
class Row:
    """One GPU activity with everything the rules say about it."""

    kind: str
    start: int
    end: int
    duration: int
    pid: int | None
    gpu: int
    stream: int
    correlation: int
    name: str
    demangled: str | None = None
    mangled: str | None = None
    node: int | None = None
    call: Call | None = None
    python: tuple[str, ...] = ()
    native: tuple[str, ...] = ()
    nvtx: Path_ = ()
    captured: Path_ = ()
    launch_share: int = 0
    idle: int = 0

    @property
    def queue(self) -> int:
        return 0 if self.call is None else max(0, self.start - self.call.end)

    @property
    def launch(self) -> str:
        return "[no launch recorded]" if self.call is None else self.call.name

    @property
    def ranges(self) -> tuple[str, ...]:
        """Texts of the replay's own ranges, then of the captured ones."""
        return tuple(one.text for one in self.nvtx + self.captured)


class Trace:
    """A file's tables as lists of dictionaries; a missing table or column reads as nothing."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        weakref.finalize(self, self.db.close)
        self.db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._tables: dict[str, list[Record]] = {}
        self.strings: dict[int, str] = {}
        for row in self.rows("StringIds"):
            self.strings[row["id"]] = row["value"]

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.db.execute(f'PRAGMA table_info("{table}")')]

    def rows(self, table: str) -> list[Record]:
        if table not in self._tables:
            self._tables[table] = list(self._read(table, self.columns(table)))
        return self._tables[table]

    def _read(self, table: str, names: list[str]) -> Iterator[Record]:
        if names:
            chosen = ", ".join(f'"{name}"' for name in names)
            for row in self.db.execute(f'SELECT {chosen} FROM "{table}" ORDER BY rowid'):
                yield dict(zip(names, row, strict=True))

    def string(self, index: int | None) -> str | None:
        return None if index is None else self.strings.get(index)


def pid_of(global_id: int) -> int:
    return (global_id >> TID_BITS) & LOW_24


def tid_of(global_tid: int) -> int:
    return global_tid & LOW_24


def without_version(name: str) -> str:
    return re.sub(r"_v\d{4,}(_ptsz|_ptds)?$", "", name)


def capture_end(trace: Trace) -> int:
    """The last time recorded anywhere: where a range without an end stops."""
    times: list[int] = []
    for table in (*GPU_TABLES.values(), RUNTIME, "NVTX_EVENTS", *NODE_TABLES):
        for row in trace.rows(table):
            times += [row[key] for key in ("start", "end") if row.get(key) is not None]
    return max(times, default=0)


def read_ranges(trace: Trace, *, start_end: bool) -> dict[int, list[Range]]:
    """Ranges by thread, in stack order: by start, then the longer, then table order."""
    rows = trace.rows("NVTX_EVENTS")
    domains = {
        (pid_of(row["globalTid"]), row["domainId"]): nvtx_text(trace, row)
        for row in rows
        if row["eventType"] == DOMAIN_CREATE
    }
    wanted = {PUSH_POP, START_END} if start_end else {PUSH_POP}
    last = capture_end(trace)
    threads = defaultdict(list)
    for order, row in enumerate(rows):
        domain = domains.get((pid_of(row["globalTid"]), row["domainId"]), "")
        if row["eventType"] not in wanted or domain == "GIL Trace":
            continue
        end = last if row["end"] is None else row["end"]
        text = nvtx_text(trace, row)
        one = Range(row["start"], end, order, text, domain, row["eventType"])
        threads[row["globalTid"]].append(one)
    return {thread: sorted(found, key=outer_first) for thread, found in threads.items()}


def outer_first(one: Range | Call) -> tuple[int, int, int]:
    return one.start, -one.end, one.order


def nvtx_text(trace: Trace, row: Record) -> str:
    text = row["text"] if row["text"] is not None else trace.string(row["textId"])
    return "" if text is None else text


def paths_at(ranges: Sequence[Range], times: Iterable[int]) -> dict[int, Path_]:
    """The ranges (in stack order) open at each time, both ends of a range included."""
    found: dict[int, Path_] = {}
    open_now: list[Range] = []
    at = 0
    for time in sorted(set(times)):
        while at < len(ranges) and ranges[at].start <= time:
            open_now.append(ranges[at])
            at += 1
        open_now = [one for one in open_now if one.end >= time]
        found[time] = tuple(open_now)
    return found


def read_calls(trace: Trace) -> list[Call]:
    return [
        Call(
            row["start"],
            row["end"],
            order,
            without_version(trace.string(row["nameId"]) or ""),
            pid_of(row["globalTid"]),
            row["globalTid"],
            row.get("callchainId"),
            row.get("eventClass") or 0,
        )
        for order, row in enumerate(trace.rows(RUNTIME))
    ]


class Launches:
    """Finds the call that launched an activity, and the call that carries the backtrace."""

    def __init__(self, trace: Trace) -> None:
        self.calls: dict[tuple[int, int], list[Call]] = defaultdict(list)
        processes = set()
        rows = trace.rows(RUNTIME)
        for call, row in zip(read_calls(trace), rows, strict=True):
            processes.add(call.pid)
            if row["correlationId"]:
                self.calls[call.pid, row["correlationId"]].append(call)
        self.only_process = processes.pop() if len(processes) == 1 else None

    def call(self, pid: int | None, correlation: int) -> Call | None:
        """The earliest call under these ids, the longest of equally early ones.

        A backtrace row repeats a call; it counts only where the call itself has no row.
        """
        found = self._all(pid, correlation)
        own = [one for one in found if one.event_class != BACKTRACE]
        return min(own or found, key=outer_first, default=None)

    def chain(self, pid: int | None, correlation: int) -> int | None:
        """The backtrace recorded under these ids, if any."""
        known = [one for one in self._all(pid, correlation) if one.chain is not None]
        known.sort(key=lambda one: (one.event_class != BACKTRACE, outer_first(one)))
        return known[0].chain if known else None

    def _all(self, pid: int | None, correlation: int) -> list[Call]:
        """Activities that name no process can only be those of the one there is."""
        pid = self.only_process if pid is None else pid
        if not correlation or pid is None:
            return []
        return self.calls.get((pid, correlation), [])


class Chains:
    """Backtraces by callchainId, outermost frame first."""

    def __init__(self, trace: Trace) -> None:
        self.frames: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for row in trace.rows("CUDA_CALLCHAINS"):
            self.frames[row["id"]].append((row["stackDepth"], native_name(trace, row)))
        used = [row.get("callchainId") for row in trace.rows(RUNTIME)]
        known = [one for one in used if one is not None]
        self.shifted = bool(known and self.frames) and (
            min(known) == 0 and max(known) == max(self.frames) - 1
        )

    def path(self, chain: int | None) -> tuple[str, ...]:
        if chain is None or (chain == 0 and not self.shifted):
            return ()
        frames = self.frames.get(chain + self.shifted, [])
        return tuple(symbol for _, symbol in sorted(frames, reverse=True))


def native_name(trace: Trace, row: Record) -> str:
    """The symbol, or `library!address` where the profiler could not resolve it."""
    symbol = trace.string(row["symbol"]) or ""
    library = (trace.string(row["module"]) or "?").rsplit("/", 1)[-1]
    return f"{library}!{symbol}" if row["unresolved"] else symbol


class Nodes:
    """CUDA graph nodes: where a replayed node was captured."""

    def __init__(self, trace: Trace) -> None:
        self.rows: dict[tuple[int, int], set[tuple[int | None, int, int]]] = defaultdict(set)
        for table in NODE_TABLES:
            if "graphNodeId" not in trace.columns(table):
                continue
            for row in trace.rows(table):
                key = pid_of(row["globalTid"]), row["graphNodeId"]
                value = row["originalGraphNodeId"], row["start"], row["globalTid"]
                self.rows[key].add(value)

    def capture(self, pid: int | None, node: int | None) -> tuple[int, int] | None:
        """(time, global thread id) of the capture; None where missing, ambiguous or a cycle."""
        seen = set()
        while pid is not None and node is not None and node not in seen:
            seen.add(node)
            rows = self.rows.get((pid, node), set())
            if len(rows) != 1:
                return None
            ((node, time, thread),) = rows
            if node is None:
                return time, thread
        return None


def read_activities(trace: Trace) -> Iterator[Row]:
    """GPU activities in table order, without launches and ranges."""
    gpus: dict[Any, int] = {
        (row["pid"], row["cudaId"]): row["gpuId"] for row in trace.rows("TARGET_INFO_CUDA_DEVICE")
    }
    for kind, table in GPU_TABLES.items():
        for row in trace.rows(table):
            pid = pid_of(row["globalPid"]) if "globalPid" in row else None
            device: int = row["deviceId"]
            found = Row(
                kind,
                row["start"],
                row["end"],
                max(0, row["end"] - row["start"]),
                pid,
                gpus.get((pid, device), device),
                row["streamId"],
                row["correlationId"] or 0,
                leaf_name(trace, kind, row),
                node=row.get("graphNodeId"),
            )
            if kind == "kernel":
                found.demangled = trace.string(row.get("demangledName"))
                found.mangled = trace.string(row.get("mangledName"))
            yield found


def leaf_name(trace: Trace, kind: str, row: Record) -> str:
    if kind == "kernel":
        return trace.string(row["shortName"]) or ""
    if kind == "memcpy":
        return f"memcpy {COPY_KINDS.get(row['copyKind'], '')}".strip()
    return f"CUDA graph {row['graphId']}" if kind == "graph" else kind


def naive(path: Path, *, start_end: bool = False) -> list[Row]:
    """Every GPU activity of the file at `path`, attributed; `start_end` takes ranges of type 60."""
    trace = Trace(path)
    launches, chains, nodes = Launches(trace), Chains(trace), Nodes(trace)
    rows = list(read_activities(trace))
    for row in rows:
        row.call = launches.call(row.pid, row.correlation)
        frames = chains.path(launches.chain(row.pid, row.correlation)) if row.call else ()
        row.python = tuple(name[len(PYTHON) :] for name in frames if name.startswith(PYTHON))
        row.native = tuple(name for name in frames if not name.startswith(PYTHON))
    attribute_ranges(rows, nodes, read_ranges(trace, start_end=start_end))
    for row in rows:
        row.pid = row.call.pid if row.call else row.pid
    share_launches(rows)
    measure_idle(rows)
    return rows


def attribute_ranges(rows: list[Row], nodes: Nodes, ranges: dict[int, list[Range]]) -> None:
    captures = [nodes.capture(row.pid, row.node) for row in rows]
    wanted = defaultdict(set)
    for row, capture in zip(rows, captures, strict=True):
        if row.call:
            wanted[row.call.tid].add(row.call.start)
        if capture:
            wanted[capture[1]].add(capture[0])
    paths = {thread: paths_at(ranges.get(thread, []), times) for thread, times in wanted.items()}
    for row, capture in zip(rows, captures, strict=True):
        if row.call:
            row.nvtx = paths[row.call.tid][row.call.start]
        if capture:
            row.captured = paths[capture[1]][capture[0]]


def share_launches(rows: list[Row]) -> None:
    """Split each call's duration evenly over its activities, the remainder to the earliest."""
    launched = defaultdict(list)
    for row in rows:
        if row.call:
            launched[row.call].append(row)
    for call, found in launched.items():
        part, rest = divmod(max(0, call.end - call.start), len(found))
        for row in found:
            row.launch_share = part
        min(found, key=lambda row: row.start).launch_share += rest


def measure_idle(rows: list[Row]) -> None:
    """The time since everything that started earlier on the same GPU had ended."""
    busy_until: dict[int, int] = {}
    timed = [row for row in rows if row.kind != "graph" or row.start or row.end]
    for row in sorted(timed, key=lambda row: row.start):
        until = busy_until.get(row.gpu, row.start)
        row.idle = max(0, row.start - until)
        busy_until[row.gpu] = max(until, row.start + row.duration)
