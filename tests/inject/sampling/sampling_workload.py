"""Kernels with scripted PC samples, on the driver API: ``sampling_workload.py RUNS [OPTION …]``.

``collected``: half of the runs wait until samples of the others are in the dump; ``begun``: until
there are any, for which kernels are launched meanwhile. ``destroy``: so is the context in the end.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.support.writers.fdumprecords import records

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


def wait_for_samples(meanwhile: Callable[[], object]) -> None:
    """Until one is in the dump."""
    [dump] = Path(os.environ["FLAME_DIR"]).glob("*.fdump")
    while not len(records(dump)["sample"]):
        meanwhile()
        time.sleep(0.01)


def main(runs: int, options: list[str]) -> None:
    """Each run launches both kernels."""
    check(CUDA.cuInit(0))
    context = made("cuCtxCreate_v4", None, 0, 0)
    module = made("cuModuleLoadData", MODULE)
    names = (b"_Z4gemmPf", b"_Z7softmaxPf")
    functions = [made("cuModuleGetFunction", module, name) for name in names]

    def run() -> None:
        for function in functions:
            size = (8, 1, 1, 32, 1, 1, 0)
            check(CUDA.cuLaunchKernel(function, *size, None, None, None))

    for number in range(runs):
        run()
        if number == runs // 2:
            check(CUDA.cuCtxSynchronize())
            if "begun" in options:
                wait_for_samples(meanwhile=run)
            if "collected" in options:
                wait_for_samples(meanwhile=lambda: None)
    check(CUDA.cuCtxSynchronize())
    if "destroy" in options:
        check(CUDA.cuCtxDestroy_v2(context))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
