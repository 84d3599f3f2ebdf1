"""Has torch.profiler look at some steps in the middle: profiler_inside.py STEPS."""

from __future__ import annotations

import json
import sys

import torch

from benchmarks.gpu.workloads.torch_mix import Mix, kernels_of

PROFILED = 5


def main(count: int) -> None:
    """The command line."""
    mix = Mix({"eager", "graph"})
    mix.steps(count // 2)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        mix.steps(PROFILED)
    mix.steps(count // 2)
    print(json.dumps({"kernels": kernels_of(profiler)}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
