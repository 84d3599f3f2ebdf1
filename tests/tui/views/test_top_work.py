"""How near frames are to the peak of the GPU, in the top table: known, or empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.tui.views.top_columns import OF_WORK, TopColumns
from flame.tui.views.top_pane import TopPane
from tests.support.generated.worked import H100, write_products
from tests.tui.conftest import User, open_app

KEYS = [head.key for head in OF_WORK]


async def cells_of(user: User) -> dict[str, list[str]]:
    """The cells of the work, by name."""
    pane = user.screen.query_one(TopPane)
    while user.screen.pane is not pane:
        await user.press("tab")
    await user.until(lambda: not pane.busy)
    await user.settle()
    table = pane._table
    assert table is not None
    return {table.name(row): [table.cell(row, key) for key in KEYS] for row in range(len(table))}


async def test_columns_are_filled_where_the_work_is_known(tmp_path: Path) -> None:
    async with open_app(write_products(tmp_path / "a.json", H100), size=(220, 40)) as user:
        found = await cells_of(user)
        assert found["gemm"] == ["859", "86.8 %", "43.8 %", "86.8 %", "100.0 %", "compute-bound"]
        assert found["add"] == [""] * 6, "what has no formula is no zero"
        assert "% bound" in user.read("heads") and "compute-bound" in user.read("table")
        pane = user.screen.query_one(TopPane)
        for backwards in (False, True):
            pane._sort_by("bound_share", backwards)
            pane.show(user.screen.shown)
            await user.settle()
            assert pane._table is not None
            order = [pane._table.name(int(row)) for row in pane._rows]
            assert order.index("gemm") < order.index("add"), "without a value is last either way"


@pytest.mark.parametrize(
    ("device", "dtype", "cells"),
    [
        ("Some GPU", "c10::BFloat16", ["57.3", "", "", "", "", "–"]),
        (H100, "float", ["57.3", "12–86 %", "5.8 %", "12–86 %", "100.0 %", "–"]),
    ],
)
async def test_what_cannot_be_told_is_not_guessed(
    tmp_path: Path, device: str, dtype: str, cells: list[str]
) -> None:
    async with open_app(
        write_products(tmp_path / "a.json", device, dtype, 300_000), size=(220, 40)
    ) as user:
        assert (await cells_of(user))["gemm"] == cells


def test_a_table_without_shapes_has_no_such_columns() -> None:
    assert not {*KEYS} & {head.key for head in TopColumns().heads}
    fitting = TopColumns(order="own", sized=True, rated=True).fitting(80)
    assert [head.key for head in fitting] == ["own", "total", "share", "bound_share", "rated_share"]
    unrated = [head.key for head in TopColumns(order="own", sized=True).fitting(80)]
    assert "tflops" in unrated and not {*KEYS[1:]} & {*unrated}, "no empty columns without a peak"
