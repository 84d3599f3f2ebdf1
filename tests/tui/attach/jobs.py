"""Processes and recordings to choose from, made up."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from flame.attach.discover.model import Candidate, FinishedRecording, Job, WatchMethod


def candidate(pid: int, method: WatchMethod = WatchMethod.DUMP, **fields: object) -> Candidate:
    known = Candidate(pid, f"job{pid}", f"python job{pid}.py --lr 0.1", "ada", 90.0, method)
    if method is WatchMethod.DUMP:
        known = dataclasses.replace(known, dumps=(Path(f"/tmp/flame/{pid}-b.fdump"),))
    return dataclasses.replace(known, **fields)  # type: ignore[arg-type]


def job(pid: int, method: WatchMethod = WatchMethod.DUMP, **fields: object) -> Job:
    """A job of one process; ``kernels`` and the like are those of the job."""
    own = {key: fields.pop(key) for key in ("kernels", "launches", "active") if key in fields}
    root = candidate(pid, method, **fields)
    return dataclasses.replace(Job(root, (root,)), **own)  # type: ignore[arg-type]


def ended(pid: int, name: str = "old.py") -> FinishedRecording:
    return FinishedRecording(
        (Path(f"/tmp/flame/{pid}-a.fdump"),), name, (pid,), 7200.0, 12_000_000, 40_000
    )
