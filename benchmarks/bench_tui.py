#!/usr/bin/env python3
"""Measures the app as a terminal sees it: a key in, the time to the first and last byte out.

The app runs on a pseudo terminal of 200 x 50 cells in true colour, on generated traces whose tree
has as many nodes as asked for. In the same run, on the same tree: a straightforward Rich rendering
(`naive_rich.py`), and flameshow where it is installed (see `support/peers.py`). Ratios can be
compared between machines, milliseconds cannot.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.peers import FLAMESHOW
from benchmarks.support.rows import Row, add_option, tell
from samples.nsys_schema import PUSH_POP, TABLES_2026, create_sql, gpid, gtid, required

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, ROWS = 200, 50
QUIET = 0.15
"""So many seconds without a byte and without work are the end of a reaction."""
QUIET_START = 1.5
"""The same while a file is read: on a busy machine a pause is not the end yet."""
PATIENCE = 120.0
ENVIRONMENT = {
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "PYTHONPATH": str(ROOT),
    # Neither the settings nor the search history of whoever runs this.
    "XDG_CONFIG_HOME": str(ROOT / "benchmarks"),
    "XDG_STATE_HOME": os.devnull,
    "XDG_CACHE_HOME": os.devnull,  # nor what was read the last time
}

UP, DOWN, RIGHT, LEFT = (f"\x1b[{letter}" for letter in "ABCD")
ENTER, ESCAPE, TAB, PAGE_DOWN, HOME = "\r", "\x1b", "\t", "\x1b[6~", "\x1b[H"
NEXT_METRIC = "\x0e"
TOLD = frozenset(("cursor", "held key", "zoom"))
"""Keys that have goals of their own for the bytes they send."""

HELD = 20
"""Presses of a key that is held, at `PER_SECOND`."""
PER_SECOND = 30

Press = tuple[str, str]
"""What is measured, empty for a key that only leads there, and the bytes that the key sends.

