"""Events of PyTorch profiler traces as they stand in the file, read with `json`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

Event = dict[str, Any]
"""A complete event as it stands in the file, and its ``start`` and ``end`` in ns."""
Thread = tuple[str, str]
Place = tuple[Thread, int]
"""A thread at a moment."""

GPU = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
CALLS = {"cuda_runtime", "cuda_driver", "runtime"}
RANGES = {"cpu_op", "operator", "user_annotation"}
_SHOWN = GPU | CALLS | RANGES | {"python_function", "gpu_user_annotation"}


def events_of(path: Path) -> list[Event]:
    """All complete events; ``start`` and ``end`` are ns since the first one that flame shows."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    found = json.loads(text, parse_float=Decimal)
    events = found["traceEvents"] if isinstance(found, dict) else found
    whole = [event for event in events if event.get("ph") == "X"]
    for event in whole:
        event["start"] = round(event["ts"] * 1000)
        event["end"] = event["start"] + round(event.get("dur", 0) * 1000)
    first = min((event["start"] for event in whole if category(event) in _SHOWN), default=0)
    for event in whole:
        event["start"] -= first
        event["end"] -= first
    return whole


def category(event: Event) -> str:
    """In lower case: it was capitalised until 2022."""
    return str(event.get("cat", "")).lower()


def args_of(event: Event) -> dict[str, Any]:
    """Further facts."""
    found: dict[str, Any] = event.get("args") or {}
    return found


def thread(event: Event) -> Thread:
    """Numbers are written as text in some events and as numbers in others."""
    return str(event["pid"]), str(event["tid"])


def gpu_events(events: Iterable[Event]) -> list[Event]:
    """Kernels, copies and sets."""
    return [event for event in events if category(event) in GPU]


def shown(event: Event) -> str:
    """Kernels by their full name, copies by their direction, sets as such."""
    name = str(event["name"])
    if category(event).endswith("memset"):
        return "memset"
    if category(event).endswith("memcpy"):
        return f"memcpy {name.split()[1]}"
    return name


def kind_of(event: Event) -> str:
    """``kernel``, ``memcpy`` or ``memset``."""
    return category(event).removeprefix("gpu_")
