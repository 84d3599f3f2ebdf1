"""What stands for a bin is within one per cent of all that it holds."""

from __future__ import annotations

import numpy as np

from flame.core.rank_summary.duration_histogram import (
    ERROR,
    MOST_BIN,
    bin_edges,
    bins_of,
    middle_of,
)


def test_edges_hold_what_they_say() -> None:
    edges = bin_edges().tolist()
    assert len(edges) == MOST_BIN and edges == sorted(edges)
    for place in (0, 1, 34, 35, 400, MOST_BIN - 1):
        assert edges[place] == 101**place // 99**place
    assert bins_of(np.array([0, 1, 2, (1 << 63) - 1])).tolist() == [-1, 0, 35, MOST_BIN]


def test_the_middle_of_a_bin_is_near_all_that_is_in_it() -> None:
    values = np.unique(np.geomspace(1, (1 << 62), 40_000).astype(np.int64))
    middle = middle_of(bins_of(values))
    assert (np.abs(middle - values) <= (ERROR + 1e-9) * values).all()
    assert middle_of(np.array([-1])).tolist() == [0.0]
