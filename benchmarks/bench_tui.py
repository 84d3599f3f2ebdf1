#!/usr/bin/env python3
"""Measures the app as a terminal sees it: a key in, the time to the first and last byte out.

The app runs on a pseudo terminal of 200 x 50 cells in true colour, on generated traces whose tree
has as many nodes as asked for. In the same run, on the same tree: a straightforward Rich rendering
(`naive_rich.py`), and flameshow where it is installed (see `support/peers.py`). Ratios can be
compared between machines, milliseconds cannot.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.peers import FLAMESHOW
from benchmarks.support.rows import Row, add_option, tell
from benchmarks.support.terminal import (
    DOWN,
    ENTER,
    ESCAPE,
    HELD,
    HOME,
    LEFT,
    PAGE_DOWN,
    RIGHT,
    TAB,
    UP,
    Reaction,
    Terminal,
)
from benchmarks.support.tree_traces import generate

ROOT = Path(__file__).resolve().parents[1]
NEXT_METRIC = "\x0e"
TOLD = frozenset(("cursor", "held key", "zoom"))
"""Keys that have goals of their own for the bytes they send."""

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
