"""Class all API calls of a trace once."""

from __future__ import annotations

import numpy as np

from flame.core.columns import U1
from flame.core.kept_results import kept
from flame.core.model.profile import Profile


@kept
def call_classes(profile: Profile) -> U1:
    """Class each of `Profile.calls`, u1[n] `CallClass`; kept as long as the profile is."""
    calls = profile.calls
    return np.zeros(0, np.uint8) if calls is None else profile.frames.call_classes(calls.frame)
