"""Profiles of other sources than Nsight Systems: stacks of a file, and a trace of PyTorch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from flame.core.attribution.resolved import resolve_stacks
from flame.core.loading.many import load
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.meta import Meta, Process, ProfilerSteps, Source, Thread
from flame.core.model.profile import Profile
from flame.core.model.raw import Measure, RawStacks
from flame.core.model.stacks import StackBuilder
from tests.tui import traces

ROWS = (
    (0, "main;work;multiply", 30, 4_096),
    (1, "main;wait", 10, 0),
)
"""Thread, stack, samples and bytes."""


def stacks() -> Profile:
    """`ROWS` of a process with two threads; no times."""
    frames, builder = FrameBuilder(), StackBuilder()
    ids = [_stack(frames, builder, text) for _, text, _, _ in ROWS]
    thread, _, samples, size = (np.array(column) for column in zip(*ROWS, strict=True))
    raw = RawStacks(
        frames,
        builder,
        np.array(ids, np.int32),
        (
            Measure("samples", "samples", "count", samples.astype(np.int64)),
            Measure("bytes", "bytes allocated", "bytes", size.astype(np.int64)),
        ),
        Meta(path="cpu.folded", format="folded"),
        thread=thread.astype(np.int32),
        processes=(Process(7, "server"),),
        threads=(Thread(0, 7, "main"), Thread(0, 8, "idler")),
    )
    return resolve_stacks(raw)


def _stack(frames: FrameBuilder, builder: StackBuilder, text: str) -> int:
    known = {"work": Frame(Kind.FRAME, "work", "lib/server.py", 12)}
    stack = [known.get(name, Frame(Kind.FRAME, name)) for name in text.split(";")]
    return builder.add_path([frames.add(frame) for frame in stack])


def training(path: Path) -> Profile:
    """`traces.decode`, written to ``path``, as if PyTorch had recorded it: steps 3 to 5."""
    profile = load(traces.decode(path))
    meta = replace(profile.meta, format="kineto")
    edges = np.array([0, 30_000, 60_000, 90_000], np.int64)
    first = np.zeros(3, np.int32)
    steps = ProfilerSteps(np.arange(3, 6), first, edges[:-1], edges[1:], first)
    return replace(profile, meta=meta, sources=(Source("", meta),), steps=steps)
