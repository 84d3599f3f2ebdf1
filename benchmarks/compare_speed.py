#!/usr/bin/env python3
"""Measures two checkouts of flame in turn and says what got slower.

    python benchmarks/compare_speed.py OLD NEW [--only start load reopen app keys] [--rounds 7]

Start, first opening, opening again, the app until its first picture and until it shows the trace,
and keys of the app, each by time, bytes or memory. Rounds alternate in which of the two is first.
A figure is slower where the medians are more than ``--least`` percent apart and, of all pairs of an
old and a new round, the new one is slower in nine of ten: with seven rounds chance does that in
less than one of 200 cases. What looks slower is measured in as many rounds again, and all of them
decide: less than one of 10,000. Exit status 1 where something is slower. Each checkout runs in its
own `.venv` where it has one, and its compiled part is built anew.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import bench_start, bench_tui
from benchmarks.support.measuring import Run, generated, run
from benchmarks.support.tree_traces import generate

ROOT = Path(__file__).resolve().parents[1]
SMALL = ROOT / "samples" / "decode_small.sqlite"
EXPORT = ("export", "-f", "folded", "-o", os.devnull)
SCENES = "cursor,zoom,filter,views"
OLD, NEW = 0, 1
SURE = 0.9

Figures = Iterator[tuple[str, float]]
"""What was measured once, by name; less is better."""


class Side(NamedTuple):
    """A checkout, the command that runs it, the folder of its cache, the option to have none."""

    checkout: Path
    flame: list[str]
    cache: Path
    anew: tuple[str, ...] = ()

    def run(self, *words: str, cache: str = os.devnull) -> Run:
        """Runs one command of it."""
        environment = {"PYTHONPATH": str(self.checkout), "XDG_CACHE_HOME": cache}
        return run([*self.flame, *words], environment)


def side_of(checkout: Path, cache: Path) -> Side:
    """The checkout, ready to be measured; SystemExit where another flame would run."""
    python = str(bench_start.python_of(checkout))
    script = checkout / "csrc" / "build.py"
    if script.exists() and subprocess.run([python, str(script)], capture_output=True).returncode:
        print(f"{checkout}: without its compiled part")
    # -P: not the flame of the folder that this is called in.
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    command = [python, "-P", "-c", "import flame; print(flame.__file__)"]
    found = subprocess.check_output(command, env=environment, text=True).strip()
    if not Path(found).is_relative_to(checkout):
        raise SystemExit(f"{checkout} would run {found}")
    side = Side(checkout, [python, "-P", "-m", "flame"], cache)
    has_cache = "--no-cache" in side.run("export", "--help").output
    return side._replace(anew=("--no-cache",) if has_cache else ())


def start(side: Side, folder: Path) -> Figures:
    """Commands that read little or nothing."""
    yield from process("--version", side.run("--version"))
    yield from process("--help", side.run("--help"))
    yield from process("--print of a small sample", side.run("view", "--print", str(SMALL)))


def load(side: Side, folder: Path) -> Figures:
    """The first opening."""
    done = side.run(*EXPORT, *side.anew, str(folder / "1M.sqlite"))
    yield from process("load and export", done)
    yield "load and export: peak MiB", done.memory / 2**20


def reopen(side: Side, folder: Path) -> Figures:
    """Opening again, from what the warm-up has kept."""
    words = ("view", "--print", str(folder / "1M.sqlite"))
    yield from process("open again", side.run(*words, cache=str(side.cache)))


def app(side: Side, folder: Path) -> Figures:
    """The app on a terminal."""
    for title, text in bench_start.TEXTS.items():
        case = bench_start.Case(title, [*side.flame, "view", str(SMALL)], text)
        spent = bench_start.measure(case, side.checkout)
        yield f"{title}: CPU ms", 1e3 * spent.cpu
        yield f"{title}: wall ms", 1e3 * spent.wall


def keys(side: Side, folder: Path) -> Figures:
    """Time to the first byte and bytes of keys, and the work of them all."""
    trace = str(folder / "tree.sqlite")
    environment = ["env", f"PYTHONPATH={side.checkout}"]
    command = [*environment, *side.flame, "view", "--no-fold-numbers", trace]
    program = bench_tui.Program("flame", command, tuple(SCENES.split(",")))
    program.play()
    if program.failure:
        raise SystemExit(program.failure)
    reactions = {what: program.median(what) for what in program.reactions if what}
    for what, one in reactions.items():
        if one and what != "start":
            yield f"key {what}: first byte ms", 1e3 * one.first
            yield f"key {what}: bytes", one.size
    work = (one.work for what, all_ in program.reactions.items() if what for one in all_)
    yield "all keys: CPU ms", 1e3 * sum(work)


def process(title: str, done: Run) -> Figures:
    """Both times of a process."""
    yield f"{title}: CPU ms", 1e3 * done.cpu
    yield f"{title}: wall ms", 1e3 * done.wall


Measure = Callable[[Side, Path], Figures]
MEASURES: dict[str, Measure] = {
    "start": start,
    "load": load,
    "reopen": reopen,
    "app": app,
    "keys": keys,
}


class Rounds(NamedTuple):
    """All figures of a name, of the old checkout and of the new one."""

    old: list[float]
    new: list[float]

    @property
    def ratio(self) -> float:
        """New to old, of the medians."""
        before, after = statistics.median(self.old), statistics.median(self.new)
        return after / before if before else float("inf") if after else 1.0

    def verdict(self, least: float) -> str:
        """`slower` or `faster` where the difference is beyond ``least`` and the noise, else ""."""
        if self.ratio > 1 + least and self.share >= SURE:
            return "slower"
        if self.ratio < 1 / (1 + least) and 1 - self.share >= SURE:
            return "faster"
        return ""

    @property
    def share(self) -> float:
        """In how many of all pairs the new one is larger; equal ones count half."""
        pairs = [(new > old) + 0.5 * (new == old) for new in self.new for old in self.old]
        return sum(pairs) / len(pairs)


def quartiles(values: list[float]) -> list[float]:
    """The three values that part them into four."""
    return statistics.quantiles(values, n=4, method="inclusive")


Found = dict[tuple[str, str], Rounds]
"""By what was measured and the name of the figure."""


def measure(names: Iterable[str], sides: tuple[Side, Side], folder: Path, rounds: int) -> Found:
    """Measures all of ``names`` in turn; the first round warms the caches."""
    found: Found = defaultdict(lambda: Rounds([], []))
    for number in range(rounds + 1):
        for name in names:
            for which in (OLD, NEW) if number % 2 else (NEW, OLD):
                for row, figure in MEASURES[name](sides[which], folder):
                    if number:
                        found[name, row][which].append(figure)
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
    return found


def again(found: Found, least: float, more: Callable[[set[str]], Found]) -> None:
    """Adds as many rounds to what looks slower."""
    doubted = {name for (name, _), one in found.items() if one.verdict(least) == "slower"}
    for key, one in (more(doubted) if doubted else {}).items():
        found[key].old.extend(one.old)
        found[key].new.extend(one.new)


def report(found: Found, least: float) -> str:
    """Medians and the middle halves of the rounds."""
    lines = [f"{'':40} {'old':>26} {'new':>26} {'new / old':>10}"]
    for (_, row), one in found.items():
        cells = " ".join(f"{spread(values):>26}" for values in one)
        lines.append(f"{row:40} {cells} {one.ratio:10.3f}  {one.verdict(least)}".rstrip())
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    """The median, and from where to where the middle half is."""
    low, middle, high = quartiles(values)
    return f"{middle:,.1f} ({low:,.1f}–{high:,.1f})"


def main() -> int:
    """Measures, says what differs, and returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--rounds", type=int, default=7, help="default: %(default)s")
    parser.add_argument("--least", type=float, default=5, metavar="PERCENT", help="default: 5")
    parser.add_argument("--nodes", type=int, default=10_000, help="of the tree that keys move in")
    args = parser.parse_args()
    if args.rounds < 3:
        parser.error("--rounds: at least 3, or there is no telling what is noise")
    least = args.least / 100
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if {"load", "reopen"} & {*args.only}:
            generated(folder, "1M")
        if "keys" in args.only:
            generate(folder / "tree.sqlite", args.nodes)
        sides = (
            side_of(args.old.resolve(), folder / "old"),
            side_of(args.new.resolve(), folder / "new"),
        )
        found = measure(args.only, sides, folder, args.rounds)
        again(found, least, lambda names: measure(names, sides, folder, args.rounds))
    print(report(found, least))
    slower = [row for (_, row), one in found.items() if one.verdict(least) == "slower"]
    print(f"slower: {', '.join(slower)}" if slower else "nothing got slower")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
