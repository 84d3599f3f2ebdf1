"""The app colours by size until it knows what is beyond noise, and says what it knows."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from flame.core.compare.comparison import Comparison
from flame.core.compare.noise.beyond_noise import BeyondNoise, find_beyond_noise
from flame.core.projection.selection import Selection
from flame.tui.diff import screen
from flame.tui.diff.screen import DiffScreen
from flame.tui.main.screen import MainScreen
from tests.core.compare.noise.test_beyond_noise import steps
from tests.support.generated.compared import write_steps
from tests.support.waiting import PATIENCE
from tests.tui.conftest import USUAL
from tests.tui.diff.opened import chosen, compared, open_diff

SHOWN = chosen(Selection(("nvtx", "kernel"), naming=USUAL.naming))


@pytest.fixture
def traces(tmp_path: Path) -> tuple[Path, Path]:
    base, new = tmp_path / "before.sqlite", tmp_path / "after.sqlite"
    write_steps(base, steps(0, 1.0, "gelu"))
    write_steps(new, steps(1, 1.2, "relu"))
    return base, new


async def test_colours_are_by_size_until_noise_is_known(
    traces: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Event()

    def find_later(comparison: Comparison) -> BeyondNoise:
        assert known.wait(PATIENCE)
        return find_beyond_noise(comparison)

    monkeypatch.setattr(screen, "find_beyond_noise", find_later)
    monkeypatch.setattr(DiffScreen, "busy", MainScreen.busy)  # or nobody waits for it
    async with open_diff(*traces, (160, 40), SHOWN) as user:
        assert "colour: total, over 5 % ▾" in user.read("change")
        assert "▼ softmax" in user.read("icicle") and "▲ gemm" in user.read("icicle")
        assert "evidence    …" in user.read("details")
        number, node = user.screen.view.number, user.screen.view.cursor.node
        known.set()
        await user.until(lambda: compared(user).colouring.found)
        await user.settle()
        assert "colour: total, beyond noise ▾" in user.read("change")
        icicle = user.read("icicle")
        assert "▲ gemm" in icicle and "softmax" in icicle and "▼ softmax" not in icicle
        assert (user.screen.view.number, user.screen.view.cursor.node) == (number, node)
        await user.press("V")
        assert "▼ softmax" in user.read("icicle") and "total, all ▾" in user.read("change")


@pytest.mark.deep
async def test_the_table_and_the_details_say_what_is_known(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, (240, 40), SHOWN) as user:
        await user.press("tab", "tab")
        rows = {line.split()[-1]: line for line in user.read("table").splitlines() if line}
        said = {name: row.split()[-3] for name, row in rows.items()}
        assert (said["gemm"], said["softmax"]) == ("changed", "unclear")
        assert (said["bias"], said["norm"]) == ("same", "small")
        await user.press(*7 * ["greater_than_sign"])
        assert "sorted by evidence" in user.read("status")
        assert user.read("table").splitlines()[0].split()[-1] == user.selected
        await user.rest()
        details = " ".join(user.read("details").split())
        assert "evidence changed beyond noise: 10 steps each chance <0.1 %" in details
        assert "NEW > BASE in 100 of 100 pairs 95 % within +" in details
        await user.press("x")
        await user.rest()
        assert details[details.index("evidence") :] in " ".join(user.read("details").split())


@pytest.mark.deep
async def test_another_comparison_is_tested_anew(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, (160, 40), SHOWN) as user:
        first = compared(user).colouring.found
        await user.press("D")
        assert compared(user).colouring.found is first is not None
        await user.press("p")
        await user.rest()
        assert compared(user).colouring.found not in (None, first)
        await user.press("z", "z")
        assert compared(user).colouring.found is first


@pytest.mark.deep
async def test_a_low_screen_says_it_in_a_word(traces: tuple[Path, Path]) -> None:
    async with open_diff(*traces, (120, 24), SHOWN) as user:
        assert "same within limits" not in user.read("details")
        user.screen.shown.view.cursor.select(1)
        await user.press("down")
        await user.rest()
        assert "changed beyond noise" in user.read("details")
