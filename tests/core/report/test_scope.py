"""What a report is about: the same activities, however the tree is laid out."""

from __future__ import annotations

import numpy as np
import pytest

from flame.core.projection.filters import HideStacks
from flame.core.projection.selection import select
from flame.core.report.report import SECTIONS
from flame.core.report.scope import Scope
from tests.support.profiles.recorded import Recorded


def crossing() -> Recorded:
    """Two kernels below a range that Python functions of different names are in."""
    trace = Recorded()
    trace.range("step", 0, 100)
    for number, name in enumerate(("forward", "backward"), 1):
        at = 10 + 40 * number
        trace.function(name, at - 30, at)
        trace.call("cudaLaunchKernel", at - 20, at - 19, number, python=("run",))
        trace.kernel("gemm", at, at + 10 * number, number)
    return trace


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_is_called_as_it_is_listed(name: str) -> None:
    section = SECTIONS[name].build(Scope(crossing().profile(), select()))
    assert (section.name, section.title) == (name, SECTIONS[name].title)


@pytest.mark.parametrize("levels", [None, "nested,kernel", "nvtx,kernel", "kernel"])
def test_rows_do_not_depend_on_levels(levels: str | None) -> None:
    profile = crossing().profile()
    assert np.sort(Scope(profile, select(levels)).rows).tolist() == [0, 1]


def test_filters_by_stacks_choose_of_nested_levels() -> None:
    profile = crossing().profile()
    where = (HideStacks("forward"),)
    assert Scope(profile, select("nested,kernel", where)).rows.tolist() == [1]
