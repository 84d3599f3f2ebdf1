"""Captures a Python stack by the library, and says what Python itself says of it."""

from __future__ import annotations

import ctypes
import sys
from collections import defaultdict
from types import CodeType, FrameType
from typing import Any

HELD = ctypes.PyDLL(sys.argv[1])
RELEASED = ctypes.CDLL(sys.argv[1])

Place = tuple[str, str, int]
found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
case = ""
"""Which one runs."""


def name_of(code: CodeType) -> str:
    """What the library calls it."""
    return getattr(code, "co_qualname", code.co_name)


def stack_of(frame: FrameType | None) -> list[Place]:
    """What Python itself says, outermost first."""
    places = []
    while frame is not None:
        line = frame.f_lineno or 0
        places.append((name_of(frame.f_code), frame.f_code.co_filename, line))
        frame = frame.f_back
    return places[::-1]


def here(*_: object) -> int:
    """Captures the caller's stack with and without the GIL, and what Python says of it."""
    held, released = HELD.probe_stack(), RELEASED.probe_stack()
    expected = stack_of(sys._getframe(1))
    found[case].append({"expected": expected, "held": held, "released": released})
    return 1


def said() -> list[dict[str, Any]]:
    """What has been said of the case that runs."""
    return found[case]
