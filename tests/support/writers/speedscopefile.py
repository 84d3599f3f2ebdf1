"""speedscope files from short calls, and what their reader makes of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from flame.core.errors import InputError
from flame.core.model.raw import RawStacks
from flame.core.options import LoadOptions, silent
from flame.core.readers.stacks import speedscope

SCHEMA = "https://www.speedscope.app/file-format-schema.json"

Stack = tuple[str, ...]


def sampled(
    samples: Sequence[Sequence[int]], weights: Sequence[float], **more: Any
) -> dict[str, Any]:
    """A profile of samples, in seconds unless it says otherwise."""
    profile = {"type": "sampled", "name": "main", "unit": "seconds", "startValue": 0}
    return {**profile, "endValue": sum(weights), "samples": samples, "weights": weights, **more}


def evented(*events: tuple[str, int, float], **more: Any) -> dict[str, Any]:
    """A profile of events (type, frame, at), in ms unless it says otherwise."""
    told = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]
    profile = {"type": "evented", "name": "main", "unit": "milliseconds", "startValue": 0}
    return {**profile, "endValue": 100, "events": told, **more}


def document(*profiles: dict[str, Any], frames: Sequence[Any] = "abcd", **more: Any) -> bytes:
    """A file; frames may be given by their names."""
    shared = [{"name": one} if isinstance(one, str) else one for one in frames]
    return json.dumps(
        {"$schema": SCHEMA, "shared": {"frames": shared}, "profiles": profiles, **more}
    ).encode()


def opened(data: bytes, progress: Callable[[str, int, int], None] = silent) -> RawStacks:
    """What the reader makes of a file that holds ``data``."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "profile.json"
        path.write_bytes(data)
        return speedscope.read_speedscope(path, LoadOptions(), progress)


def refusal(data: bytes) -> str:
    """The one line with which a file that holds ``data`` is refused, behind its path."""
    with pytest.raises(InputError) as caught:
        opened(data)
    line = str(caught.value)
    assert line.splitlines() == [line]
    return line.partition("profile.json: speedscope file: ")[2]


def stacks(raw: RawStacks, measure: int = 0) -> dict[Stack, int]:
    """What the measure says of every stack, by its names."""
    frames, table = raw.frames.build(), raw.stacks.build()
    found: Counter[Stack] = Counter()
    for stack, value in zip(raw.stack.tolist(), raw.measures[measure].values.tolist(), strict=True):
        found[tuple(frames[frame].name for frame in table.path(stack))] += value
    return {stack: value for stack, value in found.items() if value}
