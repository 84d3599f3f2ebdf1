"""The two tiers of the tests: `make test` runs the quick one, `make test-deep` the other.

The marker ``deep`` puts a test into the deep tier; pyproject.toml tells which tests it is for.
A property, a test that hypothesis draws examples for, runs in both: with few examples, the same
every time, in the quick tier, and with many in the deep one.
"""

from __future__ import annotations

import inspect
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

T = TypeVar("T")

SLOW = 3.0
"""Seconds that a test of the quick tier may take."""

MANY = 20
"""Tests of a folder that open the app, of which the quick tier takes all."""

OF_TRACES = 50
"""Examples of a property that writes a trace for each: one takes as long as three of others."""

_TIMED = (HealthCheck.too_slow,)
QUICK = "quick"
DEEP = "deep"
"""The names of the profiles of hypothesis; pytest's ``--hypothesis-profile`` chooses one."""


def load_profiles() -> None:
    """Tell hypothesis how many examples to draw, and not to mind time: a shared machine stalls.

    In CI the same examples every time, so that a red run speaks of the change and not of the draw:
    a quarter as many, as the next run adds none, and in the quick tier fewer still, as the deep
    one follows and draws them again. Elsewhere the deep tier draws others every time; a failure
    says how to draw its example again.
    """
    calm = settings(deadline=None, suppress_health_check=_TIMED)
    same = "CI" in os.environ
    few, many = (5, 25) if same else (15, 100)
    settings.register_profile(QUICK, calm, max_examples=few, derandomize=True)
    settings.register_profile(DEEP, calm, max_examples=many, derandomize=same, print_blob=True)
    settings.load_profile(QUICK)


def examples(factor: float, suppressed: Sequence[HealthCheck] = ()) -> settings:
    """Settings with ``factor`` times the examples of the profile, one at least.

    What is too slow for hypothesis, as writing traces is, has no more than `OF_TRACES` of them.
    """
    most = settings().max_examples
    if HealthCheck.too_slow in suppressed:
        most = min(most, OF_TRACES)
    count = max(1, round(factor * most))
    return settings(max_examples=count, suppress_health_check={*_TIMED, *suppressed})


def deep_except(quick: Collection[T], values: Iterable[T]) -> list[object]:
    """Values for ``parametrize``, those that are not among ``quick`` for the deep tier."""
    return [
        value if value in quick else pytest.param(value, marks=pytest.mark.deep) for value in values
    ]


def is_slow(report: pytest.TestReport) -> bool:
    """Whether that test of the quick tier took too long, the making of its fixtures left out."""
    return report.when == "call" and report.duration > SLOW and "deep" not in report.keywords


def thin_out(items: Iterable[pytest.Item]) -> None:
    """Leave, of tests that run once for each parameter, every third to the quick tier."""
    places: Counter[tuple[str, str]] = Counter()
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            key = str(item.path), item.originalname
            quick = item.get_closest_marker(DEEP) is None
            if quick and places[key] % 3:
                item.add_marker(DEEP)
            places[key] += quick


def halve(items: Iterable[pytest.Item]) -> None:
    """Leave, of more than `MANY` tests of one folder, every other to the quick tier."""
    folders: defaultdict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker(DEEP) is None:
            folders[item.path.parent].append(item)
    for found in folders.values():
        for item in found[1::2] if len(found) > MANY else ():
            item.add_marker(DEEP)


def drives_app(item: pytest.Item) -> bool:
    """Whether a test opens the app, which takes a fifth of a second."""
    return isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj)
