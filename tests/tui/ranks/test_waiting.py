"""What is said of how ranks came to collectives."""

from __future__ import annotations

import numpy as np
import pytest

from flame.core.loading.many import load
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.rank_waits import UNKNOWN
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.summarise import summarise
from flame.core.units import format_ns
from flame.tui.ranks.waiting import waiting_of
from tests.tui.ranks.conftest import RANKS, SLOW, Eight

LABELS = tuple(f"rank {rank}" for rank in range(RANKS))


def test_who_is_late_is_told_by_what_ranks_caused(eight: Eight, eight_ranks: RankSummary) -> None:
    waiting, run = waiting_of(eight_ranks), eight.run
    assert waiting.caused is not None and waiting.waited is not None
    assert waiting.matched == run.collectives and waiting.by_step and not waiting.note_of_steps
    assert np.abs(waiting.waited - run.waits).max() <= 2 * run.collectives
    assert int(waiting.caused.sum()) == int(waiting.waited.sum())
    assert [at for at in range(RANKS) if waiting.is_late(at)] == [SLOW]
    (told,) = waiting.late_words(LABELS)
    caused = format_ns(int(waiting.caused[SLOW]))
    assert told.startswith(f"rank {SLOW}: others wait {caused} for it, ")
    assert f"last to {run.last[SLOW]} of {run.collectives} collectives, late by GPU work" in told
    for at, last in enumerate(run.last):
        words = dict(waiting.rows(at))
        assert words["waits"].startswith(f"{format_ns(int(waiting.waited[at]))} itself")
        assert words["others wait"].startswith("never") == (last == 0)


def test_clocks_are_compared_with_the_one_that_is_ahead(
    eight: Eight, eight_ranks: RankSummary
) -> None:
    clocks = eight.run.clocks
    ahead = clocks.index(max(clocks))
    waiting = waiting_of(eight_ranks)
    for at, clock in enumerate(clocks):
        words = dict(waiting.rows(at))["clock"]
        behind = f"{format_ns(clocks[ahead] - clock)} behind that of rank {ahead}, "
        assert words.startswith("ahead of all, to within" if at == ahead else behind)


def test_ranks_summed_up_apart_waited_as_long_but_nobody_knows_in_which_step(eight: Eight) -> None:
    apart = waiting_of(eight.merged)
    assert apart.waited is not None
    assert apart.waited.tolist() == [one.wait for one in eight.waits]
    assert apart.note_of_steps and not apart.by_step


@pytest.mark.deep
def test_of_two_files_of_one_rank_nothing_is_said(eight: Eight) -> None:
    again = summarise(load(eight.run.paths[0]), "elsewhere/rank0000.sqlite").summary
    waiting = waiting_of(merge_summaries([eight.merged, again]))
    if waiting.caused is not None:
        assert waiting.caused[:2].tolist() == [UNKNOWN, UNKNOWN]
    assert "not known" in dict(waiting.rows(0))["waiting"]
