"""Find when threads did not run the host's own code: they collected garbage."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.timeline.lane_intervals import LaneIntervals

_COLLECTION = lazy_regex(r"(?:python )?gc|garbage collection", re.IGNORECASE)


class Holdups(NamedTuple):
    """Hold when threads of a trace collected garbage, and waited for the GIL.

    Lanes are threads of the profile; None where the trace does not tell.
    """

    collecting: LaneIntervals | None
    waiting: LaneIntervals | None


def find_holdups(profile: Profile) -> Holdups | None:
    """Find what the trace tells of its threads; None where that is nothing."""
    frames = profile.frames
    ranges = np.flatnonzero(frames.kind == Kind.NVTX).tolist()
    chosen = [at for at in ranges if _COLLECTION.fullmatch(frames[at].name)]
    if not chosen or profile.spans_finder is None:
        return None
    spans = profile.spans_finder(chosen)
    return Holdups(LaneIntervals.union(spans.thread, spans.start, spans.end), None)