A key that is `HELD` is that many times the same.
"""


def presses(what: str, *keys: str) -> list[Press]:
    """The keys one by one, all measured as ``what``."""
    return [(what, key) for key in keys]


TO_A_FRAME = presses("", ESCAPE, DOWN, DOWN)
ZOOMS = [*TO_A_FRAME, *presses("zoom", ENTER), *presses("", DOWN), *presses("zoom", ENTER)]
SCENES: dict[str, list[Press]] = {
    "cursor": [
        *TO_A_FRAME,
        *presses("", ENTER),
        *presses("cursor", DOWN, RIGHT, RIGHT, LEFT, RIGHT, DOWN, RIGHT, DOWN, UP, UP),
        *presses("", ESCAPE),
    ],
    "held": [
        *presses("", ESCAPE, HOME, DOWN, DOWN, ENTER, DOWN),
        *presses("held key", *2 * [HELD * RIGHT, HELD * LEFT]),
        *presses("", ESCAPE, HOME),
    ],
    "zoom": 3 * [*ZOOMS, *presses("out", "u", "u")],
    "search": [
        *presses("", "/"),
        *presses("search: a letter", *"mlp.up"),
        *presses("", ENTER),
        *presses("next match", "n", "n", "n"),
        *presses("", ESCAPE, ESCAPE),
    ],
    "pivot": [
        *presses("level", "1", "1", "8", "8"),
        *presses("metric", NEXT_METRIC, "M", NEXT_METRIC, "M"),
    ],
    "arrange": [*presses("invert", "i", "i"), *presses("sort", "s", "s", "s")],
    "filter": 2 * [*TO_A_FRAME, *presses("filter", "A"), *presses("undo", "z")],
    "views": presses("view", *10 * [TAB]),
    "sandwich": [*TO_A_FRAME, *presses("sandwich", "x"), *presses("", "\x1b[Z")],
    "table": [
        *presses("", TAB, TAB),
        *presses("table: row", DOWN, DOWN, UP),
        *presses("table: page", *4 * [PAGE_DOWN]),
        *presses("table: sort", "s", "s"),
        *presses("", TAB, TAB, TAB),
    ],
    "dialog": [
        *presses("dialog", "L"),
        *presses("dialog: row", DOWN, DOWN, UP),
        *presses("dialog: close", "q"),
    ],
    "timeline": [
        *presses("", TAB, TAB, TAB),
        *presses("timeline: activity", DOWN, RIGHT, RIGHT, RIGHT),
        *presses("timeline: zoom", *"+++-"),
        *presses("timeline: pan", *"..,"),
        *presses("", TAB, TAB),
    ],
}

COMPARING: dict[str, list[Press]] = {
    "compare": [
        *TO_A_FRAME,
        *presses("width", *3 * ["D"]),
        *presses("colour", *2 * ["O", "V"]),
        *presses("basis", *3 * ["p"]),
    ],
}
"""What only a comparison has."""


class Reaction(NamedTuple):
    """Seconds to the first and to the last byte (NaN if none came), and how many there were.

    ``work`` is the processor seconds until all is quiet, in steps of the kernel's clock.
    """

    first: float
    last: float
    size: float
    work: float


class Terminal:
    """A process whose standard streams are a terminal; it answers no query."""

    def __init__(self, command: list[str], columns: int = COLUMNS, rows: int = ROWS) -> None:
        self._end, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._begin = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, env=os.environ | ENVIRONMENT
        )
        os.close(other)
        self._work = psutil.Process(self.process.pid)

    def press(self, key: str) -> Reaction:
        """Send ``key`` and wait until all is quiet."""
        begin = time.perf_counter()
        os.write(self._end, key.encode())
        return self.react(begin)

    def hold(self, keys: str) -> Reaction:
        """Send ``keys``, `HELD` times the same one, at the pace of a keyboard.

        The times are from the last press on; the bytes are those of one press, without what
        follows once the key is let go.
        """
        key, size = keys[: len(keys) // HELD], 0
        for _ in range(HELD):
            begin = time.perf_counter()
            os.write(self._end, key.encode())
            size += self.read_for(1 / PER_SECOND)
        after = self.react(begin)
        return after._replace(size=size / HELD)

    def answer(self, key: str) -> float:
        """Seconds from ``key`` to the next byte, where the program is never at rest."""
        while self._read():
            pass
        begin = time.perf_counter()
        os.write(self._end, key.encode())
        while not self._read() and time.perf_counter() - begin < PATIENCE:
            pass
        return time.perf_counter() - begin

    def start(self) -> Reaction:
        """Wait until the program has drawn what it was started with."""
        return self.react(self._begin, QUIET_START)

    def react(self, begin: float, quiet: float = QUIET) -> Reaction:
        """Read until no byte has come and no work was done for a while; TimeoutError if never."""
        first = last = float("nan")
        size, since = 0, begin
        before = worked = self.worked()
        while (now := time.perf_counter()) - begin < PATIENCE:
            part = self._read()
            if part:
                last = time.perf_counter() - begin
                first = last if not size else first
                size += part
            if part or self.worked() - worked > 0.02:
                worked, since = self.worked(), time.perf_counter()
            elif now - since > quiet:
                return Reaction(first, last, size, self.worked() - before)
        raise TimeoutError(f"not at rest after {PATIENCE:.0f} s")

    def read_for(self, seconds: float) -> int:
        """Read for so long, whatever comes; the number of bytes."""
        end, size = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            size += self._read()
        return size

    def _read(self) -> int:
        if not select.select([self._end], [], [], 0.02)[0]:
            return 0
        try:
            return len(os.read(self._end, 1 << 20))
        except OSError as error:  # the other end is closed
            raise TimeoutError("ended by itself") from error

    def worked(self) -> float:
        """CPU seconds that the process has used, in steps of the kernel's clock."""
        try:
            spent = self._work.cpu_times()
        except psutil.Error as error:
            raise TimeoutError("ended by itself") from error
        return float(spent.user + spent.system)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)


