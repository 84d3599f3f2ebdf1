"""Activities that are alike in columns of their groups are those alike in their own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import unique_rows
from flame.core.model.profile import Profile
from flame.core.report.measures.activity_groups import unique_by_group
from tests.support.profiles.recorded import Recorded

NAMES = ("gemm", "norm", "gemm", "copy")


def profile() -> Profile:
    """Kernels of three names, some of which were launched in a range."""
    trace = Recorded()
    trace.range("step", 0, 100)
    for number in range(1, 13):
        at = 20 * number
        trace.call("cudaLaunchKernel", at - 20, at - 19, number)
        trace.kernel(NAMES[number % 4], at, at + 10, number)
    return trace.profile()


PROFILE = profile()


@given(rows=st.sets(st.integers(0, 11)), ranges=st.booleans())
def test_rows_alike_are_found_by_their_groups(rows: set[int], ranges: bool) -> None:
    table, chosen = PROFILE.activities, np.array(sorted(rows), np.int64)
    names = ("frame", "nvtx") if ranges else ("frame",)
    found = unique_by_group(table, chosen, [getattr(table.groups, name) for name in names])
    expected = unique_rows([getattr(table, name)[chosen] for name in names])
    assert [column.tolist() for column in found] == [column.tolist() for column in expected]
