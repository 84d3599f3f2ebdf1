#!/usr/bin/env python3
"""Measures what each key sends to the terminal, and how long that takes over a slow link.

The app runs on a pseudo terminal of 200 x 50 cells in true colour: on the bundled samples and on
files that are generated, and on traces that are named. Keys are pressed one after the other in all
views, dialogs and pages; the worst come first. Then keys are held as long as a person does, on a
link that takes so many bytes a second and holds back some: how late the last picture is tells
whether typing ahead queues up. Exit status 1 where a key takes more than a second.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_memory import GENERATE as SNAPSHOT
from benchmarks.support.measuring import ROOT
from benchmarks.support.rows import Row, add_option, tell
from benchmarks.support.terminal import (
    DOWN,
    ENTER,
    ESCAPE,
    LEFT,
    PAGE_DOWN,
    RIGHT,
    TAB,
    UP,
    Terminal,
)
from tests.support.ranks.rank_traces import write_ranks

RATE = 20_000
"""Bytes a second of a link that people call slow."""

PER_SECOND = 30
HOLD = 3.0
HELD_BACK = (4_096, 65_536)
"""Bytes that wait in the network for their turn: of a serial line, and of SSH."""

PALETTE, NEXT_METRIC, BACK_TAB = "\x10", "\x0e", "\x1b[Z"
SAMPLES = ROOT / "samples"

Keys = list[tuple[str, str]]
"""What each key does, and the bytes that it sends."""


def keys(view: str, *pressed: tuple[str, str]) -> Keys:
    """The keys with ``view`` before what they do."""
    return [(f"{view}: {what}", key) for what, key in pressed]


def closed(view: str, what: str, key: str, *inside: tuple[str, str]) -> Keys:
    """Open something by ``key``, press what there is inside, and close it."""
    opened = ((what, key), *((f"{what}, {name}", one) for name, one in inside))
    return keys(view, *opened, (f"{what}, close", ESCAPE))


MOVES = (("down", DOWN), ("down", DOWN), ("right", RIGHT), ("left", LEFT), ("up", UP))
ROWS = (("down", DOWN), ("page down", PAGE_DOWN), ("up", UP))
PAGES: Keys = [
    *closed("icicle", "help", "?", ("page down", PAGE_DOWN), ("words", "w"), ("section", TAB)),
    *closed("icicle", "palette", PALETTE, ("letter", "m"), ("down", DOWN)),
    *closed("icicle", "levels", "L", *ROWS),
    *closed("icicle", "metrics", "m", *ROWS),
    *closed("icicle", "filters", "f", ("down", DOWN), ("enter", ENTER)),
    *keys("icicle", ("close the filters", ESCAPE)),
    *closed("icicle", "steps", "p", *ROWS),
    *closed("icicle", "export", "e", ("right", RIGHT)),
    *closed("icicle", "notes", "w"),
]
ICICLE: Keys = [
    *keys("icicle", *MOVES, ("zoom", ENTER), ("zoom out", "u")),
    *keys("icicle", ("invert", "i"), ("invert", "i"), ("order", "s"), ("order", "s")),
    *keys("icicle", *3 * [("kernel names", "K")], *3 * [("colours", "O")]),
    *keys("icicle", *2 * [("numbers", "#")], *2 * [("framework", "P")], *2 * [("details", "d")]),
    *keys("icicle", *2 * [("level", "8")], *2 * [("next metric", NEXT_METRIC)], ("metric", "M")),
    *keys("icicle", ("metric", "M"), *4 * [("theme", "t")]),
    *keys("icicle", ("search", "/"), ("search, letter", "a"), ("search, letter", "t")),
    *keys("icicle", ("search, enter", ENTER), ("next match", "n"), ("search, end", ESCAPE)),
    *keys("icicle", ("everything", ESCAPE), ("down", DOWN), ("filter", "A"), ("undo", "z")),
]
SANDWICH: Keys = [*keys("sandwich", ("show", TAB), *MOVES, ("zoom", ENTER), ("zoom out", "u"))]
TOP: Keys = keys(
    "table",
    *(("show", TAB), *ROWS, *2 * [("order", "s")], *2 * [("rows", "v")], *2 * [("parts", "D")]),
    *(("sort", ">"), ("sort", "0")),
)
TIMELINE: Keys = keys(
    "timeline",
    *(("show", TAB), *MOVES, *3 * [("zoom", "+")], ("zoom out", "-"), *2 * [("pan", ".")]),
    *(*3 * [("rows", "V")], *2 * [("longest gap", "T")], ("next gap", ")"), ("details", "d")),
    *(("details", "d"), ("brush", "b"), ("brush", RIGHT), ("filter", ENTER), ("undo", "z")),
)
REPORT: Keys = keys(
    "report",
    *(("show", TAB), *ROWS, ("next section", RIGHT), ("next section", RIGHT), *ROWS),
    *(("section", LEFT), ("order", ">"), ("go there", ENTER), ("back", ESCAPE)),
)
VIEWS: Keys = [*ICICLE, *PAGES, *SANDWICH, *TOP, *TIMELINE, *REPORT]
FINDING: Keys = keys(
    "finding", ("show", "!"), ("down", DOWN), ("go there", ENTER), ("back", ESCAPE), ("icicle", TAB)
)
LISTING: Keys = [
    *keys("icicle", ("search", "/"), *[("search, letter", one) for one in "gemm"], ("", ENTER)),
    *keys("instructions", ("show", "a"), *ROWS, *2 * [("next", TAB)], ("order", "s")),
    *keys("instructions", ("close", ESCAPE)),
]
BOTH_SIDES: Keys = keys(
    "compared", *3 * [("basis", "p")], *3 * [("width", "D")], *2 * [("all", "V"), ("own", "O")]
)
RANKS: Keys = keys(
    "ranks",
    *(("show", "p"), *MOVES, *3 * [("measure", "v")], *2 * [("order", "s")], ("enter", ENTER)),
    *(("back", ESCAPE), ("search", "/"), ("search, letter", "3"), ("search, end", ESCAPE)),
)
OF_RANKS: Keys = [
    *ICICLE,
    *keys("icicle", ("worst rank", "r"), ("all ranks", "r"), ("wait", "W"), ("wait", "W")),
    *PAGES,
    *SANDWICH,
    *TOP,
    *RANKS,
]


class Scene(NamedTuple):
    """A command of flame, and the keys that are pressed."""

    title: str
    words: list[str]
    pressed: Keys


def scenes(folder: Path, traces: list[str]) -> Iterator[Scene]:
    """What is measured; files that are generated are put into ``folder``."""
    decode, torch = str(SAMPLES / "decode_small.sqlite"), "torch_small.pt.trace.json.gz"
    six = str(SAMPLES / "six_levels")
    yield Scene("Nsight Systems", ["view", decode], [*VIEWS, *FINDING])
    yield Scene("PyTorch", ["view", str(SAMPLES / torch)], [*VIEWS, *FINDING])
    yield Scene("recording", ["view", six], [*VIEWS, *LISTING])
    sides = [decode, "--base-select=--step 1-6", "--new-select=--step 7-13"]
    yield Scene("diff", ["diff", *sides], [*BOTH_SIDES, *VIEWS])
    runs = [str(written_ranks(folder, "one", 5)), str(written_ranks(folder, "two", 2))]
    yield Scene("ranks", ["view", runs[0]], OF_RANKS)
    yield Scene("diff of ranks", ["diff", *runs], [*BOTH_SIDES, *VIEWS, *RANKS])
    snapshot = folder / "snapshot.pickle"
    subprocess.run([sys.executable, "-c", SNAPSHOT, str(snapshot), "2"], check=True)
    yield Scene("memory", ["view", str(snapshot)], VIEWS)
    yield Scene("folder", ["view", str(SAMPLES)], keys("folder", *ROWS, ("mark", " ")))
    for trace in traces:
        yield Scene(Path(trace).name, ["view", trace], [*VIEWS, *FINDING])


def written_ranks(folder: Path, name: str, straggler: int) -> Path:
    """A summary of eight ranks, one of which is slow."""
    made, path = folder / name, folder / f"{name}.flamesum"
    run = write_ranks(made, 8, steps=6, layers=4, straggler=straggler)
    words = ["ranks", *map(str, run.paths), "-o", str(path)]
    subprocess.run([sys.executable, "-m", "flame", *words], cwd=ROOT, check=True)
    return path


class SlowLink(Terminal):
    """A terminal behind a link of ``rate`` bytes a second that holds back some and no more."""

    def __init__(self, command: list[str], rate: int, held_back: int) -> None:
        self._rate, self._most = rate, held_back / rate
        self.arrives = 0.0
        super().__init__(command)

    def _read(self) -> int:
        now = time.perf_counter()
        if self.arrives - now > self._most:
            time.sleep(0.005)
            return 0
        size = super()._read()
        if size:
            self.arrives = max(time.perf_counter(), self.arrives) + size / self._rate
        return size

    def hold_for(self, key: str, seconds: float) -> float:
        """Seconds from the last press of ``key`` to the picture that it ends with."""
        for _ in range(int(seconds * PER_SECOND)):
            os.write(self._end, key.encode())
            self.read_for(1 / PER_SECOND)
        last = time.perf_counter()
        self.react(last)
        return max(self.arrives - last, 0.0)

    def settle(self) -> None:
        """Wait until all has arrived."""
        self.react(time.perf_counter())
        time.sleep(max(self.arrives - time.perf_counter(), 0.0))


HELD: Keys = [("right in the icicle", RIGHT), ("left", LEFT), ("down in the table", DOWN)]


def sent(scene: Scene) -> dict[str, float]:
    """The most bytes that keys of one meaning send."""
    terminal = Terminal([sys.executable, "-m", "flame", *scene.words])
    found: dict[str, float] = {}
    try:
        found["open"] = terminal.start().size
        for what, key in scene.pressed:
            size = terminal.press(key).size
            found[what] = max(size, found.get(what, 0.0))
    except TimeoutError as error:
        print(f"{scene.title}: {error} after {list(found)[-1]}", file=sys.stderr)
    finally:
        terminal.close()
    return found


def held(rate: int) -> Iterator[Row]:
    """How late the last picture is when a key is let go."""
    for most in HELD_BACK:
        command = [sys.executable, "-m", "flame", "view", str(SAMPLES / "decode_small.sqlite")]
        link = SlowLink(command, rate, most)
        try:
            link.start()
            for what, key in (("", DOWN), ("", DOWN), *HELD[:2], ("", TAB), ("", TAB), HELD[2]):
                link.settle()
                if what:
                    name = f"held: {what}, {most // 1024} KiB held back"
                    yield Row(name, link.hold_for(key, HOLD), "s", "from letting go to the end")
                else:
                    link.press(key)
        finally:
            link.close()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("traces", nargs="*", metavar="TRACE", help="what is opened besides the samples")
    add("--only", default="", metavar="TITLE,…", help="of the scenes only these")
    add("--rate", type=int, default=RATE, help="bytes a second (default: %(default)s)")
    add("--rows", type=int, default=40, help="how many are listed (default: %(default)s)")
    add_option(parser)
    args = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for scene in scenes(Path(folder), args.traces):
            if not args.only or scene.title in args.only.split(","):
                rows += [
                    Row(f"{scene.title}, {what}", size / 1e3, "kB", f"{size / args.rate:.2f} s")
                    for what, size in sent(scene).items()
                ]
    rows.sort(key=lambda row: -row.figure)
    tell(rows[: args.rows], args.json)
    if not args.only:
        tell(held(args.rate), None)
    keys_alone = (row for row in rows if not row.name.endswith(", open"))
    return int(any(1e3 * row.figure > args.rate for row in keys_alone))


if __name__ == "__main__":
    sys.exit(main())
