"""A profile as stacks that somebody else has resolved: folded, speedscope, Proton files."""

from __future__ import annotations

from dataclasses import dataclass, field

from flame.core.columns import I4, I8
from flame.core.model.frames import FrameBuilder
from flame.core.model.meta import Meta, Process, Thread
from flame.core.model.stacks import StackBuilder


@dataclass(frozen=True)
class Measure:
    """One thing that a file of stacks measures.

    ``unit`` is as in `flame.core.model.metrics.Metric`; ``values`` i8[rows], never negative.
    """

    key: str
    title: str
    unit: str
    values: I8


@dataclass
class RawStacks:
    """What a reader of resolved stacks hands over, one row per sample (or per stack).

    ``stack`` i4[n] is the row's stack in ``stacks``, its frames of any kind, root first (0: the
    empty stack). ``thread`` i4[n] indexes ``threads`` (-1: none). ``start`` i8[n] is when the
    sample was taken, ns, None where the format has no times. The first measure is the default.
    """

    frames: FrameBuilder
    stacks: StackBuilder
    stack: I4
    measures: tuple[Measure, ...]
    meta: Meta
    thread: I4 | None = None
    start: I8 | None = None
    processes: tuple[Process, ...] = ()
    threads: tuple[Thread, ...] = ()
    warnings: list[str] = field(default_factory=list)
