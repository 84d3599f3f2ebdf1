"""How near frames are to the peak of the GPU, in the top table: known, or empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.tui.views.top_columns import OF_WORK, Columns
from flame.tui.views.top_pane import TopPane
from tests.support.worked import H100, product
from tests.support.writers.kinetofile import KinetoFile
from tests.tui.conftest import User, open_app

KEYS = [head.key for head in OF_WORK]


def products(path: Path, device: str, dtype: str = "c10::BFloat16") -> Path:
    """Three products of 20 µs, which need 17.4 at the peak, and a kernel of 15 µs that is none."""
    file = KinetoFile()
    file.device(0, device)
    for number in range(4):
        at = 1000 + 70_000 * number
        name = "aten::mm" if number else "aten::add"
        file.op(name, at, at + 900, **product(4096, 1024, 2048, dtype))
        file.runtime(number + 1, at + 10, at + 20)
        kernel, ns = ("gemm", 20_000) if number else ("add", 15_000)
        file.kernel(kernel, at + 1000, at + 1000 + ns, number + 1)
    return file.write(path)


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
    async with open_app(products(tmp_path / "a.json", H100), size=(220, 40)) as user:
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
        ("Some GPU", "c10::BFloat16", ["859", "", "", "", "", "–"]),
        (H100, "float", ["859", "174–1284 %", "87.6 %", "174–1284 %", "100.0 %", "–"]),
    ],
)
async def test_what_cannot_be_told_is_not_guessed(
    tmp_path: Path, device: str, dtype: str, cells: list[str]
) -> None:
    async with open_app(products(tmp_path / "a.json", device, dtype), size=(220, 40)) as user:
        assert (await cells_of(user))["gemm"] == cells


def test_a_table_without_shapes_has_no_such_columns() -> None:
    assert not {*KEYS} & {head.key for head in Columns().heads}
    fitting = Columns(order="own", sized=True).fitting(80)
    assert [head.key for head in fitting] == ["own", "total", "share", "bound_share", "rated_share"]
