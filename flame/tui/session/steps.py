"""Find the steps that a frame of the tree, or a range of a thread, stands for."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from flame.core.columns import I8, unique
from flame.core.model.profile import Profile
from flame.tui.session.session import Projection


def steps_of_frame(shown: Projection, frame: int) -> I8:
    """Find the numbers of the steps whose ranges are shown as ``frame``; none of other frames."""
    numbers = _by_frame(shown).get(frame)
    return np.zeros(0, np.int64) if numbers is None else numbers


@lru_cache(1)
def _by_frame(shown: Projection) -> dict[int, I8]:
    """The numbers of the steps that each frame stands for, as it is shown."""
    found, labels = shown.profile.iterations, shown.labels
    if found.source == "profiler":
        numbers = unique(found.number)
        return dict.fromkeys(labels.shown[found.frames].tolist(), numbers)
    if found.source == "none":
        return {}
    frame = labels.shown[found.frame]
    order = np.argsort(frame, kind="stable")
    frames, first = np.unique(frame[order], return_index=True)
    parts = np.split(found.number[order], first[1:])
    return dict(zip(frames.tolist(), map(np.unique, parts), strict=True))


def step_of_range(profile: Profile, frame: int, thread: int, time: int) -> int | None:
    """Find the number of the step that a range of ``thread`` is, open at ``time`` (ns); or None."""
    found = profile.iterations
    if not (found.frames == frame).any():
        return None
    process = np.array([profile.threads[thread].process])
    row = int(found.at(process, np.array([time]))[0])
    return int(found.number[row]) if row >= 0 and found.thread[row] in (thread, -1) else None
