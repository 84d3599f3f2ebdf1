"""What a dump says, worked out once more, slowly and plainly: row loops over its records.

An independent check of flame's reader and attribution: it shares no code with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.writers.fdumprecords import header, records, stack, text

API, PUSH_POP, START_END, SET = 5, 0, 1, 1
NONE, HOST = -1, 0x7FFFFFFF  # as CUPTI tells of a graph that begins on the host
CUT = ("[outermost frames not recorded]", "", 0)
COPIES = {1: "memcpy HtoD", 2: "memcpy DtoH", 8: "memcpy DtoD", 9: "memcpy HtoH", 10: "memcpy PtoP"}

PyFrame = tuple[str, str, int, bool]
"""Function, file, line, and whether it was open at a capture only."""

RangeFrame = tuple[str, bool]


class Row(NamedTuple):
    """One GPU activity with everything the rules say about it; times since the recording began."""

    kind: str
    name: str
    start: int
    duration: int
    tid: int
    launch: str
    python: tuple[PyFrame, ...]
    nvtx: tuple[RangeFrame, ...]
    device: int
    stream: int


class Dump:
    """The records of the dump at ``path``; ``by_time``: ranges nest by time, not as recorded."""

    def __init__(self, path: Path, by_time: bool = False) -> None:
        self.of = records(path)
        self.start = int(header(path)["start_monotonic"])
        self.by_time = by_time
        self.calls: dict[int, Mapping[str, Any]] = {}
        # Of several calls with one id the earliest launches, the longest on ties.
        for row in sorted(self.of["launch"], key=lambda r: (r["start"], -int(r["end"]))):
            self.calls.setdefault(int(row["correlation"]), row)
        self.apis = {
            int(row["id"]): text(self.of, int(row["text"]))
            for row in self.of["name"]
            if row["kind"] == API
        }

    def rows(self) -> list[Row]:
        """All activities."""
        kernels = [
            self._row("kernel", text(self.of, int(row["symbol"])), row) for row in self.of["kernel"]
        ]
        graphs = [
            self._row("graph", f"CUDA graph {row['graph']}", row) for row in self.of["graph_run"]
        ]
        return kernels + graphs + [self._row(*_memop(row), row) for row in self.of["memop"]]

    def _row(self, kind: str, name: str, row: Mapping[str, Any]) -> Row:
        call = self.calls.get(int(row["correlation"])) if row["correlation"] else None
        origin = row if call is None else call
        python = self._python(int(origin["python"]), False)
        nvtx = self._nvtx(origin, None if call is None else int(call["start"]), False)
        made = None if kind == "graph" else self._capture(int(row["graph_node"]))
        if made is not None:
            python += self._python(int(made["python"]), True)
            nvtx += self._nvtx(made, int(made["time"]), True)
        return Row(
            kind,
            name,
            int(row["start"]) - self.start,
            max(int(row["end"]) - int(row["start"]), 0),
            int(origin["tid"]),
            "[no launch recorded]" if call is None else self.apis[int(call["api"])],
            python,
            nvtx,
            NONE if row["device"] == HOST else int(row["device"]),
            int(row["stream"]),
        )

    def _python(self, node: int, captured: bool) -> tuple[PyFrame, ...]:
        nodes = {int(row["id"]): row for row in self.of["node"]}
        found = stack(self.of, node)
        root = node
        while root and nodes[root]["parent"]:
            root = int(nodes[root]["parent"])
        if root and nodes[root]["flags"] & 1:
            found = [CUT, *found]
        return tuple((*place, captured) for place in found)

    def _nvtx(
        self, origin: Mapping[str, Any], time: int | None, captured: bool
    ) -> tuple[RangeFrame, ...]:
        if self.by_time and time is not None:
            names = self._open(int(origin["tid"]), time)
        else:
            names = [name for name, _, _ in stack(self.of, int(origin["nvtx"]))]
        return tuple((name, captured) for name in names)

    def _open(self, tid: int, time: int) -> list[str]:
        """Names of the ranges open on a thread, outermost first."""
        spans = [
            (int(row["start"]), -int(row["end"]), order, int(row["name"]))
            for order, row in enumerate(self.of["range"])
            if row["tid"] == tid and row["kind"] in (PUSH_POP, START_END)
        ]
        spans += [
            (int(row["start"]), -(1 << 62), order, int(row["name"]))
            for order, row in enumerate(self.of["open_range"])
            if row["tid"] == tid
        ]
        names = {int(row["id"]): text(self.of, int(row["text"])) for row in self.of["range_name"]}
        return [names[name] for start, end, _, name in sorted(spans) if start <= time <= -end]

    def _capture(self, node: int) -> Mapping[str, Any] | None:
        """The row of the node made by capture that ``node`` descends from."""
        made: dict[int, Mapping[str, Any]] = {
            int(row["node"]): row for row in self.of["graph_node"]
        }
        seen: set[int] = set()
        while node in made and node not in seen:
            if made[node]["original"] == 0:
                return made[node]
            seen.add(node)
            node = int(made[node]["original"])
        return None


def _memop(row: Mapping[str, Any]) -> tuple[str, str]:
    if row["kind"] == SET:
        return "memset", "memset"
    return "memcpy", COPIES.get(int(row["copy_kind"]), "memcpy")
