"""Kernels with scripted PC samples, on the driver API: ``sampling_workload.py RUNS [destroy]``."""

from __future__ import annotations

import ctypes
import sys
import time

CUDA = ctypes.CDLL("libcuda.so.1")
Handle = ctypes.c_void_p
MODULE = b"""flame-fake 1
kernel _Z4gemmPf 3000
sample _Z4gemmPf 0 1 11
sample _Z4gemmPf 16 4 200
sample _Z4gemmPf 16 7 3
sample _Z4gemmPf 48 31 50
kernel _Z7softmaxPf 2000
sample _Z7softmaxPf 4096 13 1
"""


def check(status: int) -> None:
    """Any error of a call."""
    assert status == 0, status


def made(name: str, *arguments: object) -> Handle:
    """What a call that makes something returns through its first argument."""
    handle = Handle()
    check(getattr(CUDA, name)(ctypes.byref(handle), *arguments))
    return handle


def main(runs: int, destroy: bool) -> None:
    """Each run launches both kernels; the first half is left to a collection in between."""
    check(CUDA.cuInit(0))
    context = made("cuCtxCreate_v4", None, 0, 0)
    module = made("cuModuleLoadData", MODULE)
    names = (b"_Z4gemmPf", b"_Z7softmaxPf")
    functions = [made("cuModuleGetFunction", module, name) for name in names]
    for number in range(runs):
        for function in functions:
            size = (8, 1, 1, 32, 1, 1, 0)
            check(CUDA.cuLaunchKernel(function, *size, None, None, None))
        if number == runs // 2:
            check(CUDA.cuCtxSynchronize())
            time.sleep(0.7)
    check(CUDA.cuCtxSynchronize())
    if destroy:
        check(CUDA.cuCtxDestroy_v2(context))


if __name__ == "__main__":
    main(int(sys.argv[1]), "destroy" in sys.argv)
