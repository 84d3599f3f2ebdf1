"""Every real trace opens, and nothing of what it recorded is lost or made up."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from flame.core.loading.many import load
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from tests.conftest import EVERY_NSYS_TRACE, TRACES, needs_traces
from tests.support.oracles.naive import GPU_TABLES, Row, naive
from tests.support.profiles.project_tree import project_tree

pytestmark = needs_traces
on_all = pytest.mark.parametrize("trace", EVERY_NSYS_TRACE)

ORDERS = (
    None,
    "kernel",
    "kernel,nvtx,launch",
    "device,stream,kernel",
    "process,thread,python,native,launch,nvtx,shapes,kernel",
    "nvtx",
)


@cache
def profile_of(trace: str) -> Profile:
    return load(TRACES / "nsys" / trace)


@cache
def recorded(trace: str) -> dict[str, tuple[int, int]]:
    """(number, summed time) of each kind of activity, by plain SQL."""
    uri = f"{(TRACES / 'nsys' / trace).as_uri()}?mode=ro&immutable=1"
    db = sqlite3.connect(uri, uri=True)
    query = 'SELECT count(*), coalesce(sum(max("end" - start, 0)), 0) FROM {}'
    found = dict.fromkeys(GPU_TABLES, (0, 0))
    for kind, table in GPU_TABLES.items():
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            found[kind] = db.execute(query.format(table)).fetchone()
    db.close()
    return found


@cache
def rows_of(trace: str) -> list[Row]:
    return naive(TRACES / "nsys" / trace)


@on_all
@pytest.mark.parametrize("levels", ORDERS)
def test_leaves_add_up_to_all_activities(trace: str, levels: str | None) -> None:
    profile, expected = profile_of(trace), recorded(trace).values()
    for metric, index in (("count", 0), ("gpu", 1)):
        tree = project_tree(profile, levels, metric=metric)
        assert int(tree.own.sum()) == sum(total[index] for total in expected)
        assert int(tree.total[0]) == int(tree.own.sum())


@on_all
def test_counts_per_kind_are_those_of_the_tables(trace: str) -> None:
    profile = profile_of(trace)
    assert profile.counts == {kind: count for kind, (count, _) in recorded(trace).items()}
    assert profile.gpu_time == sum(ns for _, ns in recorded(trace).values())


@on_all
@pytest.mark.parametrize("metric", [metric.key for metric in METRICS])
def test_nothing_weighs_less_than_nothing(trace: str, metric: str) -> None:
    tree = project_tree(profile_of(trace), metric=metric)
    assert tree.own.min() >= 0
    assert tree.own_count.min() >= 0


@on_all
def test_metrics_add_up_to_the_naive_sums(trace: str) -> None:
    rows, profile = rows_of(trace), profile_of(trace)
    weights: dict[str, Callable[[Row], int]] = {
        "gpu": lambda row: row.duration,
        "count": lambda row: 1,
        "launch": lambda row: row.launch_share,
        "queue": lambda row: row.queue,
        "idle": lambda row: row.idle,
    }
    expected = {metric: sum(map(weight, rows)) for metric, weight in weights.items()}
    assert {
        metric: int(project_tree(profile, metric=metric).total[0]) for metric in weights
    } == expected


@on_all
def test_coverage_is_the_share_of_gpu_time(trace: str) -> None:
    rows, profile = rows_of(trace), profile_of(trace)
    having: dict[str, Callable[[Row], bool]] = {
        "launch": lambda row: row.call is not None,
        "nvtx": lambda row: bool(row.ranges),
        "python": lambda row: bool(row.python),
        "native": lambda row: bool(row.native),
    }
    covered = {key: sum(row.duration for row in rows if has(row)) for key, has in having.items()}
    assert {key: share.ns for key, share in profile.coverage.items()} == covered


@on_all
def test_cleaning_names_moves_no_time(trace: str) -> None:
    raw, clean = load(TRACES / "nsys" / trace, LoadOptions("raw")), profile_of(trace)
    for name in ("duration", "launch_share", "idle", "start"):
        assert np.array_equal(getattr(clean.activities, name), getattr(raw.activities, name))


@on_all
def test_reading_leaves_no_trace_beside_the_file(trace: str, tmp_path: Path) -> None:
    copy = tmp_path / trace
    copy.write_bytes((TRACES / "nsys" / trace).read_bytes())
    before = copy.read_bytes()
    load(copy)
    assert list(tmp_path.iterdir()) == [copy]
    assert copy.read_bytes() == before
