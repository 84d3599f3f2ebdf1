#!/usr/bin/env python3
"""Reads the first screen of traces, without a key, and tells what a newcomer can learn from it.

For every trace and size: whether the heaviest kernel, range (or operator), module and function can
be read there, as far as the trace has any, and how busy the GPUs were. A name counts as readable
where a piece of at least twelve characters of it, or all of it, is on the screen. Exit status 1
where a screen says nothing of how busy the GPUs were although there are times.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flame.core.analysis.heaviest import Heaviest, find_heaviest
from flame.core.analysis.utilization import utilizations
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.labels import Naming
from flame.core.projection.selection import Selection
from flame.core.projection.weights import Weights
from flame.options.config import Config
from flame.tui.main.app import FlameApp
from flame.tui.main.screen import MainScreen

SIZES = ((80, 24), (120, 40))
NAMING = Naming("short", numbers=True)
LEAST = 12
PATIENCE = 120.0


async def read(path: Path, size: tuple[int, int]) -> tuple[str, MainScreen]:
    """Open ``path`` and return the text of the screen once it is complete."""
    app = FlameApp(
        Inputs((path,)), LoadOptions(), Selection(naming=NAMING), config=Config(recent=False)
    )
    async with app.run_test(size=size), asyncio.timeout(PATIENCE):
        while not isinstance(app.screen, MainScreen) or app.screen.busy:
            await asyncio.sleep(0.05)
        screen = app.screen
        details = screen.parts.details.collector
        while not screen.shown.empty and (details.busy or details.facts is None):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        strips = screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips), screen


def is_readable(name: str, text: str) -> bool:
    """Tell whether enough of ``name`` is in ``text`` to know it by."""
    pieces = {name[at : at + LEAST] for at in range(max(len(name) - LEAST, 0) + 1)}
    return any(piece in text for piece in pieces)


def heaviest_names(found: Heaviest) -> Iterator[tuple[str, str]]:
    """Yield each kind that the trace has, and the name of its heaviest."""
    for kind in ("kernels", "ranges", "modules", "functions"):
        frames = getattr(found, kind)
        if frames.number and found.whole:
            yield kind, frames.heaviest[0].name.removeprefix("nn.Module: ")


def row(path: Path, size: tuple[int, int]) -> tuple[str, bool]:
    """Return a row of the table, and whether it says how busy the GPUs were if it can."""
    text, screen = asyncio.run(read(path, size))
    profile = screen.session.profile
    weights = Weights(*profile.totals_by_group(screen.shown.metric))
    named = heaviest_names(find_heaviest(profile, weights, NAMING, 1)) if profile.size else ()
    cells = dict.fromkeys(("kernels", "ranges", "modules", "functions"), "–")
    cells |= {kind: "yes" if is_readable(name, text) else "no" for kind, name in named}
    busy = any("%" in line and "busy" in line for line in text.splitlines()[:1])
    known = bool(utilizations(profile))
    says = "yes" if busy else "no" if known else "–"
    columns, rows = size
    line = f"| {path.name} | {columns} × {rows} | {says} | {' | '.join(cells.values())} |"
    return line, busy or not known


def main() -> int:
    """Print a row for each trace and size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    args = parser.parse_args()
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = os.devnull
    print("| trace | size | busy | kernel | range | module | function |")
    print("|---|---|---|---|---|---|---|")
    fine = True
    for path in args.traces:
        for size in SIZES:
            line, says = row(path, size)
            print(line, flush=True)
            fine &= says
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
