"""Tell of which types the work of a profile is."""

from __future__ import annotations

import numpy as np

from flame.core.efficiency.sums import count_operators
from flame.core.model.profile import Profile
from flame.core.operators.work import OperatorWork

_LEAST = 0.01


def precisions_of(profile: Profile, work: OperatorWork) -> tuple[str, ...]:
    """List the types of what is rated in the ``work`` of ``profile``, most time first.

    Those that have less than 1 % of the time are left out.
    """
    counts = count_operators(profile)
    time = counts.rated_ns if counts is not None else np.zeros(0, np.int64)
    times = dict[str, int]()
    for frame in np.flatnonzero(time).tolist():
        name = work.costs[frame].precision
        times[name] = times.get(name, 0) + int(time[frame])
    least = _LEAST * sum(times.values())
    return tuple(sorted((one for one in times if times[one] >= least), key=lambda one: -times[one]))
