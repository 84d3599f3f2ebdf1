"""Random walks through summaries of ranks: whatever is typed, the app holds."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary_file import pack_summary
from flame.tui.shell.commands import RANKS_COMMANDS
from tests.support.ranks.random_ranks import random_summary
from tests.tui.conftest import User, open_app
from tests.tui.monkey import SIZES, Monkey, leave, stay
from tests.tui.monkey import _elsewhere as _elsewhere

pytestmark = pytest.mark.deep


class RanksMonkey(Monkey):
    """Presses the keys of summaries, those that are of nothing else more often."""

    def __init__(self, user: User, seed: str) -> None:
        super().__init__(user, seed)
        bound = [key for one in RANKS_COMMANDS for key in one.keys.split(",") if key]
        self.keys = [*(key for key in bound if key not in ("q", "o")), *"rOpvsrOpvsRzZ"]


async def walk(path: Path, seed: int, steps: int) -> None:
    place = f"{path.name} {seed}"
    async with open_app(path, Random(place).choice(SIZES)) as user:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(user.app, "action_quit", stay)
            await RanksMonkey(user, place).walk(steps)
        await leave(user)
    assert user.app.crash is None and user.app.failure is None


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_typed_into_eight_ranks(summary_file: Path, seed: int) -> None:
    await walk(summary_file, seed, 40)


@pytest.mark.parametrize("ranks", [1, 2, 70])
async def test_whatever_is_typed_into_odd_ranks(tmp_path: Path, ranks: int) -> None:
    path = tmp_path / "odd.flamesum"
    parts = [random_summary(ranks, rank) for rank in range(ranks)]
    path.write_bytes(pack_summary(merge_summaries(parts)))
    await walk(path, ranks, 40)
