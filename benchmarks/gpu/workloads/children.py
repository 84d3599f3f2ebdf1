"""Has a child of multiprocessing use the GPU: children.py spawn|forkserver|fork STEPS.

It says how many kernels were launched in both processes, and the error of the child.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.gpu.workloads.simple_driver import LAUNCHES, NODES, Program

HANDED_OVER_S = 1.0
"""CUPTI hands records over every 100 ms; children but those of spawn leave by os._exit."""


def work(pipe: Connection, count: int) -> None:
    """Launch in the child."""
    try:
        program = Program()
        for _ in range(count):
            program.step()
        time.sleep(HANDED_OVER_S)
        pipe.send("")
    except (Exception, SystemExit) as error:
        pipe.send(f"{error}" or type(error).__name__)


def main(way: str, count: int) -> None:
    """The command line."""
    program = Program()
    program.step()
    context: Any = multiprocessing.get_context(way)
    here, there = context.Pipe()
    child = context.Process(target=work, args=(there, count))
    child.start()
    there.close()
    try:
        error = here.recv()
    except EOFError:
        error = "it ended without a word"
    child.join()
    each = LAUNCHES + NODES
    print(json.dumps({"kernels": each + (0 if error else count * each), "error": error}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
