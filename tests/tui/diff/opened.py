"""The app on a comparison of two traces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from flame.core.compare.basis import Per
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter
from flame.core.projection.selection import Selection
from flame.options.config import DEFAULTS, Config
from flame.options.state import AppState
from flame.tui.diff.app import DiffApp
from flame.tui.diff.loading import RunInputs, SideInputs
from flame.tui.diff.selection import DiffSelection, diff_selection
from flame.tui.diff.session import DiffProjection
from tests.tui.conftest import USUAL, User, main_screen


def chosen(selection: Selection = USUAL, per: Per = "") -> DiffSelection:
    return diff_selection(selection, per)


@asynccontextmanager
async def open_diff(
    base: Path,
    new: Path,
    size: tuple[int, int] = (120, 40),
    selection: DiffSelection | None = None,
    state: AppState | None = None,
    config: Config = DEFAULTS,
    where: tuple[Filter, ...] = (),
) -> AsyncIterator[User]:
    """The app on both, loaded (or failed); of the base what is ``where``."""
    sides = SideInputs([RunInputs(Inputs((base,)), where)], [RunInputs(Inputs((new,)))])
    async with open_sides(sides, [str(base), str(new)], size, selection, state, config) as user:
        yield user


@asynccontextmanager
async def open_sides(
    sides: SideInputs,
    words: list[str],
    size: tuple[int, int] = (120, 40),
    selection: DiffSelection | None = None,
    state: AppState | None = None,
    config: Config = DEFAULTS,
) -> AsyncIterator[User]:
    """The app on runs of both sides, which ``words`` name on the command line."""
    app = DiffApp(sides, LoadOptions(), selection or chosen(), words, state, config)
    async with app.run_test(size=size) as pilot:
        user = User(app, pilot)
        await user.until(lambda: app.failure or main_screen(app))
        await user.settle()
        yield user


def compared(user: User) -> DiffProjection:
    shown = user.screen.shown
    assert isinstance(shown, DiffProjection)
    return shown
