"""Launches kernels, says that it ends, and does in one of many ways: ends.py WAY LAUNCHES."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

from benchmarks.gpu.workloads.simple_driver import Program

CODE = 7
PATIENCE = 60.0


def by_signal(number: int) -> None:
    """Waits for the end that it has sent itself."""
    os.kill(os.getpid(), number)
    time.sleep(PATIENCE)


def in_flight(program: Program) -> None:
    """Leaves while kernels run: nobody waits for them."""
    program.launch(1000)
    sys.exit(CODE)


def from_thread(program: Program) -> None:
    """Leaves while another thread still launches."""

    def forever() -> None:
        program.gpu.wait()
        while True:
            program.launch(10)

    threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.1)
    sys.exit(CODE)


def end(way: str, program: Program) -> None:
    """Ends the process."""
    if way == "exit":
        sys.exit(CODE)
    elif way == "os-exit":
        os._exit(CODE)
    elif way == "exception":
        raise RuntimeError("meant")
    elif way == "running":
        in_flight(program)
    elif way == "thread":
        from_thread(program)
    else:
        by_signal(signal.Signals[way.upper()])


def main(way: str, launches: int) -> None:
    """The command line."""
    program = Program(nodes=0)
    program.launch(launches)
    program.gpu.wait()
    print(json.dumps({"ending": time.time()}), flush=True)
    end(way, program)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
