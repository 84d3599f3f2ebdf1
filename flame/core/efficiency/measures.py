"""Give a `Profile` the metrics of the work of operators, worked out once somebody asks for them."""

from __future__ import annotations

from typing import Any

from flame.core.model.profile import Profile
from flame.core.operators.work import OperatorWork


def _measure_work(profile: Profile) -> OperatorWork:
    from flame.core.efficiency.work import measure_work

    return measure_work(profile)


WORK: dict[str, Any] = {"work_builder": _measure_work}
"""What a `Profile` that has all its rows is made with, to have these metrics."""
