"""Say what to record and how, as the command line has chosen it."""

from __future__ import annotations

from pathlib import Path

from flame.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Plan:
    """Say what to record and how.

    ``output`` None: a new folder named after the command. ``duration_ms`` and ``max_mb`` None: no
    limit, the library's own limit. ``pc``: as ``FLAME_PC``. ``calls``: those that wait,
    allocate or load code, besides launches. ``whole_graphs``: CUDA
    graphs as a whole, not their nodes. ``memory``: what is given out and taken
    back of it. ``keep_secrets``: passwords, tokens and
    keys in command lines are recorded as they are.
    """

    command: tuple[str, ...]
    output: Path | None = None
    python: bool = True
    calls: bool = True
    whole_graphs: bool = False
    memory: bool = False
    pc: str = "off"
    duration_ms: int | None = None
    max_mb: int | None = None
    quiet: bool = False
    keep_secrets: bool = False