@dataclass
class Program:
    """What is measured, on which file, and the scenes that it can play."""

    title: str
    command: list[str]
    scenes: tuple[str, ...]
    keys: dict[str, str] = field(default_factory=dict)
    """Keys by those of the app, where they differ; "" where there is none."""
    limit: int = 0
    """Bytes of memory it may take, 0 for any."""
    reactions: dict[str, list[Reaction]] = field(default_factory=dict)
    failure: str = ""

    def play(self) -> None:
        """Start it and press the keys of all scenes."""
        terminal = Terminal([*self._limits(), *self.command])
        try:
            self.reactions["start"] = [terminal.start()]
            for scene in self.scenes:
                for what, key in (SCENES | COMPARING)[scene]:
                    if key := self.keys.get(key, key):
                        press = terminal.hold if what == "held key" else terminal.press
                        reaction = press(key)
                        self.reactions.setdefault(what, []).append(reaction)
        except TimeoutError as error:
            self.failure = str(error)
        finally:
            terminal.close()

    def _limits(self) -> list[str]:
        shell = ["sh", "-c", f'ulimit -v {self.limit // 1024}; exec "$@"', "sh"]
        return shell if self.limit else []

    def median(self, what: str) -> Reaction | None:
        """The middle of all reactions to keys of one meaning, each number by itself.

        Of the work it is the mean: the clock is too coarse for a single key.
        """
        seen = [one for one in self.reactions.get(what, ()) if one.size]
        if not seen:
            return None
        *columns, work = zip(*seen, strict=True)
        first, last, size = map(statistics.median, columns)
        return Reaction(first, last, size, statistics.fmean(work))


def programs(trace: Path, scenes: tuple[str, ...], peers: bool) -> Iterator[Program]:
    """The app and, with ``peers``, what it is compared to."""
    python = sys.executable
    # Names that differ only in numbers are shown as one by default: a tree of a few frames.
    view = [python, "-m", "flame", "view", "--no-fold-numbers", str(trace)]
    yield Program("flame", view, scenes)
    shared = tuple(scene for scene in ("cursor", "zoom") if scene in scenes)
    if not peers:
        return
    yield Program(
        "naive Rich", [python, str(ROOT / "benchmarks/naive_rich.py"), str(trace)], shared
    )
    if flameshow := FLAMESHOW.found():
        folded = export(trace)
        # Its way out is Escape, for which every terminal program waits: no comparison.
        yield Program("flameshow", [str(flameshow), str(folded)], shared, {"u": ""}, 8 << 30)


def comparing(trace: Path, nodes: int, scenes: tuple[str, ...]) -> Program:
    """The app on ``trace`` and one whose kernels of some names take a tenth longer."""
    longer = trace.with_suffix(".longer.sqlite")
    if not longer.exists():
        generate(longer, nodes, 1.1)
    diff = [sys.executable, "-m", "flame", "diff", "--no-fold-numbers", str(trace), str(longer)]
    return Program("flame diff", diff, (*scenes, *COMPARING))


