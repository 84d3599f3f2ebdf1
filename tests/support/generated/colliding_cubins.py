"""Cubins that CUPTI's checksum cannot tell apart: one constant of one instruction differs."""

from __future__ import annotations

from tests.support.paths import SAMPLES

CUBIN = SAMPLES / "llm_kernels.cubin"
SOFTMAX = "_ZN3llm7softmaxEPKfPfi"
STEP_AT = 0x170
"""Offset in SOFTMAX of the instruction that has the constant."""
_CONSTANT = 0x6300 + STEP_AT + 4  # in the file: none of the bytes that the checksum reads


def cubin_adding(step: int) -> bytes:
    """Return the cubin of the samples, where SOFTMAX adds ``step``, below 256, to its index."""
    cubin = bytearray(CUBIN.read_bytes())
    assert cubin[_CONSTANT] == 0x20
    cubin[_CONSTANT] = step
    return bytes(cubin)


def text_of(step: int) -> str:
    """Return the instruction at STEP_AT of that cubin."""
    return f"VIADD R8, R8, 0x{step:x}"
