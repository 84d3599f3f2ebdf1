"""Kernels of CuPy, its own and a raw one: cupy_loop.py STEPS."""

from __future__ import annotations

import sys

import cupy

SIDE, THREADS = 512, 256
SOURCE = """
extern "C" __global__ void doubled(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i];
}
"""


def main(count: int) -> None:
    """The command line."""
    doubled = cupy.RawKernel(SOURCE, "doubled")
    x = cupy.ones((SIDE, SIDE), cupy.float32)
    for _ in range(count):
        doubled((x.size // THREADS,), (THREADS,), (x, x.size))
        x = cupy.tanh(x + 1)
    cupy.cuda.Stream.null.synchronize()


if __name__ == "__main__":
    main(int(sys.argv[1]))
