"""Long kernels, each between two CUDA events: event_times.py COUNT. It says what the events say."""

from __future__ import annotations

import json
import sys

import torch

SIDE = 8192


def main(count: int) -> None:
    """The command line."""
    x = torch.randn(SIDE, SIDE, device="cuda")
    times = []
    torch.sin(x)
    for _ in range(count):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        torch.sin(x)
        end.record()
        torch.cuda.synchronize()
        times.append(round(begin.elapsed_time(end) * 1e6))
    print(json.dumps({"kernels_ns": times}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
