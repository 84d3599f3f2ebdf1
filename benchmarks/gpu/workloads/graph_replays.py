"""Replays one graph until so many of its nodes have run: graph_replays.py NODES."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.gpu.workloads.simple_driver import Program

SIZE = 1000
"""Nodes of the graph."""
AT_ONCE = 50
"""Replays between waits."""
MIB = 2**20


def main(nodes: int) -> None:
    """The command line."""
    program = Program(SIZE)
    free, begin, done = program.free_memory(), time.monotonic(), 0
    while done * SIZE < nodes:
        count = min(AT_ONCE, nodes // SIZE - done)
        for _ in range(count):
            program.replay()
        program.gpu.wait()
        done += count
        seconds, taken = time.monotonic() - begin, (free - program.free_memory()) // MIB
        print(f"{done * SIZE} nodes, {seconds:.1f} s, {taken} MiB of the GPU taken", flush=True)
    print(json.dumps({"nodes": done * SIZE, "seconds": seconds, "device_mib": taken}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
