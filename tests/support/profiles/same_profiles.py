"""Compare two profiles in everything that can be asked of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from io import BytesIO
from typing import Any

import numpy as np

from flame.core.analysis.iterations import measure_iterations
from flame.core.errors import FlameError
from flame.core.kept_results import kept
from flame.core.model.activities import Activities, Groups, ThreadSpans
from flame.core.model.profile import Profile
from flame.core.model.tree import Order, TreeLayout
from flame.core.operators.work import OperatorWork
from flame.core.projection.filters import Time
from flame.core.projection.selection import Selection, select
from flame.core.timeline.devices import device_times
from flame.exporters import folded, speedscope

LEVELS = (
    None,
    "kernel",
    "process,thread,device,stream,python,native,launch,nvtx,shapes,category,kernel",
    "nested,kernel",
    "module,kernel",
)
_PARTS = (
    *("host", "launches", "ranges", "functions", "calls", "callrows", "failures", "events"),
    *("steps", "iterations", "grouping", "work", "peaks"),
)
_WORK = (
    *("shared", "costs", "memory_known", "operator", "flops", "bytes", "rated", "compute_ps"),
    *("fast_compute_ps", "memory_ps", "waste"),
)
_PLAIN = ("processes", "threads", "devices", "meta", "begin", "end", "graph_nodes", "warnings")
_MORE = ("sources", "timed", "gpu_time", "counts", "coverage", "size", "has_forward", "resolved")


def differences(left: Profile, right: Profile) -> list[str]:
    """Name all in which the profiles differ; rows, trees and exports too.

    What ``left`` exports is kept for as long as it lives: many may be compared with it.
    """
    return [*_of_columns(left, right), *_of_exports(left, right)]


def _of_columns(left: Profile, right: Profile) -> Iterator[str]:
    pairs: list[tuple[str, Any, Any]] = [
        (name, getattr(left, name), getattr(right, name)) for name in (*_PARTS, *_PLAIN, *_MORE)
    ]
    pairs += [
        ("frames", tuple(left.frames.frames), tuple(right.frames.frames)),
        ("examples", left.frames.examples, right.frames.examples),
        ("activities", left.activities, right.activities),
        ("unlinked", left.unlinked.activities, right.unlinked.activities),
        ("nested", left.with_nested.activities, right.with_nested.activities),
        ("spans", _spans(left), _spans(right)),
        ("iteration table", measure_iterations(left), measure_iterations(right)),
        ("busy", [_busy(each) for each in device_times(left)], [*map(_busy, device_times(right))]),
    ]
    for metric in left.metrics:
        sums = left.totals_by_group(metric), right.totals_by_group(metric)
        pairs.append((f"sums of {metric.key}", *sums))
    yield from (name for name, one, other in pairs if not is_same(one, other))


def _spans(profile: Profile) -> ThreadSpans | None:
    """All ranges as they were recorded."""
    finder = profile.spans_finder
    return finder(range(len(profile.frames))) if finder else None


def _busy(each: Any) -> tuple[Any, ...]:
    return each.device, each.label, each.busy.low, each.busy.before


def is_same(left: Any, right: Any) -> bool:
    """Compare values, columns by column."""
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    if isinstance(left, Activities):
        return is_same(left.groups, right.groups) and _have_same_fields(left, right, Activities)
    if isinstance(left, Groups):
        return _have_same_fields(left, right, Groups)
    if isinstance(left, OperatorWork) and right is not None:
        return all(is_same(getattr(left, name), getattr(right, name)) for name in _WORK)
    if is_dataclass(left) and right is not None:
        return _have_same_fields(left, right, type(left))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, (tuple, list)) and isinstance(right, (tuple, list)):
        return len(left) == len(right) and all(map(is_same, left, right))
    return bool(left == right)


def _have_same_fields(left: Any, right: Any, of: type) -> bool:
    return all(is_same(getattr(left, each.name), getattr(right, each.name)) for each in fields(of))


def _of_exports(left: Profile, right: Profile) -> Iterator[str]:
    middle = (left.begin + left.end) // 2
    orders: tuple[Order, ...] = ("weight", "start")
    for order in orders:
        half = select(where=(Time(None, middle),), layout=TreeLayout(order=order))
        if _expected(left, exported, half) != exported(right, half):
            yield f"export of the first half by {order}"
    choices = (True, False) if left.has_forward or right.has_forward else (True,)
    for levels in LEVELS:
        for forward in choices:
            yield from _of_metrics(left, right, select(levels, forward=forward))


@kept
def _exports(_: Profile) -> dict[tuple[Callable[..., bytes | str], Selection], bytes | str]:
    """What was exported of a profile before."""
    return {}


def _expected(
    profile: Profile, write: Callable[[Profile, Selection], bytes | str], selection: Selection
) -> bytes | str:
    exports = _exports(profile)
    if (write, selection) not in exports:
        exports[write, selection] = write(profile, selection)
    return exports[write, selection]


def _of_metrics(left: Profile, right: Profile, selection: Selection) -> Iterator[str]:
    """Speedscope files once per table: they have all metrics of it."""
    tables = set()
    for metric in left.metrics:
        write = exported if metric.table not in tables else folded_lines
        tables.add(metric.table)
        chosen = replace(selection, metric=metric.key)
        if _expected(left, write, chosen) != write(right, chosen):
            yield f"export of {selection.levels} by {metric.key}"


def exported(profile: Profile, selection: Selection) -> bytes | str:
    """Write both formats; or say why not."""
    return _written(profile, selection, both=True)


def folded_lines(profile: Profile, selection: Selection) -> bytes | str:
    """Write folded stacks; or say why not."""
    return _written(profile, selection, both=False)


def _written(profile: Profile, selection: Selection, both: bool) -> bytes | str:
    from flame.core.projection.project import project

    file = BytesIO()
    try:
        tree = project(profile, selection)
        folded.write(tree, file)
        if both:
            speedscope.write(profile, selection, file, name="name", first=tree)
    except FlameError as error:
        return str(error)
    return file.getvalue()
