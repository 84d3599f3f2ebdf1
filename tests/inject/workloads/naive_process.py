"""What a process of ``tree_workload.py`` did, worked out plainly and without flame's code.

Stacks are those of the program's own log, GPU work is the test double's; the dump is only asked for
the times of calls and ranges.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.writers import fdumprecords

CUT = ("[outermost frames not recorded]", "", 0)
DEPTH = 250
"""Frames and ranges that are kept of a stack: the innermost frames, the outermost ranges."""
DEMANGLED = {"_Z4gemmPfS_i": "gemm", "_Z7softmaxPf": "softmax"}
COPIES = {1: "memcpy HtoD", 2: "memcpy DtoH", 8: "memcpy DtoD", 10: "memcpy PtoP"}
RECORDED = ("cuLaunch", "cuGraphLaunch", "cuMemcpy", "cuMemset")
PUSH_POP, DOMAIN = 0, 1

Line = dict[str, Any]
Step = tuple[str, str, str, int, bool]
"""A frame of any kind: kind, name, file (of a range its domain), line, and whether captured."""
Span = tuple[int, int, int, Step]
"""Start, minus the end, place in the table, and what is open: sorts from outer to inner."""


class Work(NamedTuple):
    """One GPU activity; ``launched`` are the times of its call."""

    start: int
    end: int
    tid: int
    device: int
    stream: int
    correlation: int
    launched: tuple[int, int]
    python: tuple[Step, ...]
    launch: tuple[Step, ...]
    nvtx: tuple[Step, ...]
    leaf: tuple[Step, ...]


class Process:
    """The process ``pid`` of the program that wrote ``log``.<pid>, on the double's ``truth``."""

    def __init__(self, pid: int, log: Path, truth: Path, dump: Path) -> None:
        self.log = _lines(Path(f"{log}.{pid}"))
        self.truth = defaultdict(list)
        if (told := Path(f"{truth}.{pid}")).exists():
            for line in _lines(told):
                self.truth[line["what"]].append(line)
        self.dump = dump
        self.of = fdumprecords.records(dump)
        self.nodes = {line["node"]: line for line in self.truth["graph_node"]}
        self.calls = dict(self._calls())
        self.times = {
            int(row["correlation"]): (int(row["start"]), int(row["end"]))
            for row in self.of["launch"]
        }
        assert len(self.times) == len(self.of["launch"]) and self.times.keys() == self.calls.keys()

    def _calls(self) -> Iterator[tuple[int, tuple[Line, Line]]]:
        """Of every correlation id what the double and what the program say of the call."""
        logged, told = defaultdict(list), defaultdict(list)
        for line in self.log:
            if line["what"] == "unknown" or line.get("api", "").startswith(RECORDED):
                logged[line["tid"]].append(line)
        for line in sorted(self.truth["launch"], key=lambda line: int(line["start"])):
            told[line["tid"]].append(line)
        assert logged.keys() == told.keys()
        for tid, calls in told.items():
            for call, line in zip(calls, logged[tid], strict=True):
                assert line.get("api", "cuGraphLaunch") == call["api"]
                yield call["correlation"], (call, line)

    def work(self) -> list[Work]:
        """All GPU activities, as the dump orders them."""
        found = {
            (line["correlation"], line["graph_node"]): self._work(kind, line)
            for kind in ("kernel", "memcpy", "memset")
            for line in self.truth[kind]
        }
        rows = [
            (int(row["correlation"]), int(row["graph_node"]))
            for key in ("kernel", "memop")
            for row in self.of[key]
        ]
        assert sorted(rows) == sorted(found)
        return [found[row] for row in rows]

    def _work(self, kind: str, line: Line) -> Work:
        call, logged = self.calls[line["correlation"]]
        python, nvtx = _python(logged), _nvtx(logged)
        if line["graph_node"]:
            made = self._made(line["graph_node"])
            python, nvtx = python + _python(made, True), nvtx + _nvtx(made, True)
        return Work(
            start=line["start"],
            end=line["end"],
            tid=line["tid"],
            device=line["device"],
            stream=line["stream"],
            correlation=line["correlation"],
            launched=self.times[line["correlation"]],
            python=python,
            launch=(("launch", call["api"], "", 0, False),),
            nvtx=nvtx,
            leaf=((kind, _name(kind, line), "", 0, False),),
        )

    def _made(self, node: int) -> Line:
        """The call that captured or made what the node of a graph is a copy of."""
        while self.nodes[node]["original"]:
            node = self.nodes[node]["original"]
        born = self.nodes[node]
        [found] = (
            line
            for line in self.log
            if line["what"] == "call" and line["tid"] == born["tid"]
            if line["times"][0] <= born["start"] and born["end"] <= line["times"][1]
        )
        return found

    def host(self) -> Counter[tuple[Step, ...]]:
        """Time of each thread by its open ranges and its call: where all of that is innermost."""
        spans = defaultdict(list)
        for tid, span in self._ranges():
            spans[tid].append(span)
        for at, row in enumerate(self.of["launch"], len(self.of["range"]) + 1):
            call = self.calls[int(row["correlation"])][0]
            step = ("launch", call["api"], "", 0, False)
            spans[call["tid"]].append((int(row["start"]), -int(row["end"]), at, step))
        for tid, span in self._others():
            spans[tid].append(span)
        found: Counter[tuple[Step, ...]] = Counter()
        for tid, mine in spans.items():
            for path, ns in _pieces(sorted(mine)):
                found[("thread", str(tid), "", 0, False), *path] += ns
        return found

    def _others(self) -> Iterator[tuple[int, Span]]:
        """Calls that launch nothing, as the double has them, with the times of the dump."""
        told, recorded = defaultdict(list), defaultdict(list)
        for line in sorted(self.truth["call"], key=lambda line: int(line["start"])):
            told[line["tid"]].append(line["api"])
        for row in sorted(self.of["call"], key=lambda row: int(row["start"])):
            recorded[int(row["tid"])].append((int(row["start"]), -int(row["end"])))
        assert told.keys() == recorded.keys()
        for tid, times in recorded.items():
            for (start, end), api in zip(times, told[tid], strict=True):
                yield tid, (start, end, 0, ("launch", api, "", 0, False))

    def _ranges(self) -> Iterator[tuple[int, Span]]:
        """The program's ranges with the dump's times; each is one record, and no record is left."""
        records = dict(enumerate(self._recorded()))
        for line in self.log:
            if line["what"] == "range":
                (at,) = (at for at, one in records.items() if _is(line, *one))
                name, domain, tid, start, end = records.pop(at)
                step = ("nvtx", name, domain, 0, False)
                yield tid, (start, -(self._last() if end is None else end), at, step)
        assert not records

    def _recorded(self) -> Iterator[tuple[str, str, int, int, int | None]]:
        """Name, domain, thread and times of the dump's push/pop ranges."""
        domains = {0: ""} | {
            int(row["id"]): self._text(row["text"])
            for row in self.of["name"]
            if row["kind"] == DOMAIN
        }
        names = {
            int(row["id"]): (self._text(row["text"]), domains[int(row["domain"])])
            for row in self.of["range_name"]
        }
        for row in self.of["range"]:
            if row["kind"] == PUSH_POP:
                yield *names[row["name"]], int(row["tid"]), int(row["start"]), int(row["end"])
        for row in self.of["open_range"]:
            yield *names[row["name"]], int(row["tid"]), int(row["start"]), None

    def _last(self) -> int:
        """When the recording ended, or was last seen to go on."""
        ends = [
            row["end"] for key in ("kernel", "memop", "launch", "range") for row in self.of[key]
        ]
        ends += [*self.of["open_range"]["start"], fdumprecords.header(self.dump)["end_monotonic"]]
        return max(map(int, ends))

    def _text(self, number: int) -> str:
        return fdumprecords.text(self.of, int(number))


