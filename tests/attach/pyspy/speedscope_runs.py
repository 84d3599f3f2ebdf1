"""Files as py-spy writes them, of samples that a test makes up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple


class Sample(NamedTuple):
    """One stack (function, line) that was seen, outermost first, and whose it is."""

    pid: int
    tid: int
    stack: tuple[tuple[str, int], ...]


def frame(name: str, file: str = "", line: int = 0) -> dict[str, object]:
    return {"name": name, "file": file, "line": line, "col": None}


def speedscope(samples: Iterable[Sample]) -> bytes:
    """``py-spy record --format speedscope --subprocesses --threads``."""
    frames: list[dict[str, object]] = []
    profiles: dict[tuple[int, int], list[list[int]]] = {}

    def index(one: dict[str, object]) -> int:
        if one not in frames:
            frames.append(one)
        return frames.index(one)

    for pid, tid, stack in samples:
        whose = [frame(f'process {pid}:"python work.py"'), frame(f"thread ({tid}): main;\n")]
        called = [frame(name, "/src/work.py", line) for name, line in stack]
        profiles.setdefault((pid, tid), []).append([index(one) for one in whose + called])
    return json.dumps(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "profiles": [_profile(*whose, stacks) for whose, stacks in profiles.items()],
            "shared": {"frames": frames},
            "activeProfileIndex": None,
            "exporter": "py-spy@0.4.3",
            "name": "py-spy profile",
        }
    ).encode()


def _profile(pid: int, tid: int, stacks: list[list[int]]) -> dict[str, object]:
    return {
        "type": "sampled",
        "name": f'Process {pid} Thread {tid} "main"',
        "unit": "seconds",
        "startValue": 0.0,
        "endValue": len(stacks) / 100,
        "samples": stacks,
        "weights": [0.01] * len(stacks),
    }
