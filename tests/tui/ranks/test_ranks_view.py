"""The view of ranks step by step: how it is sorted, what it measures, what it leads to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.rank_summary.collective_table import no_collectives
from flame.core.rank_summary.rank_communication import no_communication
from flame.core.rank_summary.summary import RankSummary
from flame.core.units import format_ns
from flame.tui.ranks.heat_map import HeatMap
from tests.tui.conftest import open_app
from tests.tui.ranks.conftest import RANKS, SLOW, Eight, written
from tests.tui.ranks.reading import hint, lines, ranks_in, shown


async def test_the_ranks_are_shown_step_by_step(summary_file: Path, eight: Eight) -> None:
    async with open_app(summary_file, (120, 40)) as user:
        await user.press("p")
        await user.rest()
        assert user.screen.pane_name == "ranks"
        assert "caused▾ own work ▾" in user.read("ranks-head")
        by_caused, never = ranks_in(user), [at for at in range(RANKS) if not eight.run.last[at]]
        assert by_caused[0] == SLOW and by_caused[-len(never) :] == never
        assert hint(user).startswith(f"rank {SLOW} · step 0 · ")
        about = user.read("rank-about")
        assert f"last to {eight.run.last[SLOW]} of {eight.run.collectives} collectives" in about
        assert f"a: flame view runs/rank000{SLOW}.sqlite" in about and "by step" not in about
        await user.press("end", "right")
        assert hint(user).startswith(f"rank {never[-1]} · step 1 · ")
        assert "others wait never: last to none of" in user.read("rank-about")
        await user.press("s")
        assert "rank▾" in user.read("ranks-head") and ranks_in(user) == [*range(RANKS)]
        await user.press("s")
        assert "off▾" in user.read("ranks-head") and ranks_in(user)[0] == SLOW
        await user.press("s")
        assert ranks_in(user) == by_caused
        await user.press("enter")
        assert shown(user).places == (SLOW,) and user.screen.pane_name == "icicle"


@pytest.mark.deep
async def test_all_measures_of_the_ranks_are_shown_in_turn(
    summary_file: Path, eight_ranks: RankSummary
) -> None:
    waits = eight_ranks.waits
    assert waits is not None
    async with open_app(summary_file, (160, 40)) as user:
        await user.press("p")
        await user.rest()
        for title in ("own work", "step time", "wait in collectives", "work between collectives"):
            assert f"{title} ▾" in user.read("ranks-head")
            if title.startswith("wait"):
                wait = format_ns(int(waits.step_wait[3 * SLOW]))
                assert f"rank {SLOW} · step 0 · {wait}  −" in hint(user)
                assert " of the step  median " in hint(user)
                assert "as a part of the step" in user.read("ranks-head")
            await user.press("v")
            await user.press("home")
        assert "wait in collectives, whole run ▾" in user.read("ranks-head")
        assert f"{format_ns(int(waits.wait[SLOW]))} " in lines(user, "heat-map")[0]


@pytest.mark.deep
async def test_waiting_that_nobody_measured_is_said_to_be_unknown(
    eight: Eight, tmp_path: Path
) -> None:
    async with open_app(written(eight.merged, tmp_path), (120, 40)) as user:
        await user.press("p")
        await user.rest()
        assert ranks_in(user)[0] == SLOW
        assert "by step     not known: ranks were summed up apart" in user.read("rank-about")
        await user.press("v", "v")
        assert "work between collectives ▾" in user.read("ranks-head")


@pytest.mark.deep
async def test_without_collectives_nothing_is_said_of_waiting(eight: Eight, tmp_path: Path) -> None:
    table, found = no_collectives(), no_communication()
    summary = replace(eight.merged, collectives=table, communication=found, waits=None)
    async with open_app(written(summary, tmp_path), (120, 40)) as user:
        await user.rest()
        assert " late" not in user.read("header")
        await user.press("p")
        await user.rest()
        assert "caused" not in user.read("ranks-head") and "rank▾" in user.read("ranks-head")
        assert ranks_in(user) == [*range(RANKS)]
        assert "waiting     not known: no collectives were recorded" in user.read("rank-about")
        for _ in range(6):
            await user.press("v")
            assert "wait" not in user.read("ranks-head")


@pytest.mark.deep
async def test_ranks_are_searched_by_number_and_by_name(summary_file: Path) -> None:
    async with open_app(summary_file, (120, 40)) as user:
        await user.press("p")
        await user.rest()
        await user.press("/", "3", "enter")
        assert hint(user).startswith("rank 3 · step 0")
        await user.press("/", *"rank000", "enter")
        assert f"{RANKS} ranks are called that" in user.read("status")
        await user.press("/", "9", "9", "enter")
        assert "no rank is called 99" in user.read("status")
        await user.press("escape")
        assert user.screen.pane_name == "ranks" and hint(user).startswith("rank ")


@pytest.mark.deep
async def test_a_double_click_on_a_rank_shows_it_alone(summary_file: Path) -> None:
    async with open_app(summary_file) as user:
        await user.press("p")
        await user.rest()
        fourth, sixth = ranks_in(user)[4], ranks_in(user)[6]
        await user.pilot.click(HeatMap, offset=(44, 4))
        await user.settle()
        assert f"rank {fourth} · step" in user.read("status")
        await user.pilot.click(HeatMap, offset=(44, 6), times=2)
        await user.rest()
        assert shown(user).places == (sixth,)
