"""The table of frames has the sums and percentiles that plain loops find in the same trace."""

from __future__ import annotations

from collections import Counter

import pytest

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.tui.views.top_table import TopTable
from tests.support.oracles.naive_host import naive_host
from tests.support.oracles.naive_tree import Label
from tests.support.oracles.naive_views import by_name, nearest_rank
from tests.support.profiles.project_tree import project_tree
from tests.system.views.shown_cases import Looked, label_of, labels_of, looked, on_real, path_of


def check_top(one: Looked) -> None:
    tree, table = one.tree, TopTable(one.tree)
    values = one.shown.metric.values(one.shown.profile.activities)
    table.take(table.later(one.shown.members(), values, {}))
    spread, sums = table.spread, table.totals
    assert spread is not None
    expected = by_name(one.plain)
    assert set(labels_of(tree)) == set(expected)
    whole = sum(value for _, value, _ in one.plain)
    assert int(tree.total[0]) == whole
    for row, frame in enumerate(sums.frame.tolist()):
        named = expected[label_of(tree, frame)]
        columns = (sums.total, sums.own, sums.count, sums.places)
        found = tuple(int(column[row]) for column in columns)
        assert found == (named.total, named.own, len(named.values), named.places)
        assert len(one.shown.members().of_frame(frame)) == len(named.values)
        ranks = tuple(int(c[row]) for c in (spread.p50, spread.p95, spread.p99, spread.maximum))
        assert ranks == tuple(nearest_rank(named.values, p) for p in (50, 95, 99, 100))
        if tree.metric.unit == "ns":
            check_cells(table, row, named.total, whole, ranks)


def check_cells(table: TopTable, row: int, total: int, whole: int, ranks: tuple[int, ...]) -> None:
    assert_says(table.cell(row, "total"), total)
    assert_percent(table.cell(row, "share"), total, whole)
    for key, value in zip(("p50", "p95", "p99", "maximum"), ranks, strict=True):
        assert_says(table.cell(row, key), value)
    if ranks[0]:
        ratio = float(table.cell(row, "tail").removesuffix("×").replace(",", "").strip(">"))
        assert ratio == pytest.approx(min(ranks[2] / ranks[0], 99_999), abs=0.051, rel=0.005)


SCALE = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def assert_says(text: str, ns: float) -> None:
    """The text is `ns`, to its last digit, in a unit that leaves one to three digits before it."""
    number, unit = text.split()
    scale, digits = SCALE[unit], len(number.partition(".")[2])
    assert float(number) * scale == pytest.approx(ns, abs=0.5001 * scale / 10**digits)
    assert 1 <= float(number) < 1000 or unit == "s" or ns < 1


def assert_percent(text: str, part: int, whole: int) -> None:
    if text == "<0.1 %":
        assert 0 < part * 1000 < whole
    else:
        percent = float(text.removesuffix(" %"))
        assert percent == pytest.approx(100 * part / whole if whole else 0, abs=0.0501)
        assert (percent == 0) == (part == 0 or whole == 0)


@on_real
def test_the_top_table_of_real_traces(trace: str) -> None:
    for one in looked(trace):
        check_top(one)


@on_real
def test_the_top_table_of_host_time(trace: str) -> None:
    path = path_of(trace)
    tree = project_tree(load(path, LoadOptions("raw")), "nvtx,launch", metric="host")
    total, own = Counter[Label](), Counter[Label]()
    for piece in naive_host(path):
        labels = [("nvtx", text) for text in piece.ranges]
        labels += [("launch", piece.call)] if piece.call else []
        for label in set(labels):
            total[label] += piece.ns
        own[labels[-1]] += piece.ns
    table = TopTable(tree).totals
    columns = zip(table.frame.tolist(), table.total.tolist(), table.own.tolist(), strict=True)
    found = {label_of(tree, frame): sums for frame, *sums in columns if any(sums)}
    assert found == {label: [total[label], own[label]] for label in total if total[label]}
