"""The header says how near the GPUs were to their peak, where there is room, and never guesses."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.projection.filters import Kernel
from flame.core.projection.selection import Selection
from flame.tui.session.session import project
from tests.support.generated.worked import write_products
from tests.tui.conftest import open_app

SHARE = "87 % of BF16 peak over 80 % of kernel time"


@pytest.mark.parametrize(("width", "there"), [(200, True), (80, False)])
async def test_the_header_has_it_where_there_is_room(
    tmp_path: Path, width: int, there: bool
) -> None:
    async with open_app(write_products(tmp_path / "a.json"), size=(width, 40)) as user:
        await user.until(lambda: user.screen.shown.headline_now() is not None)
        await user.rest()
        assert (SHARE in user.read("header")) == there


def test_it_is_of_what_is_shown(tmp_path: Path) -> None:
    profile = load(write_products(tmp_path / "a.json"))
    assert project(profile, Selection()).headline() == SHARE
    alone = project(profile, Selection(where=(Kernel("gemm"),)))
    assert alone.headline() == "87 % of BF16 peak over 100 % of kernel time"
    assert not project(profile, Selection(metric="host")).headline()
    unknown = load(write_products(tmp_path / "b.json", "Some GPU"))
    assert not project(unknown, Selection()).headline()
