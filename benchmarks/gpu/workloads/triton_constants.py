"""Triton kernels of one name that differ in one constant: CUPTI's checksum may not tell them."""

from __future__ import annotations

import json
from typing import Any

import torch
import triton
import triton.language as tl

CONSTANTS, ROUNDS, BLOCK = range(1, 9), 200, 1024
SIDE = 2048


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def scaled_kernel(x, out, n, SCALE: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Scale ``x``."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * SCALE, mask=at < n)


def scaled(x: Any, constant: int) -> None:
    """Launch the kernel of that constant."""
    grid = (triton.cdiv(x.numel(), BLOCK),)
    scaled_kernel[grid](x, torch.empty_like(x), x.numel(), constant * 3 + 0.5, BLOCK)


def main() -> None:
    """Launch them all."""
    x = torch.randn(SIDE, SIDE, device="cuda")
    for _ in range(ROUNDS):
        for constant in CONSTANTS:
            scaled(x, constant)
    torch.cuda.synchronize()
    print(json.dumps({"kernels": len(CONSTANTS)}))


if __name__ == "__main__":
    main()
