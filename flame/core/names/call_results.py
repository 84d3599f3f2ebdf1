"""Say what the numbers mean that CUDA's API calls return."""

from __future__ import annotations

# Of cudaError and CUresult alike; below 200 the runtime's were others before CUDA 10.1 (2019).
_MEANINGS = {
    2: "out of memory",
    201: "invalid context",
    214: "uncorrectable ECC error",
    500: "not found",
    600: "not ready",
    700: "illegal address",
    701: "launch out of resources",
    702: "launch timed out",
    709: "context is destroyed",
    710: "assertion failed",
    716: "misaligned address",
    719: "launch failed",
}
NOT_READY = 600
"""Says that work goes on: no error."""


def result_meaning(value: int) -> str | None:
    """Say what an API call that returned ``value`` means; None where that is not known here."""
    return _MEANINGS.get(value)
