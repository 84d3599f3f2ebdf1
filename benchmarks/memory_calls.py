#!/usr/bin/env python3
"""Allocates and frees memory, COUNT times over: the process that gpu_check.py records.

    memory_calls.py COUNT

Through the runtime where there is one, as nearly all programs do, else through the driver. It
prints as JSON what a recording of its memory must say: bytes of the GPU at most at a time, in all
and at the end, and of the host's pinned memory.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.blocking_calls import check, driver, runtime

MIB = 1 << 20
WEIGHTS, LAYER, BUFFER, PINNED = 40 * MIB, 8 * MIB, 4 * MIB, MIB
LAYERS = 3
RUNTIME = {
    "allocate": "cudaMalloc",
    "free": "cudaFree",
    "allocate later": "cudaMallocAsync",
    "free later": "cudaFreeAsync",
    "pin": "cudaMallocHost",
    "unpin": "cudaFreeHost",
    "wait": "cudaDeviceSynchronize",
}
DRIVER = {
    "allocate": "cuMemAlloc_v2",
    "free": "cuMemFree_v2",
    "allocate later": "cuMemAllocAsync",
    "free later": "cuMemFreeAsync",
    "pin": "cuMemAllocHost_v2",
    "unpin": "cuMemFreeHost",
    "wait": "cuCtxSynchronize",
}


class Memory:
    """Calls the functions that ``names`` has for what is to be done, of ``cuda``."""

    def __init__(self, cuda: ctypes.CDLL, names: Mapping[str, str]) -> None:
        self._cuda = cuda
        self._names = names

    def call(self, what: str, *arguments: object) -> None:
        """Call one of the functions, which must succeed."""
        check(getattr(self._cuda, self._names[what])(*arguments))

    def made(self, what: str, size: int, *more: object) -> ctypes.c_void_p:
        """Allocate ``size`` bytes."""
        found = ctypes.c_void_p()
        self.call(what, ctypes.byref(found), ctypes.c_size_t(size), *more)
        return found

    def load_weights(self) -> ctypes.c_void_p:
        """Allocate what stays."""
        return self.made("allocate", WEIGHTS)

    def run_layers(self) -> None:
        """Allocate what is in use at the peak, and free it: in part from the GPU's pool."""
        layer = self.made("allocate", LAYER)
        buffers = [self.made("allocate later", BUFFER, None) for _ in range(LAYERS)]
        for one in buffers:
            self.call("free later", one, None)
        self.call("wait")
        self.call("free", layer)


def main() -> None:
    """The command line."""
    count, cuda = int(sys.argv[1]), runtime()
    memory = Memory(driver(), DRIVER) if cuda is None else Memory(cuda, RUNTIME)
    memory.load_weights()
    pinned = memory.made("pin", PINNED)
    for _ in range(count):
        memory.run_layers()
    memory.call("unpin", pinned)
    each = LAYER + LAYERS * BUFFER
    told = {"peak": WEIGHTS + each, "alloc": WEIGHTS + count * each, "live": WEIGHTS}
    way = "driver" if cuda is None else "runtime"
    print(json.dumps(told | {"pinned": PINNED, "events": 3 + count * 8, "way": way}))


if __name__ == "__main__":
    main()
