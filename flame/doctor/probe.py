"""Probe the driver or the library as a program of its own: print what is found as JSON.

Drivers may hang or crash. ``probe.py driver``: the CUDA driver and its GPUs. ``probe.py library
PATH``: loads the injection library as the driver would.
"""

from __future__ import annotations

import ctypes
import json
import sys
from contextlib import suppress

DRIVER = "libcuda.so.1"
_NAME_SIZE = 256


def driver() -> dict[str, object]:
    """Find ``version`` (13000 for CUDA 13.0) and ``gpus`` (names), or the ``error``."""
    try:
        cuda = ctypes.CDLL(DRIVER)
    except OSError as error:
        return {"error": str(error)}
    version, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    code = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    result: dict[str, object] = {"version": version.value}
    if code:
        return result | {"error": _error(cuda, code)}
    return result | {"gpus": [_name(cuda, ordinal) for ordinal in range(count.value)]}


def _error(cuda: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    cuda.cuGetErrorName(code, ctypes.byref(text))
    return (text.value or f"error {code}".encode()).decode("utf-8", "replace")


def _name(cuda: ctypes.CDLL, ordinal: int) -> str:
    device, name = ctypes.c_int(), ctypes.create_string_buffer(_NAME_SIZE)
    if cuda.cuDeviceGet(ctypes.byref(device), ordinal) == 0:
        cuda.cuDeviceGetName(name, _NAME_SIZE, device)
    return name.value.decode("utf-8", "replace")


def library(path: str) -> dict[str, object]:
    """Start the library, which writes what it finds; return the ``error`` where it cannot."""
    with suppress(OSError):
        ctypes.CDLL(DRIVER)  # The library takes what is there, as in a program that uses CUDA.
    try:
        ctypes.CDLL(path).InitializeInjection()
    except (OSError, AttributeError) as error:
        return {"error": str(error)}
    return {}


if __name__ == "__main__":
    print(json.dumps(library(sys.argv[2]) if sys.argv[1] == "library" else driver()))