def launch_times(rows: list[Work]) -> list[int]:
    """Every activity's part of its call's duration: what does not divide goes to the first."""
    groups = defaultdict(list)
    for at, row in enumerate(rows):
        groups[row.correlation].append(at)
    found = [0] * len(rows)
    for group in groups.values():
        begin, end = rows[group[0]].launched
        for at in group:
            found[at] = (end - begin) // len(group)
        found[min(group, key=lambda at: rows[at].start)] += (end - begin) % len(group)
    return found


def idle_times(rows: list[Work]) -> list[int]:
    """How long each activity's device had had nothing to do; 0 for its first."""
    found, busy = [0] * len(rows), dict[int, int]()
    for at in sorted(range(len(rows)), key=lambda at: rows[at].start):
        start, end, device = rows[at].start, rows[at].end, rows[at].device
        found[at] = max(start - busy.get(device, start), 0)
        busy[device] = max(busy.get(device, end), end)
    return found


def _lines(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _name(kind: str, line: Line) -> str:
    if kind == "kernel":
        symbol: str = line["symbol"]
        return DEMANGLED.get(symbol, symbol)
    return kind if kind == "memset" else COPIES[line["copy_kind"]]


def _python(line: Line, captured: bool = False) -> tuple[Step, ...]:
    stack = line["stack"]
    kept = [CUT, *stack[-DEPTH:]] if len(stack) > DEPTH else stack
    return tuple(("python", name, file, number, captured) for name, file, number in kept)


def _nvtx(line: Line, captured: bool = False) -> tuple[Step, ...]:
    return tuple(("nvtx", name, domain, 0, captured) for name, domain in line["ranges"][:DEPTH])


def _is(line: Line, name: str, domain: str, tid: int, start: int, end: int | None) -> bool:
    """Whether this record is of the range in ``line``."""
    if (name, domain, tid) != (line["name"], line["domain"], line["tid"]):
        return False
    if not line["pushed"][0] <= start <= line["pushed"][1]:
        return False
    if end is None or "popped" not in line:
        return end is None and "popped" not in line
    return bool(line["popped"][0] <= end <= line["popped"][1])


def _pieces(spans: list[Span]) -> Iterator[tuple[tuple[Step, ...], int]]:
    """What is open between every two moments at which something begins or ends, and how long."""
    moments = sorted({start for start, *_ in spans} | {-end for _, end, *_ in spans})
    coming, now = spans[::-1], list[Span]()
    for begin, end in pairwise(moments):
        while coming and coming[-1][0] <= begin:
            now.append(coming.pop())
        now = [one for one in now if -one[1] > begin]
        steps = [one[3] for one in now]
        calls = [step for step in steps if step[0] == "launch"][-1:]
        if steps:
            yield (*(step for step in steps if step[0] == "nvtx"), *calls), end - begin
