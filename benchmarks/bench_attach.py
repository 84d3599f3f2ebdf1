#!/usr/bin/env python3
"""Measures watching a process: what an update costs, how late it is, and what the process pays.

A process launches kernels on the test double at a steady rate (`launch_paced.py`). Reading what is
new is compared to reading all of the dump again, an update after a minute to one at first, a launch
with a viewer to one without, all in one run. CPU times, which other work on the machine makes only
a little longer; but what is shown late, and keys that are answered late, may be its fault.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from flame.core.projection.project import project

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import flame  # noqa: E402
from benchmarks.bench_inject import Native  # noqa: E402
from benchmarks.support.rows import Row, add_option, tell  # noqa: E402
from benchmarks.support.terminal import DOWN, ENTER, UP, Terminal  # noqa: E402
from flame.core.errors import InputError  # noqa: E402
from flame.core.live.feed import RecordingFeed  # noqa: E402
from flame.core.live.window import LAST_60, LONGEST, SECOND  # noqa: E402
from flame.core.options import LoadOptions  # noqa: E402
from flame.tui.session.tree_view import TreeView  # noqa: E402

PERIOD = 0.25
"""Seconds from one update to the next."""
MIB = 2**20
ROUNDS = 3
SIZES = ((120, 40), (200, 50))
KEYS = (DOWN, ENTER, "u", UP)


@dataclass(frozen=True)
class Target:
    """The watched process; its dumps go to ``folder``."""

    native: Native
    folder: Path
    pc: str

    @contextmanager
    def running(self, rate: int, seconds: float) -> Iterator[subprocess.Popen[bytes]]:
        """It, at so many launches a second; killed where it is left early."""
        library = str(self.native.library)
        variables = {
            "LD_LIBRARY_PATH": str(self.native.fake),
            "CUDA_INJECTION64_PATH": library,
            "NVTX_INJECTION64_PATH": library,
            "FLAME_DIR": str(self.folder),
            "FLAME_PC": self.pc,
        }
        script = str(HERE / "launch_paced.py")
        words = [sys.executable, script, str(self.native.loop), str(rate), str(seconds)]
        process = subprocess.Popen(words, env=os.environ | variables, stdout=subprocess.PIPE)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()
            shutil.rmtree(self.folder)
            self.folder.mkdir(mode=0o700)

    def feed(self) -> RecordingFeed:
        """What follows its dump, as soon as there is one."""
        feed = RecordingFeed(LoadOptions())
        while not feed.sources:
            time.sleep(0.01)
            for path in self.folder.glob("*.fdump"):
                with suppress(InputError):  # its first bytes are still to be written
                    feed.add(path)
        return feed


@dataclass
class Watched:
    """Of all updates: CPU ns to read and to show, ns behind the dump, memory in bytes."""

    read: list[int] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def update(self, feed: RecordingFeed) -> None:
        """One update: what is new is read, and tree and layout made of all that there is."""
        begin = time.thread_time_ns()
        feed.update()
        read = time.thread_time_ns()
        TreeView(project(feed.snapshot(LAST_60).profile)).prepare()
        self.read.append(read - begin)
        self.shown.append(time.thread_time_ns() - read)
        self.behind.append(feed.status().lag)
        self.memory.append(psutil.Process().memory_info().rss)


def watch(target: Target, rate: int, seconds: float) -> Iterator[Row]:
    """Watches for so long, then reads the whole dump: as it grew, and as a finished one."""
    with target.running(rate, seconds + 10) as process:
        feed, watched = target.feed(), Watched()
        for _ in range(int(seconds / PERIOD)):
            begin = time.monotonic()
            watched.update(feed)
            time.sleep(max(PERIOD - (time.monotonic() - begin), 0))
        process.kill()
        yield from report(watched, rate)
        feed.close()
        late, whole = catching_up(target), loading(Path(feed.sources[0].path))
        last = sum(watched.read[-1:] + watched.shown[-1:])
        of = f"{whole / 1e9:.2f} s; to catch up with all of it {late / 1e9:.2f} s"
        yield Row("live, flame.load of the dump", whole / last, "x an update", of)


def catching_up(target: Target) -> int:
    """CPU ns to read what has been recorded before."""
    feed = target.feed()
    begin = time.thread_time_ns()
    while feed.update() and feed.status().behind:
        pass
    feed.close()
    return time.thread_time_ns() - begin


def loading(path: Path) -> int:
    """CPU ns of a viewer without memory, which would read all of it for each update."""
    begin = time.thread_time_ns()
    flame.load(path).tree()
    return time.thread_time_ns() - begin


def report(watched: Watched, rate: int) -> Iterator[Row]:
    """What was measured: the part after the window has been filled against the first updates."""
    total = [sum(both) for both in zip(watched.read, watched.shown, strict=True)]
    full = min(int(LONGEST / SECOND / PERIOD), len(total) - 1)
    tenth = max(len(total) // 10, 1)
    first, last = (statistics.median(part) for part in (total[:tenth], total[-tenth:]))
    read, shown = (statistics.mean(part) / 1e6 for part in (watched.read, watched.shown))
    share = statistics.mean(total) / (PERIOD * SECOND)
    of = f"an update reads for {read:.1f} ms and shows for {shown:.1f} ms"
    yield Row(f"live, {rate:,} launches/s", 100 * share, "% of a core", of)
    memory = [one / MIB for one in watched.memory]
    grown, then = memory[full] - memory[0], memory[-1] - memory[full]
    of = f"memory grows by {grown:.0f} MiB while the window fills, then by {then:.0f} MiB"
    yield Row("live, the last updates", last / first, "x the first", of)
    behind = [one / 1e6 for one in watched.behind]
    of = f"{max(behind):.0f} ms at most"
    yield Row("live, behind the dump", statistics.median(behind), "ms", of)


def cost(target: Target, rate: int, seconds: float) -> Row:
    """A launch with and without a viewer, the least of interleaved rounds."""
    ways: dict[str, Callable[[subprocess.Popen[bytes]], None]] = {
        "alone": lambda process: None,
        "watched": look_on,
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for way, look in ways.items():
            with target.running(rate, seconds) as process:
                look(process)
                assert process.stdout is not None
                least[way] = min(least[way], json.loads(process.stdout.read())["ns"])
    alone, watched = least.values()
    of = f"{watched:.0f} of {alone:.0f} ns"
    return Row("launch with a viewer", watched / alone, "x without", of)


def look_on(process: subprocess.Popen[bytes]) -> None:
    """Have the app watch the target until it ends."""
    terminal = attached(process)
    try:
        while process.poll() is None:
            terminal.read_for(PERIOD)
    finally:
        terminal.close()


def attached(process: subprocess.Popen[bytes], columns: int = 120, rows: int = 40) -> Terminal:
    """The app on a terminal, following the target."""
    words = [sys.executable, "-m", "flame", "attach", str(process.pid)]
    return Terminal(words, columns, rows)


def app(target: Target, rate: int, seconds: float, size: tuple[int, int]) -> Row:
    """CPU time and bytes of the app itself, and how soon it answers."""
    with target.running(rate, 10 * seconds) as process:
        target.feed().close()
        terminal = attached(process, *size)
        try:
            terminal.read_for(seconds / 2)  # until it has started and caught up
            before = terminal.worked()
            written = terminal.read_for(seconds)
            share = (terminal.worked() - before) / seconds
            answers = [terminal.answer(key) for key in 5 * KEYS]
        finally:
            terminal.close()
    sent = f"{written / seconds / 1e3:.1f} kB/s"
    of = f"{sent}, a key is answered after {statistics.median(answers) * 1e3:.0f} ms"
    name = f"live, the app, {size[0]} x {size[1]}, {rate:,} launches/s"
    return Row(name, 100 * share, "% of a core", of)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=50_000, help="launches per second")
    parser.add_argument("--seconds", type=float, default=70, help="to watch")
    parser.add_argument(
        "--pc", choices=("off", "continuous"), default="off", help="default: %(default)s"
    )
    add_option(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = Target(Native.built(Path(folder)), Path(folder) / "dumps", args.pc)
        target.folder.mkdir(mode=0o700)
        rows = [
            *watch(target, args.rate, args.seconds),
            cost(target, args.rate, args.seconds / 10),
            *(app(target, args.rate, args.seconds / 8, size) for size in SIZES),
            app(target, 200, args.seconds / 8, SIZES[0]),
        ]
        tell(rows, args.json)


if __name__ == "__main__":
    main()
