"""Attach PC samples to a loaded profile: its frames, its levels and its metric for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flame.core.attribution.gaps import describe_unsampled
from flame.core.columns import I4, I8, run_starts
from flame.core.model.frames import FrameBuilder
from flame.core.model.metrics import STALLS
from flame.core.model.pc_samples import Sampling
from flame.core.model.profile import Profile


def attach_sampling(
    profile: Profile, frames: FrameBuilder, sampling: Sampling, samples: I8 | None = None
) -> Profile:
    """Return ``profile`` with the samples that ``sampling`` has for its kernels.

    ``frames`` are those of the profile (see `FrameBuilder.of`), and the new ones after them.
    ``samples`` i8[activities] where it is known how many each has; else time tells.
    """
    table = profile.activities
    if samples is None:
        samples = split_over_rows(
            sampling.of_group[table.groups.of_row], sampling.totals, table.duration
        )
    activities = table.with_columns(measures={**table.measures, STALLS.key: samples})
    activities.__dict__["groups"] = table.groups  # worked out already, and the same
    sampled = replace(
        profile,
        frames=frames.build(),
        activities=activities,
        grouping=profile.grouping.padded(len(frames)),
        sampling=sampling,
    )
    before = set(describe_unsampled(profile))
    kept = [warning for warning in profile.warnings if warning not in before]
    return replace(sampled, warnings=(*kept, *describe_unsampled(sampled)))


def split_over_rows(of_row: I4, totals: I8, weight: I8) -> I8:
    """Split ``totals`` (i8[d]) over the rows of each, in proportion to ``weight``, i8[rows].

    ``of_row`` i4[rows] says which total a row is of, -1 for none. What each row has ends where the
    sum up to it, rounded down, does: so that all rows of one have its total exactly. Rows that
    weigh nothing together have equal parts.
    """
    parts = np.zeros(len(of_row), np.int64)
    rows = np.flatnonzero(of_row >= 0)
    rows = rows[np.argsort(of_row[rows], kind="stable")]
    if not len(rows):
        return parts
    first = run_starts(of_row[rows])
    size = np.diff(np.append(first, len(rows)))
    heavy = np.add.reduceat(weight[rows], first) > 0
    own = np.where(np.repeat(heavy, size), weight[rows], 1)
    up_to = np.cumsum(own)
    before = np.repeat(up_to[first] - own[first], size)
    part = (up_to - before) / np.repeat(np.add.reduceat(own, first), size)
    whole = totals[of_row[rows]]
    # Products of rising parts do not fall; but a float may be above a total of more than 53 bits.
    ends = np.minimum(np.floor(whole * part).astype(np.int64), whole)
    ends[first + size - 1] = whole[first]
    begins = np.concatenate([[0], ends[:-1]])
    begins[first] = 0
    parts[rows] = ends - begins
    return parts
