"""Find the metric that is asked for, or say why a profile has none such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flame.core.errors import UsageError
from flame.core.model.metrics import NOT_OF_RANKS, OF_A_MOMENT, WAIT, Metric, metric_of
from flame.core.model.profile import Profile
from flame.core.projection.filters import At, Filter
from flame.core.units import format_ns


def chosen_metric(profile: Profile, key: str | None) -> Metric:
    """Find the metric called ``key``, the usual one for None.

    Raises UsageError where there is none such, with what to do.
    """
    if key == WAIT.key and not profile.resolved and (why := why_no_waits(profile)):
        raise UsageError(f"--metric {key}: {why}")
    return metric_of(key or profile.default_metric, profile.metrics)


_AT_MOMENT = {
    "peak": "memory at the peak",
    "oom": "memory when a request failed",
    "end": "memory at the end",
}


def at_moment(metric: Metric, where: Sequence[Filter]) -> Metric:
    """Call ``metric`` after the moment that ``where`` asks for, where it is of one."""
    asked = [one.moment for one in where if isinstance(one, At)]
    if not asked or metric.key not in OF_A_MOMENT or metric.table != "memory":
        return metric
    moment = asked[0]
    title = f"memory at {format_ns(moment)}" if isinstance(moment, int) else _AT_MOMENT[moment]
    return replace(metric, title=title)


def why_no_waits(profile: Profile) -> str:
    """Say why it is not known how long collectives waited for ranks; empty where it is."""
    return NOT_OF_RANKS if profile.ranks is None else profile.ranks.why_no_waits