def export(trace: Path) -> Path:
    """The folded stacks of ``trace``, beside it."""
    path = trace.with_suffix(".folded")
    command = [sys.executable, "-m", "flame", "export", "-f", "folded", str(trace), "-o", str(path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return path


LAYERS = 24
MODULES = ("qkv_proj", "attn", "o_proj", "mlp.up_proj", "mlp.act", "mlp.down_proj")
OPERATORS = LAYERS * len(MODULES)
NODES_PER_STEP = 1 + LAYERS + 2 * OPERATORS
BETWEEN = 10_000
PID = 100


def generate(path: Path, nodes: int, longer: float = 1.0) -> None:
    """A trace of steps of layers of operators: a name of its own for each, and a kernel in each.

    Every second name of kernels takes ``longer``.
    """
    steps = max(nodes // NODES_PER_STEP, 1)
    count = steps * OPERATORS
    with closing(sqlite3.connect(path)) as db:
        strings = ["cudaLaunchKernel", *(f"{module}_kernel" for module in MODULES)]
        insert(db, "StringIds", id=range(1, len(strings) + 1), value=strings)
        insert(db, "PROCESSES", globalPid=[gpid(PID)], pid=[PID], name=["synthetic"])
        meta = {"FLAME_SYNTHETIC": "true, made by benchmarks/bench_tui.py"}
        insert(db, "META_DATA_EXPORT", name=meta.keys(), value=meta.values())
        ranges(db, [f"step {i}" for i in range(steps)], OPERATORS, 3)
        layers = [f"model.layers.{i % LAYERS}" for i in range(steps * LAYERS)]
        ranges(db, layers, len(MODULES), 2)
        ranges(db, [f"{MODULES[i % len(MODULES)]} {i}" for i in range(count)], 1, 1)
        launches(db, count, longer)
        db.commit()


def launches(db: sqlite3.Connection, count: int, longer: float) -> None:
    """A launch for each operator, and the kernels one after the other."""
    operator = np.arange(count)
    # The first steps are far longer than the rest, so that frames of all widths are on screen.
    busy = 200 + 20_000 * (1 + operator * 7919 % 37) // (1 + operator // OPERATORS)
    busy = np.where(operator % 2, (longer * busy).astype(np.int64), busy)
    end = np.cumsum(busy) + BETWEEN
    called = operator * BETWEEN + 100
    names = (2 + operator % len(MODULES)).tolist()
    insert(
        db,
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        start=called.tolist(),
        end=(called + 50).tolist(),
        globalTid=count * [gtid(PID, PID)],
        correlationId=range(1, count + 1),
        nameId=count * [1],
    )
    insert(
        db,
        "CUPTI_ACTIVITY_KIND_KERNEL",
        start=(end - busy).tolist(),
        end=end.tolist(),
        correlationId=range(1, count + 1),
        globalPid=count * [gpid(PID)],
        shortName=names,
        demangledName=names,
    )


def ranges(db: sqlite3.Connection, names: list[str], operators: int, margin: int) -> None:
    """A range after the other, each around so many operators."""
    length = operators * BETWEEN
    start = range(10 - margin, len(names) * length, length)
    end = range(length - 20 + margin, (len(names) + 1) * length, length)
    count = len(names)
    insert(
        db,
        "NVTX_EVENTS",
        start=start,
        end=end,
        text=names,
        eventType=count * [PUSH_POP],
        globalTid=count * [gtid(PID, PID)],
        domainId=count * [0],
    )


def insert(db: sqlite3.Connection, table: str, **columns: Iterable[object]) -> None:
    """Append rows to ``table``; what must have a value and has none becomes a neutral one."""
    spec = TABLES_2026[table]
    db.execute(create_sql(table, spec).replace("TABLE", "TABLE IF NOT EXISTS", 1))
    fixed = {name: value for name, value in required(spec).items() if name not in columns}
    values = [*map(repr, fixed.values()), *len(columns) * "?"]
    sql = f"INSERT INTO {table} ({', '.join([*fixed, *columns])}) VALUES ({', '.join(values)})"
    db.executemany(sql, zip(*columns.values(), strict=False))


def report(ran: list[Program]) -> str:
    """The medians as a table, with the ratios to the first program."""
    app, *peers = ran
    titles = [f"{one.title:>45}" for one in ran] + [f"{'times ' + p.title:>22}" for p in peers]
    lines = [f"{'':20}{''.join(titles)}"]
    for what in app.reactions:
        medians = [one.median(what) for one in ran]
        if what and medians[0]:
            cells = [f"{shown(one):>45}" for one in medians]
            cells += [f"{ratio(what, medians[0], one):>22}" for one in medians[1:]]
            lines.append(f"{what:20}{''.join(cells)}".rstrip())
    lines += [f"{one.title}: {one.failure}" for one in ran if one.failure]
    return "\n".join(lines)


def shown(one: Reaction | None) -> str:
    """A reaction as one cell of the table."""
    if one is None:
        return ""
    times = f"{one.first * 1e3:.1f} {one.last * 1e3:7.1f} ms {one.work * 1e3:6.1f} CPU ms"
    return f"{times} {one.size / 1e3:6.1f} kB"


def ratio(what: str, app: Reaction, peer: Reaction | None) -> str:
    """How many times the app's time and bytes the peer takes.

    A start has come to its end with the last byte, but a key has been answered with the first: what
    the app tells of a frame when the cursor has rested on it for a while, no peer tells at all.
    """
    if peer is None:
        return ""
    times = peer.last / app.last if what == "start" else peer.first / app.first
    return f"{times:.1f}, bytes {peer.size / app.size:.1f}"


def rows(app: Program, peers: list[Program], size: str) -> Iterator[Row]:
    """Each key of the app: the time to its first byte, and what is sent; the peers' times it."""
    medians = {what: one for what in app.reactions if what and (one := app.median(what))}
    for what, one in medians.items():
        of = f"{one.size / 1e3:.1f} kB, last byte {one.last * 1e3:.0f} ms"
        work = f"{of}, CPU {one.work * 1e3:.0f} ms"
        yield Row(f"{what}, {size} nodes: first byte", one.first * 1e3, "ms", work)
    for what in sorted(TOLD.intersection(medians)):
        yield Row(f"{what}, {size} nodes: sent", medians[what].size / 1e3, "kB")
    if others := {what: one.size for what, one in medians.items() if what not in TOLD | {"start"}}:
        most = max(others, key=others.__getitem__)
        yield Row(f"any other key, {size} nodes: sent", others[most] / 1e3, "kB", most)
    for peer in peers:
        for what in sorted(TOLD.intersection(medians)):
            if other := peer.median(what):
                times = f"{other.first * 1e3:.0f} of {medians[what].first * 1e3:.0f} ms"
                name = f"{peer.title}, {what}, {size} nodes: first byte"
                yield Row(name, other.first / medians[what].first, "x flame", times)


def number(text: str) -> int:
    """``250k`` or ``1M`` as a number."""
    factor = {"k": 1_000, "M": 1_000_000}.get(text[-1], 1)
    return int(text.rstrip("kM")) * factor


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--nodes", default="10k,250k,1M", help="sizes of the tree (default: %(default)s)")
    add("--keys", default=",".join(SCENES), help="what is played (default: %(default)s)")
    add("--no-peers", action="store_true", help="only the app")
    add("--diff", action="store_true", help="the app on two traces, too")
    add("--keep", type=Path, metavar="DIR", help="a folder that holds the traces, or will")
    add_option(parser)
    args = parser.parse_args()
    found: list[Row] = []
    print("key → first byte, last byte, bytes: medians; work: mean; ratios of the first byte")
    with nullcontext(args.keep) if args.keep else tempfile.TemporaryDirectory() as folder:
        for size in args.nodes.split(","):
            trace = Path(folder) / f"{size}.sqlite"
            if not trace.exists():
                generate(trace, number(size))
            ran = list(programs(trace, tuple(args.keys.split(",")), not args.no_peers))
            for program in ran:
                program.play()
            print(f"\n{size} nodes\n{report(ran)}", flush=True)
            found += rows(ran[0], ran[1:], size)
            if args.diff:
                diff = comparing(trace, number(size), tuple(args.keys.split(",")))
                diff.play()
                print(f"\n{size} nodes a side\n{report([diff])}", flush=True)
                found += rows(diff, [], f"{size} + {size}")
    tell(found, args.json)


if __name__ == "__main__":
    main()
