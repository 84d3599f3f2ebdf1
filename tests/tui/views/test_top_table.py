"""The top table without the app: its rows, its orders, its columns, and what its cells say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.frame_totals import Percentiles
from flame.core.model.frames import Frame, Kind
from flame.tui.session.carry import matching_frames
from flame.tui.session.query import Query, find
from flame.tui.views.top_columns import LEAST_NAME, TopColumns
from flame.tui.views.top_table import SlowColumns, TopTable, bar, times
from tests.tui.trees import random_trees, stack_tree

QUANTILES = ("p50", "p95", "p99", "maximum", "tail")


# Without the app


def table() -> TopTable:
    return TopTable(
        stack_tree(
            {
                (Frame(Kind.NVTX, "step"), "gemm"): 600,
                (Frame(Kind.NVTX, "step"), "norm"): 100,
                ("gemm",): 300,
                ("b",): 100,
            }
        )
    )


def named(one: TopTable, rows: np.ndarray) -> list[str]:
    return [one.name(row) for row in rows.tolist()]


def test_rows_are_ordered_largest_first_and_equal_ones_by_their_total() -> None:
    one = table()
    assert named(one, one.rows("own", False, None, None)) == ["gemm", "b", "norm", "step"]
    assert named(one, one.rows("total", False, None, None)) == ["gemm", "step", "b", "norm"]
    assert named(one, one.rows("total", True, None, None)) == ["norm", "b", "step", "gemm"]


def test_rows_can_be_of_one_kind_and_of_a_search() -> None:
    one = table()
    assert named(one, one.rows("own", False, Kind.NVTX, None)) == ["step"]
    fits = matching_frames(one.tree, find(one.tree, Query("m$")))
    assert named(one, one.rows("own", False, None, fits)) == ["gemm", "norm"]
    assert (one.number(None), one.number(Kind.KERNEL)) == (4, 3)


def test_the_root_has_no_row() -> None:
    one = table()
    assert one.row_of(0) == -1
    assert one.name(one.row_of(one.tree.text.index("norm"))) == "norm"


def test_a_kernel_has_no_self_time_to_show_where_it_has_none() -> None:
    one = table()
    row = one.row_of(one.tree.text.index("step"))
    assert [one.cell(row, key) for key in ("own", "total", "share", "count", "mean")] == [
        "–",
        "700 ns",
        "63.6 %",
        "2",
        "350 ns",
    ]


def test_each_percentile_stands_under_its_own_head() -> None:
    one = table()
    size = len(one)
    columns = (np.full(size, value) for value in (100, 300, 700, 900))
    one.take(SlowColumns(Percentiles(*columns), {}, {}))
    cells = [one.cell(0, key) for key in QUANTILES]
    assert cells == ["100 ns", "300 ns", "700 ns", "900 ns", "7.0×"]


@given(random_trees)
def test_every_frame_has_one_row_in_every_order(tree) -> None:  # type: ignore[no-untyped-def]
    one = TopTable(tree)
    one.take(one.later(None, np.zeros(0, np.int64), {}))
    used = sorted(set(tree.frame[1:].tolist()))
    for key, order in one.orders.items():
        assert sorted(one.totals.frame[order].tolist()) == used, key


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (60, ["own", "total", "share"]),
        (79, ["own", "total", "share", "count", "p99"]),
        (100, ["own", "total", "share", "count", "p50", "p99", "maximum"]),
        (
            160,
            [*("own", "own share", "total", "share", "bar", "count", "mean"), *QUANTILES],
        ),
    ],
)
def test_a_narrow_table_keeps_the_most_important_columns(width: int, keys: list[str]) -> None:
    assert [head.key for head in TopColumns().fitting(width)] == keys


@given(st.integers(0, 400), st.sampled_from([*TopColumns().titles]))
def test_columns_leave_room_for_the_name(width: int, order: str) -> None:
    used = sum(head.width for head in TopColumns(order=order).fitting(width))
    assert not used or used + min(LEAST_NAME, width // 2) <= width


def test_a_metric_that_counts_has_no_percentiles() -> None:
    assert {head.key for head in TopColumns(timed=False).fitting(200)} == {
        "own",
        "own share",
        "total",
        "share",
        "bar",
    }


@pytest.mark.parametrize(
    ("part", "drawn"),
    [(0, "      "), (1, "▏     "), (500, "███   "), (510, "███▏  "), (1000, "██████")],
)
def test_a_bar_is_as_long_as_the_part(part: int, drawn: str) -> None:
    assert bar(part, 1000) == drawn


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [
        (3, 0, "–"),
        (3, 2, "1.5×"),
        (99_940, 1_000, "99.9×"),
        (23_834_400, 1_000, "23,834×"),
        (10**12, 1, ">99,999×"),
    ],
)
def test_a_ratio_fits_its_column(value: int, of: int, text: str) -> None:
    assert times(value, of) == text
