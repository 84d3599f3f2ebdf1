"""Takes CUPTI's records for itself, as a newer torch.profiler does: stealing.py STEPS."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.workloads.simple_driver import Program

NAMES = ("libcupti.so.13", "libcupti.so.12")
SIZE = 1 << 20
PAUSE_S, NOTICED_S = 0.2, 12.0
"""Seconds of further work: the library looks for records only now and then."""
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
Pointer = ctypes.POINTER(ctypes.c_void_p)
Sizes = ctypes.POINTER(ctypes.c_size_t)
taken = 0


def requested(buffer: Any, size: Any, most: Any) -> None:
    """Gives CUPTI a buffer."""
    buffer[0], size[0], most[0] = libc.aligned_alloc(4096, SIZE), SIZE, 0


def completed(context: Any, stream: int, buffer: Any, size: int, valid: int) -> None:
    """Throws the records away."""
    global taken
    taken += valid
    libc.free(buffer)


REQUESTED = ctypes.CFUNCTYPE(None, Pointer, Sizes, Sizes)(requested)
COMPLETED = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)(completed)


def cupti() -> ctypes.CDLL:
    """The library that this process has loaded."""
    for line in Path("/proc/self/maps").read_text("utf-8", "replace").splitlines():
        path = line[line.find("/") :].strip()
        if any(name in path for name in ("libcupti", "libfakecuda", "libcuda.so.1")):
            library = ctypes.CDLL(path)
            if hasattr(library, "cuptiActivityRegisterCallbacks"):
                return library
    sys.exit("no CUPTI in this process")


def main(count: int) -> None:
    """The command line."""
    program = Program()
    for _ in range(count):
        program.step()
    code = cupti().cuptiActivityRegisterCallbacks(REQUESTED, COMPLETED)
    end = time.monotonic() + NOTICED_S
    while time.monotonic() < end:
        program.step()
        program.driver("cuCtxSynchronize")  # it knows of no other wait that all work is over
        time.sleep(PAUSE_S)
    print(json.dumps({"register": code, "bytes_taken": taken}), flush=True)
    os._exit(0)  # the callbacks are Python's, and must not be called after it has ended


if __name__ == "__main__":
    main(int(sys.argv[1]))
