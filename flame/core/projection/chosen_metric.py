"""Find the metric that is asked for, or say why a profile has none such."""

from __future__ import annotations

from flame.core.errors import UsageError
from flame.core.model.metrics import NOT_OF_RANKS, WAIT, Metric, metric_of
from flame.core.model.profile import Profile


def chosen_metric(profile: Profile, key: str | None) -> Metric:
    """Find the metric called ``key``, the usual one for None.

    Raises UsageError where there is none such, with what to do.
    """
    if key == WAIT.key and (why := why_no_waits(profile)):
        raise UsageError(f"--metric {key}: {why}")
    return metric_of(key or profile.default_metric, profile.metrics)


def why_no_waits(profile: Profile) -> str:
    """Say why it is not known how long collectives waited for ranks; empty where it is."""
    return NOT_OF_RANKS if profile.ranks is None else profile.ranks.why_no_waits
