"""Give a `Profile` the metrics that need all its rows, worked out once somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flame.core.columns import I8
from flame.core.model.activities import Activities
from flame.core.model.profile import Profile
from flame.core.projection.filters import Filter


def _exposed_times(profile: Profile) -> I8:
    from flame.core.timeline.exposure import exposed_times

    return exposed_times(profile)


def _waiting_table(profile: Profile, where: Sequence[Filter] = ()) -> Activities:
    from flame.core.analysis.waiting.table import waiting_table

    return waiting_table(profile, where)


MEASURES: dict[str, Any] = {
    "exposed_builder": _exposed_times,
    "waiting_builder": _waiting_table,
}
"""What a `Profile` that has all its rows is made with, to have the metrics of that."""
