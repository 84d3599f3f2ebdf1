#!/usr/bin/env python3
"""Measures watching a process: the work of an update, its age, and what the process pays.

A process launches kernels on the test double at a steady rate (`launch_paced.py`). Reading what is
new is compared to reading all of the dump again, in the same run; a launch with a viewer to one
without. CPU times, and ratios of one run: both can be compared while other work runs beside.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import flame  # noqa: E402
from benchmarks.bench_inject import Native  # noqa: E402
from benchmarks.bench_tui import Terminal  # noqa: E402
from flame.core.live.feed import Feed  # noqa: E402
from flame.core.live.window import LAST_60  # noqa: E402
from flame.core.options import LoadOptions  # noqa: E402

PERIOD = 0.25
"""Seconds from one update to the next."""
SECOND = 1_000_000_000
MIB = 2**20
ROUNDS = 3


@dataclass(frozen=True)
class Target:
    """The watched process; its dumps go to ``folder``."""

    native: Native
    folder: Path

    @contextmanager
    def running(self, rate: int, seconds: float) -> Iterator[subprocess.Popen[bytes]]:
        """It, at so many launches a second; killed where it is left early."""
        library = str(self.native.library)
        variables = {
            "LD_LIBRARY_PATH": str(self.native.fake),
            "CUDA_INJECTION64_PATH": library,
            "NVTX_INJECTION64_PATH": library,
            "FLAME_DIR": str(self.folder),
        }
        script = str(HERE / "launch_paced.py")
        words = [sys.executable, script, str(self.native.loop), str(rate), str(seconds)]
        process = subprocess.Popen(words, env=os.environ | variables, stdout=subprocess.PIPE)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()
            for path in self.folder.iterdir():
                path.unlink()

    def dump(self) -> Path:
        """Its dump, as soon as there is one."""
        while not (found := list(self.folder.glob("*.fdump"))):
            time.sleep(0.01)
        return found[0]


@dataclass
class Watched:
    """What every update took (CPU ns of its thread) and brought, and how old that was (ns)."""

    read: list[int] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)
    age: list[int] = field(default_factory=list)

    def update(self, feed: Feed) -> None:
        """One update, timed: what is new is read, and the tree made of all that there is."""
        begin = time.thread_time_ns()
        feed.update()
        read = time.thread_time_ns()
        snapshot = feed.snapshot(LAST_60)
        snapshot.profile.tree()
        self.read.append(read - begin)
        self.shown.append(time.thread_time_ns() - read)
        self.age.append(feed.status().lag)


def watch(target: Target, rate: int, seconds: float) -> None:
    """Watches for so long, then reads the whole dump, as a viewer without memory always would."""
    with target.running(rate, seconds + 10) as process:
        feed, watched = Feed(LoadOptions()), Watched()
        feed.add(target.dump())
        memory = psutil.Process().memory_info().rss
        for _ in range(int(seconds / PERIOD)):
            begin = time.monotonic()
            watched.update(feed)
            time.sleep(max(PERIOD - (time.monotonic() - begin), 0))
        grown = psutil.Process().memory_info().rss - memory
        process.kill()
        report(watched, rate, grown, naive(target.dump()))


def naive(path: Path) -> int:
    """CPU ns of reading all of it again."""
    begin = time.thread_time_ns()
    flame.load(path).tree()
    return time.thread_time_ns() - begin


def report(watched: Watched, rate: int, grown: int, whole: int) -> None:
    """What was measured, the first third against the last one."""
    total = [sum(both) for both in zip(watched.read, watched.shown, strict=True)]
    third = max(len(total) // 3, 1)
    first, last = (statistics.mean(part) / 1e6 for part in (total[:third], total[-third:]))
    read, shown = (statistics.mean(part) / 1e6 for part in (watched.read, watched.shown))
    share = statistics.mean(total) / (PERIOD * SECOND)
    print(
        f"{rate:,} launches/s: {share:.0%} of one core at {1 / PERIOD:.0f} updates/s:"
        f" {read:.1f} ms to read what is new, {shown:.1f} ms to show it"
    )
    print(
        f"  an update in the last third × {last / first:.2f} of one in the first;"
        f" all read again {whole / 1e6:.0f} ms: × {whole / 1e6 / last:.1f}"
    )
    age = [one / 1e6 for one in watched.age]
    print(
        f"  what is shown is {statistics.median(age):.0f} ms old, {max(age):.0f} ms at most;"
        f" memory grew by {grown / MIB:.0f} MiB"
    )


def cost(target: Target, rate: int, seconds: float) -> None:
    """A launch with and without a viewer, the least of interleaved rounds."""
    ways: dict[str, Callable[[Target], None]] = {"alone": lambda _: None, "watched": look_on}
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for way, look in ways.items():
            with target.running(rate, seconds) as process:
                look(target)
                assert process.stdout is not None
                least[way] = min(least[way], json.loads(process.stdout.read())["ns"])
    alone, watched = least.values()
    print(
        f"a launch takes {alone:.0f} ns while nobody looks, {watched:.0f} ns with a viewer:"
        f" × {watched / alone:.2f}"
    )


def look_on(target: Target) -> None:
    """Watch in a process of its own until the target ends."""
    words = [sys.executable, __file__, "--watch", str(target.dump())]
    subprocess.Popen(words, env=os.environ | {"PYTHONPATH": str(HERE.parent)})


def follow(path: Path) -> None:
    """Watch the dump at ``path`` until its process ends."""
    feed, watched = Feed(LoadOptions()), Watched()
    feed.add(path)
    while not watched.read or feed.status().running:
        watched.update(feed)
        time.sleep(PERIOD)


def app(target: Target, rate: int, seconds: float, what: str) -> None:
    """CPU time and bytes of the app itself on a terminal."""
    with target.running(rate, seconds + 60) as process:
        target.dump()
        words = [sys.executable, "-m", "flame", "attach", str(process.pid)]
        terminal = Terminal(words)
        try:
            terminal.read_for(seconds / 2)  # until it has caught up
            before = terminal.worked()
            size = terminal.read_for(seconds)
            share = (terminal.worked() - before) / seconds
        finally:
            terminal.close()
        print(f"the app, {what}: {share:.0%} of one core, {size / seconds / 1e3:.1f} kB/s")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=50_000, help="launches per second")
    parser.add_argument("--seconds", type=float, default=90, help="to watch")
    parser.add_argument("--watch", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.watch:
        return follow(args.watch)
    with tempfile.TemporaryDirectory() as folder:
        target = Target(Native.built(Path(folder)), Path(folder) / "dumps")
        target.folder.mkdir(mode=0o700)
        watch(target, args.rate, args.seconds)
        cost(target, args.rate, args.seconds / 9)
        app(target, args.rate, args.seconds / 9, f"{args.rate:,} launches/s")
        app(target, 0, args.seconds / 9, "nearly idle")


if __name__ == "__main__":
    main()
