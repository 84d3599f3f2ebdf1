#!/usr/bin/env python3
"""Measures when each stage of a load begins, and what the bar of progress says then.

    python benchmarks/load_stages.py TRACE...

Both are percent of the whole: the shares that the stages have of the bar are set by these, in
`Format.share`, `flame/core/loading/file.py`, `flame/core/attribution/attribute.py` and
`flame/tui/session/session.py`. Processor time of the loading thread, median of three. On an export
with a million kernels decoding is 72 %, joining 2, nesting 5, attributing 5, placing samples 8,
the rest 8; with ten million 64, 2, 8, 8, 8 and 10; on Kineto traces decoding is 84 to 95 %.

`worst` is how far the bar is from the time at most, at any report, and `rests` how long it stands
still at most, both in percent.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 3
LOAD = """
import sys, time
from pathlib import Path
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.selection import select
from flame.tui.session.session import open_session
told = []
begin = time.thread_time()
def progress(stage, done, expected):
    told.append((stage, time.thread_time() - begin, done))
open_session(Inputs((Path(sys.argv[1]),)), LoadOptions(), select(), progress)
whole = time.thread_time() - begin
times = [0, *(100 * at / whole for _, at, _ in told), 100]
worst = max(abs(at - done / 100) for at, (_, _, done) in zip(times[1:], told))
rests = max(after - before for before, after in zip(times, times[1:]))
print("whole", whole, worst, rests, sep="\\t")
stages = dict.fromkeys(stage for stage, _, _ in told)
for at, (stage, _, done) in zip(times[1:], told):
    if stage in stages:
        del stages[stage]
        print(stage, at, done / 100, sep="\\t")
"""


def measure(path: Path) -> str:
    """A line per stage: percent of the time, percent of the bar, name."""
    runs = []
    for _ in range(ROUNDS):
        command = [sys.executable, "-c", LOAD, str(path)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        runs.append([line.split("\t") for line in done.stdout.splitlines()])
    seconds, worst, rests = (
        statistics.median(float(run[0][place]) for run in runs) for place in (1, 2, 3)
    )
    head = f"{path.name}: {seconds:.2f} s, worst {worst:.1f}, rests {rests:.1f}"
    lines = [head, "   time    bar"]
    for at, (stage, _, bar) in enumerate(runs[0][1:], 1):
        time = statistics.median(float(run[at][1]) for run in runs)
        lines.append(f"{time:6.1f} {float(bar):6.1f}  {stage}")
    return "\n".join(lines)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(measure(Path(name)))
