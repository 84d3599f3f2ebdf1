"""Merge the metrics of several profiles, and their measures in common units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from flame.core.columns import I8, SUM_LIMIT
from flame.core.errors import InputError
from flame.core.model.activities import Activities
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile

_MOST_TOLD = 4


def merge_metrics(profiles: Sequence[Profile], labels: Sequence[str]) -> tuple[Metric, ...] | None:
    """Merge the metrics of files of resolved stacks; None for traces, which have none of their own.

    Plain numbers are counted in the smallest of their parts. Raises InputError where a metric has
    different units, for traces among such files, which nothing measures as well, and for sums that
    do not fit 64 bits.
    """
    if all(profile.own_metrics is None for profile in profiles):
        metrics = None
    else:
        metrics = tuple(_merge_own_metrics(profiles, labels))
    for metric in metrics or profiles[0].metrics:
        if (
            metric.table == "gpu"
            and not metric.when_asked
            and sum(_sum(profile, metric) for profile in profiles) >= SUM_LIMIT
        ):
            raise InputError(f"the {metric.title} of these files adds up to more than 64 bits hold")
    return metrics


def metric_warnings(profiles: Sequence[Profile], labels: Sequence[str]) -> Iterator[str]:
    """Warn that files of stacks measure different things: a file may show nothing."""
    titles = [tuple(metric.title for metric in profile.own_metrics or ()) for profile in profiles]
    if len(set(titles)) < 2:
        return
    first: dict[tuple[str, ...], str] = {}
    for own, label in zip(titles, labels, strict=True):
        first.setdefault(own, label)
    texts = [f"{label} {' and '.join(own)}" for own, label in first.items()]
    listed = "; ".join(texts[:_MOST_TOLD])
    more = "; …" if len(texts) > _MOST_TOLD else ""
    yield (
        f"these files measure different things ({listed}{more}): what a file "
        "does not measure is 0 there"
    )


def _merge_own_metrics(profiles: Sequence[Profile], labels: Sequence[str]) -> list[Metric]:
    metrics: dict[str, tuple[Metric, str]] = {}
    for profile, label in zip(profiles, labels, strict=True):
        if profile.own_metrics is None:
            raise InputError(
                f"{label} is a trace, others are only stacks: they have no metric in common, "
                "open them one by one"
            )
        for metric in profile.own_metrics:
            known, first = metrics.get(metric.key, (metric, label))
            unit = _common_unit(known.unit, metric.unit)
            if unit is None:
                raise InputError(
                    f"{metric.title} is {known.unit} in {first} and {metric.unit} in {label}: "
                    "open them one by one"
                )
            levels = max(known.levels, metric.levels, key=len)
            metrics[metric.key] = replace(known, unit=unit, levels=levels), first
    return [metric for metric, _ in metrics.values()]


def _common_unit(unit: str, other: str) -> str | None:
    """Return the unit that both can be counted in."""
    if unit == other:
        return unit
    digits = _digits(unit), _digits(other)
    return None if None in digits else max(unit, other, key=lambda unit: _digits(unit) or 0)


def _digits(unit: str) -> int | None:
    """Return decimals of a plain number counted in ``unit``; None for what is no plain number."""
    if unit == "count":
        return 0
    return int(unit.removeprefix("1e-")) if unit.startswith("1e-") else None


def _sum(profile: Profile, metric: Metric) -> float:
    if profile.own_metrics is None:
        return float(metric.values(profile.activities).sum(dtype=np.float64))
    own = profile.activities.measures.get(metric.key)
    scale = measure_scales(profile, [metric]).get(metric.key, 1)
    return 0.0 if own is None else float(own.sum(dtype=np.float64)) * scale


def measure_scales(profile: Profile, metrics: Sequence[Metric] | None) -> dict[str, int]:
    """Return the factors that bring the profile's own measures to the units of ``metrics``.

    Those of traces (None) are as they are.
    """
    if metrics is None:
        return dict.fromkeys(profile.activities.measures, 1)
    units = {metric.key: metric.unit for metric in metrics}
    return {
        metric.key: 10 ** ((_digits(units[metric.key]) or 0) - (_digits(metric.unit) or 0))
        for metric in profile.own_metrics or ()
        if metric.key in units
    }


def merge_measures(
    tables: Sequence[Activities], factors: Sequence[Mapping[str, int]]
) -> dict[str, I8]:
    """Concatenate the measures of all ``tables``, each times its factor; 0 where there is none."""
    keys = dict.fromkeys(key for table in tables for key in table.measures)
    return {
        key: np.concatenate(
            [
                table.measures[key] * own[key] if key in own else np.zeros(len(table), np.int64)
                for table, own in zip(tables, factors, strict=True)
            ]
        )
        for key in keys
    }
