"""A loaded profile with PC samples: its frames, its levels and its metric for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flame.core.attribution.gaps import unsampled
from flame.core.columns import I4, I8
from flame.core.model.activities import NONE
from flame.core.model.frames import FrameBuilder
from flame.core.model.metrics import STALLS
from flame.core.model.pc_samples import Sampling
from flame.core.model.profile import Profile
from flame.core.sampling.sampled_rows import spread_over_rows


def with_sampling(
    profile: Profile, frames: FrameBuilder, sampling: Sampling, samples: I8 | None = None
) -> Profile:
    """``profile`` with what ``sampling`` says of its kernels.

    ``frames`` are those of the profile (see `FrameBuilder.of`), and the new ones after them.
    ``samples`` i8[activities] where it is known how many each has; else time tells.
    """
    table = profile.activities
    if samples is None:
        samples = spread_over_rows(
            sampling.of_group[table.groups.of], sampling.totals, table.duration
        )
    activities = replace(table, measures={**table.measures, STALLS.key: samples})
    activities.__dict__["groups"] = table.groups  # worked out already, and the same
    found = replace(
        profile,
        frames=frames.build(),
        activities=activities,
        grouping=replace(profile.grouping, shapes=_padded(profile.grouping.shapes, len(frames))),
        sampling=sampling,
    )
    before = set(unsampled(profile))
    told = [warning for warning in profile.warnings if warning not in before]
    return replace(found, warnings=(*told, *unsampled(found)))


def _padded(of_frame: I4, size: int) -> I4:
    return np.append(of_frame, np.full(size - len(of_frame), NONE, np.int32))
