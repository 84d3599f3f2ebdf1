"""Makes calls of the driver and NVTX ranges, and writes down what each came from."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import nvtx

CUDA = ctypes.CDLL("libcuda.so.1")
Handle = ctypes.c_void_p

LINES: list[dict[str, Any]] = []
HERE = threading.local()


class Kernel(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS."""

    _fields_ = (
        ("function", Handle),
        *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        *((name, Handle) for name in ("parameters", "extra", "kernel", "context")),
    )


def stack(frame: FrameType | None) -> list[tuple[str, str, int]]:
    """The frame and its callers, outermost first."""
    found = []
    while frame:
        found.append((frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found[::-1]


def opened() -> list[dict[str, Any]]:
    """The push/pop ranges that are open on this thread, as they were pushed."""
    if not hasattr(HERE, "open"):
        HERE.open = []
    found: list[dict[str, Any]] = HERE.open
    return found


def note(api: str, frames: list[tuple[str, str, int]], begin: int, status: int) -> int:
    """Writes a call down."""
    ranges = [(one["name"], one["domain"]) for one in opened()]
    known = {"what": "call", "api": api, "tid": threading.get_native_id(), "status": status}
    times = begin, time.monotonic_ns()
    LINES.append(known | {"times": times, "stack": frames, "ranges": ranges})
    return status


def call(api: str, *arguments: Any) -> int:
    """A call, written down: what it comes from and the call are on one line, as the frames say."""
    function, frame, now = getattr(CUDA, api), sys._getframe, time.monotonic_ns
    return note(api, stack(frame()), now(), function(*arguments))


def check(status: int) -> None:
    assert status == 0, status


def made(name: str, *arguments: Any) -> Handle:
    """What a call that makes something returns through its first argument."""
    handle = Handle()
    check(call(name, ctypes.byref(handle), *arguments))
    return handle


def push(name: str, domain: str | None = None, **more: Any) -> None:
    begin = time.monotonic_ns()
    nvtx.push_range(name, domain=domain, **more)
    known = {"what": "range", "name": name, "domain": domain or ""}
    times = begin, time.monotonic_ns()
    opened().append(known | {"tid": threading.get_native_id(), "pushed": times})


def pop(domain: str | None = None) -> None:
    """Ends the innermost range of the domain, wherever in the path it is."""
    begin = time.monotonic_ns()
    nvtx.pop_range(domain=domain)
    mine = opened()
    place = max(at for at, one in enumerate(mine) if one["domain"] == (domain or ""))
    LINES.append(mine.pop(place) | {"popped": (begin, time.monotonic_ns())})


def write(log: str) -> None:
    with Path(f"{log}.{os.getpid()}").open("w", encoding="utf-8") as file:
        for line in LINES + opened():
            file.write(json.dumps(line) + "\n")
