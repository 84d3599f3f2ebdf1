"""Processes that run for minutes, made up: what each has written into its dump by any moment."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.support.writers.fdumpfile import API, SIZE, START, UNIX, DumpFile

SECOND = 10**9
APIS = {307: "cuLaunchKernel", 514: "cuGraphLaunch", 33: "cuMemcpyHtoDAsync"}
LAUNCH, REPLAY = 307, 514
BLOCKING = {17: "cuMemAlloc_v2", 47: "cuStreamSynchronize"}
RANGES = ("step", "layer", "attn", "mlp")
FUNCTIONS = ("main", "train", "forward", "step")
OPEN_RANGE, SEALED = 9, 20  # type of a chunk; offset in its header
NOBODY = 5  # a graph node that was never made


class Told(NamedTuple):
    """A record, and when it is written, ns."""

    when: int
    key: str
    row: dict[str, Any]


class Range(NamedTuple):
    """An open range."""

    start: int
    path: tuple[str, ...]


class Film(DumpFile):
    """A dump whose open ranges are rewritten in place."""

    def reopen(self, ranges: Iterable[tuple[int, Range]]) -> None:
        """These are open now, by thread."""
        mine = {
            tid: place for place, (kind, _, tid, _) in enumerate(self._chunks) if kind == OPEN_RANGE
        }
        for place in mine.values():
            self._chunks[place][3].clear()
        self._current |= {("open_range", tid): place for tid, place in mine.items()}
        rows, self._rows = self._rows, None
        for tid, one in ranges:
            self.open_range(one.path, self.start_of(one.start), tid)
        self._rows = rows

    def start_of(self, time: int) -> int:
        """A time since `START` as `DumpFile` counts them."""
        return START + time - self.start

    def data(self) -> bytes:
        data = bytearray(super().data())
        for number, (kind, *_) in enumerate(self._chunks):
            if kind == OPEN_RANGE:
                struct.pack_into("<I", data, SIZE * (number + 1) + SEALED, 0)
        return bytes(data)


class Process:
    """One process from ``begin`` to ``end`` (ns after `START`), as ``random`` has it.

    ``grid``: kernels start at multiples of it. ``lost``: the part of calls that is not recorded.
    """

    def __init__(
        self,
        random: Random,
        folder: Path,
        number: int,
        life: tuple[int, int],
        grid: int,
        lost: float,
    ) -> None:
        self._random, self._grid, self._lost = random, grid, lost
        self.begin, self.end = life
        self.pid = 100 + 10 * number
        start = START + self.begin
        rows = random.choice([None, 1, 3, 7])
        self._film = Film(self.pid, start=start, unix=UNIX + self.begin, rows=rows)
        self._film.ended = False
        for api, name in (APIS | BLOCKING).items():
            self._film.name(API, api, name)
        self._film.meta("boot_id", "here")
        self.path = folder / f"{self.pid}-{start:x}.fdump"
        self._told: list[Told] = []
        self._turns: list[tuple[int, bool, int, Range]] = []
        self._nodes: list[tuple[int, int]] = []
        self._correlation = 0
        for tid in (self.pid, self.pid + 1)[: random.choice([1, 2])]:
            self._live(tid)
        self._told.sort(key=lambda one: one.when)
        self._turns.sort(key=lambda one: one[0])

    # What happens

    def _live(self, tid: int) -> None:
        random, now = self._random, self.begin
        ranges: list[Range] = []
        while True:
            pause = random.choice([0, 1, 1, 1, 5, 30]) * random.randrange(SECOND)
            now = max(self._on_grid(now + pause), now + 1)
            if now >= self.end:
                return
            choice = random.random()
            path = ranges[-1].path if ranges else ()
            if choice < 0.2 and len(ranges) < 4:
                ranges.append(Range(now, (*path, random.choice(RANGES))))
                self._turns.append((now, True, tid, ranges[-1]))
            elif choice < 0.4 and ranges:
                self._pop(ranges.pop(), now, tid)
            elif choice < 0.45:
                self._capture(now, tid, path)
            elif choice < 0.55:
                now = self._block(now, tid, path)
            else:
                now = self._launch(now, tid, path, choice < 0.65)

    def _on_grid(self, time: int) -> int:
        return -(-time // self._grid) * self._grid

    def _pop(self, one: Range, now: int, tid: int) -> None:
        self._turns.append((now, False, tid, one))
        self._tell(now, "range", tid=tid, end_tid=tid, start=one.start, end=now, path=one.path)

    def _tell(self, when: int, key: str, **row: Any) -> None:
        self._told.append(Told(when, key, row))

    def _capture(self, now: int, tid: int, path: tuple[str, ...]) -> None:
        node = 10 * (len(self._nodes) + 1)
        code = {"path": path, "depth": self._random.randrange(5)}
        self._tell(now, "graph_node", node=node, original=0, time=now, tid=tid, **code)
        if self._random.random() < 0.5:
            node += 1
            self._tell(now, "graph_node", node=node, original=node - 1, time=now, tid=tid)
        self._nodes.append((now, node))

    def _block(self, now: int, tid: int, path: tuple[str, ...]) -> int:
        """A call that launches nothing, or something on the way; when it is over."""
        random = self._random
        api, end = random.choice(list(BLOCKING)), now + random.choice([0, 1, self._grid])
        if random.random() < 0.3:
            end = self._launch(end, tid, path, False, within=api)
        end += random.choice([0, 1, 1000, 3 * self._grid, SECOND])
        code = {"tid": tid, "path": path, "depth": random.randrange(5)}
        self._tell(end, "call", start=now, end=end, api=api, **code)
        return end

    def _launch(
        self, now: int, tid: int, path: tuple[str, ...], replay: bool, within: int = 0
    ) -> int:
        """A call, and what it launches; when it is over."""
        random = self._random
        nodes = [node for made, node in self._nodes if made < now][-3:]
        replay = replay and bool(nodes)
        self._correlation += 1
        end = now + random.choice([0, 1, 7, 1000, self._grid, 3 * self._grid])
        code = {"tid": tid, "path": path, "depth": random.randrange(5)}
        row = {"correlation": self._correlation, **code}
        if random.random() >= self._lost:
            api = REPLAY if replay else LAUNCH
            flags = within << 16
            self._tell(end, "launch", start=now, end=end, api=api, flags=flags, **row)
        time = end
        for node in [*nodes, NOBODY] if replay else [0] * (random.random() < 0.95):
            time = self._run(time, node, row)
        return end

    def _run(self, after: int, node: int, row: dict[str, Any]) -> int:
        """A kernel or a copy; when it is over."""
        random, grid = self._random, self._grid
        start = self._on_grid(after + random.choice([0, 0, grid, 2 * grid, SECOND // 100]))
        length = random.choice([0, 1, 100, grid, 2 * grid, SECOND])
        if random.random() < 0.04:
            length = random.choice([-5, random.randrange(30 * SECOND)])
        end = start + length
        when = max(start, end) + random.choice([0, SECOND // 10, SECOND])
        when += random.randrange(20 * SECOND) * (random.random() < 0.05)
        row = row | {"start": start, "end": end, "graph_node": node}
        row |= {"device": random.choice([0, 0, 1]), "stream": random.choice([7, 13])}
        if node or random.random() < 0.8:
            self._tell(when, "kernel", symbol=random.choice(["gemm", "softmax"]), **row)
        else:
            self._tell(when, "memop", kind=random.choice([0, 1]), copy_kind=1, **row)
        return max(start, end)

    # What is written

    def write(self, now: int) -> None:
        """The dump as it is at ``now``."""
        film = self._film
        while self._told and self._told[0].when <= now:
            self._write(*self._told.pop(0)[1:])
        film.reopen(self._open(now))
        if not film.ended:
            film.end = now - self.begin
        film.ended = now >= self.end and not self._told
        data = film.data()
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.write(data)

    def _write(self, key: str, row: dict[str, Any]) -> None:
        film, row = self._film, dict(row)
        path = row.pop("path", ())
        if key == "range":
            row |= {"name": film.range_name(path[-1]), "node": film.nvtx(*path)}
        else:
            depth = row.pop("depth", 0)
            places = [(name, f"{name}.py", at) for at, name in enumerate(FUNCTIONS[:depth], 1)]
            row |= {"nvtx": film.nvtx(*path), "python": film.python(*places)}
        for name in {"start", "end", "time"} & row.keys():
            row[name] += START
        if "symbol" in row:
            row["symbol"] = film.text(row["symbol"])
        film.record(key, **row)

    def _open(self, now: int) -> list[tuple[int, Range]]:
        found: list[tuple[int, Range]] = []
        for when, opened, tid, one in self._turns:
            if when <= now and opened:
                found.append((tid, one))
            elif when <= now:
                found.remove((tid, one))
        return found
