#!/usr/bin/env python3
"""Calls what may block, each way COUNT times: the process that gpu_check.py records.

    blocking_calls.py COUNT

Through the runtime where there is one, as PyTorch and nearly all programs do, else through the
driver. It prints as JSON how often it waited, and how often it allocated or freed.
"""

from __future__ import annotations

import ctypes
import json
import sys
from contextlib import suppress
from pathlib import Path

BYTES = 1 << 20
WAITS, ALLOCATIONS = 3, 8
"""Calls of each class in a round."""


def runtime() -> ctypes.CDLL | None:
    """The CUDA runtime, of the system or of NVIDIA's packages; None without one that works here."""
    names = [f"libcudart.so.{major}" for major in (13, 12)]
    places = [Path(folder) / "nvidia" for folder in sys.path]
    found = (str(path) for place in places for name in names for path in place.rglob(name))
    for name in (*names, *found):
        with suppress(OSError):
            cuda = ctypes.CDLL(name)
            if not cuda.cudaFree(None):
                return cuda
    return None


def check(error: int) -> None:
    """Ends with the error."""
    if error:
        sys.exit(f"CUDA error {error}")


def through_runtime(cuda: ctypes.CDLL) -> None:
    """Every call once."""
    memory, event, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(BYTES)
    own = ctypes.create_string_buffer(BYTES)
    check(cuda.cudaMalloc(ctypes.byref(memory), size))
    check(cuda.cudaMemset(memory, 0, size))
    check(cuda.cudaDeviceSynchronize())
    check(cuda.cudaStreamSynchronize(None))
    check(cuda.cudaEventCreate(ctypes.byref(event)))
    check(cuda.cudaEventRecord(event, None))
    check(cuda.cudaEventSynchronize(event))
    check(cuda.cudaEventDestroy(event))
    check(cuda.cudaFree(memory))
    check(cuda.cudaMallocAsync(ctypes.byref(memory), size, None))
    check(cuda.cudaFreeAsync(memory, None))
    check(cuda.cudaMallocHost(ctypes.byref(memory), size))
    check(cuda.cudaFreeHost(memory))
    check(cuda.cudaHostRegister(own, size, 0))
    check(cuda.cudaHostUnregister(own))


def through_driver(cuda: ctypes.CDLL) -> None:
    """The same, as far as the double of the driver has it; what it has not is made up for."""
    memory, event, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(BYTES)
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), size))
    check(cuda.cuMemsetD8_v2(memory, 0, size))
    check(cuda.cuCtxSynchronize())
    check(cuda.cuStreamSynchronize(None))
    check(cuda.cuEventCreate(ctypes.byref(event), 0))
    check(cuda.cuEventRecord(event, None))
    check(cuda.cuEventSynchronize(event))
    check(cuda.cuEventDestroy_v2(event))
    check(cuda.cuMemFree_v2(memory))
    check(cuda.cuMemAllocAsync(ctypes.byref(memory), size, None))
    check(cuda.cuMemFreeAsync(memory, None))
    for _ in range(2):
        check(cuda.cuMemAllocHost_v2(ctypes.byref(memory), size))
        check(cuda.cuMemFreeHost(memory))


def driver() -> ctypes.CDLL:
    """The driver, with a context."""
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    return cuda


def main() -> None:
    """The command line."""
    count, cuda = int(sys.argv[1]), runtime()
    lower = driver() if cuda is None else None
    for _ in range(count):
        if cuda is not None:
            through_runtime(cuda)
        elif lower is not None:
            through_driver(lower)
    way = "driver" if cuda is None else "runtime"
    print(json.dumps({"way": way, "waits": WAITS * count, "allocations": ALLOCATIONS * count}))


if __name__ == "__main__":
    main()
