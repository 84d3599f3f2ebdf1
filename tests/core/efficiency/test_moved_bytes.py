"""Bytes that memory moved beside those that were counted: known, or left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flame.core.efficiency.by_operator import work_by_operator
from flame.core.efficiency.moved_bytes import MovedBytes, measure_moved, moved_by_operator
from flame.core.gpu_metrics.kernels import LaneRows
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.report.report import Report
from flame.core.report.scope import Scope
from tests.support.generated.worked import MOVED, write_products, write_sampled

TYPED = LoadOptions(dtype="bf16")
APART = [("mm", 1_000, 2_000), ("relu", 3_000, 4_000), ("mm", 5_000, 6_000)]
READ_AND_WRITTEN = 20_000_000
"""Bytes that 2 % of 1 TB/s move in 1 ms."""


def of_all(path: Path, options: LoadOptions = TYPED) -> MovedBytes | None:
    profile = load(path, options)
    rows = np.arange(len(profile.activities))
    return measure_moved(profile, [LaneRows(0, 1, np.zeros(len(rows), np.int64), rows)], 1)


def test_what_was_moved_while_products_ran_is_compared_with_what_they_need(tmp_path: Path) -> None:
    found = of_all(write_sampled(tmp_path / "a.sqlite", APART, read=1, write=1))
    assert found is not None
    assert (found.counted.tolist(), found.measured.tolist()) == (
        [2 * MOVED],
        [2 * READ_AND_WRITTEN],
    )
    assert found.ratio[0] == READ_AND_WRITTEN / MOVED


@pytest.mark.parametrize(
    "runs",
    [
        [("mm", 1_000, 2_000), ("relu", 1_000, 1_200)],  # beside others
        [("mm", 1_000, 1_190)],  # 19 samples
        # Every other half of a sample is of something else.
        [(("mm", "relu")[at % 2], 1_000 + 5 * at, 1_005 + 5 * at) for at in range(100)],
    ],
)
def test_what_samples_do_not_tell_of_products_alone_is_left_out(
    tmp_path: Path, runs: list[tuple[str, int, int]]
) -> None:
    found = of_all(write_sampled(tmp_path / "a.sqlite", runs, read=2))
    assert found is not None and found.counted[0] > 0
    assert np.isnan([found.measured[0], found.ratio[0]]).all()


def test_nine_tenths_of_the_samples_are_enough(tmp_path: Path) -> None:
    runs = [("mm", 1_000 + 10 * at, 1_009 + 10 * at) for at in range(30)]
    found = of_all(write_sampled(tmp_path / "a.sqlite", runs, read=2))
    assert found is not None and not np.isnan(found.ratio[0])


def test_without_types_or_metrics_there_is_no_ratio(tmp_path: Path) -> None:
    found = of_all(write_sampled(tmp_path / "a.sqlite", APART, read=2), LoadOptions())
    assert found is not None and np.isnan(found.ratio[0])
    assert of_all(write_products(tmp_path / "b.json")) is None
    assert of_all(write_sampled(tmp_path / "c.sqlite", [("relu", 0, 900)], read=2)) is None


def test_operators_have_their_own(tmp_path: Path) -> None:
    profile = load(write_sampled(tmp_path / "a.sqlite", APART, read=2), TYPED)
    rows = np.arange(len(profile.activities))
    operators = work_by_operator(profile, rows)
    assert operators is not None
    found = moved_by_operator(profile, rows, operators)
    assert found is not None and found.ratio.tolist() == [READ_AND_WRITTEN / MOVED]


def test_the_report_says_where_bytes_are_moved_twice(tmp_path: Path) -> None:
    for read, ratio, said in ((2, 3.179, True), (1, 1.589, False)):
        path = write_sampled(tmp_path / f"{read}.sqlite", APART, read=read)
        section = Report(Scope(load(path, TYPED))).section("efficiency")
        table = section.tables[0]
        (row,) = (dict(zip((c.key for c in table.columns), r, strict=True)) for r in table.rows)
        assert (row["moved_bytes"], row["moved_ratio"]) == (read * 20_000_000, ratio)
        assert any("more than twice" in note for note in section.notes) == said
