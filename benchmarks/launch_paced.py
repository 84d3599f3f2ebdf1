#!/usr/bin/env python3
"""Launches kernels at a steady rate, as a model does: the process that bench_attach.py watches.

    launch_paced.py LOOP RATE SECONDS

Prints as JSON how many launches there were, and the CPU time of each, in ns of the launching
thread, without Python's own.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from pathlib import Path

import nvtx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.launch_stacks import deep

TICKS = 100
"""A second, in each of which one layer launches its share."""
LAYERS = 48
BLOCKS = ("attention", "mlp")
DEPTH = 24


class Model:
    """Ranges and functions around launches, a layer each tick."""

    def __init__(self, loop: ctypes.CDLL, rate: int) -> None:
        self._launch = loop.launches
        self._each = max(rate // TICKS // len(BLOCKS), 1)
        self.launches = 0
        self.took = 0.0

    def tick(self, number: int) -> None:
        """The launches of one layer."""
        with nvtx.annotate(f"layers.{number % LAYERS}"):
            for block in BLOCKS:
                with nvtx.annotate(block):
                    self.took += self._launch(self._each)
            self.launches += self._each * len(BLOCKS)


def run(model: Model, seconds: float) -> None:
    """Ticks on time, and does not catch up with those that it has missed."""
    begin = time.monotonic()
    number = 0
    while (now := time.monotonic() - begin) < seconds:
        model.tick(number)
        number += 1
        time.sleep(max(number / TICKS - now, 0))
        number = max(number, int(now * TICKS) - 1)


def main() -> None:
    """The command line."""
    path, rate, seconds = sys.argv[1:]
    loop = ctypes.CDLL(path)
    loop.launches.restype, loop.launches.argtypes = ctypes.c_double, [ctypes.c_int64]
    loop.set_up()
    model = Model(loop, int(rate))
    deep(DEPTH, lambda: run(model, float(seconds)))
    cost = model.took / max(model.launches, 1)
    print(json.dumps({"launches": model.launches, "ns": cost}))


if __name__ == "__main__":
    main()
