"""Several runs of a side are one side: their sums, and what their differences tell of noise."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from flame.core.loading.inputs import Inputs
from flame.tui.diff.loading import RunInputs, SideInputs
from tests.tui.diff.opened import chosen, compared, open_sides
from tests.tui.diff.test_diff_app import SHOWN, Kernels, line_of, written


def run(path: Path, gemm: int, softmax: int) -> RunInputs:
    kernels: Kernels = {("attention", "gemm"): [gemm], ("attention", "softmax"): [softmax]}
    return RunInputs(Inputs((written(path, kernels),)))


@pytest.fixture
def sides(tmp_path: Path) -> SideInputs:
    """Four runs and five: ``gemm`` is longer in each of NEW, ``softmax`` in most."""
    softmax = (40, 43, 46, 49), (40, 48, 55, 60, 65)
    return SideInputs(
        [run(tmp_path / f"b{at}.sqlite", 100 + at, softmax[0][at]) for at in range(4)],
        [run(tmp_path / f"n{at}.sqlite", 120 + at, softmax[1][at]) for at in range(5)],
    )


@pytest.mark.deep
async def test_runs_are_added_up_and_tell_noise(sides: SideInputs) -> None:
    words = [
        f"--{name}={one.inputs.paths[0]}"
        for name, some in (("base", sides.base), ("new", sides.new))
        for one in some
    ]
    async with open_sides(sides, words, (160, 40), chosen(SHOWN)) as user:
        assert "b0.sqlite and 3 more → n0.sqlite and 4 more" in user.read("header")
        gemm, softmax = (101.5, 122.0), (44.5, 53.6)
        assert (
            f"BASE {gemm[0] + softmax[0]:.0f} ms → NEW {gemm[1] + softmax[1]:.0f} ms"
            in user.read("change")
        )
        assert "beyond noise" in user.read("change")
        icicle = user.read("icicle")
        assert "▲ gemm" in icicle and "softmax" in icicle and "▲ softmax" not in icicle
        await user.press("V")
        assert "▲ softmax" in user.read("icicle")
        await user.press("tab", "tab", "tab", "D")
        await user.rest()
        assert "timeline of BASE, b0.sqlite ▾" in user.read("change")
        details = " ".join(user.read("details").split())
        assert "4 and 5 runs chance" in details
        assert (
            compared(user).comparison.sides.runs[0].profile
            is user.screen.parts.timeline.shown.profile
        )
        assert shlex.split(line_of(user))[2 : 2 + len(words)] == words
