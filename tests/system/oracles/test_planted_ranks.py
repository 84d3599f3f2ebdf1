"""Of many ranks those with a planted fault are found, and no others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flame.core.loading.many import load
from flame.core.projection.selection import select
from flame.core.rank_summary.merge import merge_summaries
from flame.core.ranks.rank_sections.of_summary import questions_of
from flame.core.ranks.rank_sections.rank_findings import find_in_ranks
from flame.core.ranks.summarise import summarise
from tests.support.paths import ROOT
from tests.support.ranks.rank_traces import ODD_KERNEL, ODD_TIME, RankRun, write_ranks

pytestmark = pytest.mark.deep

RANKS, STRAGGLER, LATE, ODD = 256, 37, 111, 5
FOLDED = select(kernel_names="short", fold=True, fold_numbers=True)
EVEN = (*((4, seed) for seed in range(14)), *((16, seed) for seed in range(13)))
EVEN_LARGE = tuple((64, seed) for seed in range(7))


def flame(*words: object) -> str:
    command = [sys.executable, "-m", "flame", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RankRun:
    folder = tmp_path_factory.mktemp("run")
    return write_ranks(folder, RANKS, 12, 24, straggler=STRAGGLER, late=LATE, odd=ODD)


@pytest.fixture(scope="module")
def told(run: RankRun) -> dict[str, Any]:
    """What is said of 256 ranks, which are summed up as a user does it."""
    folder = run.paths[0].parent
    summary = folder / "run.flamesum"
    flame("ranks", folder / "*.sqlite", "-o", summary)
    assert summary.stat().st_size <= 4_096 * RANKS
    found: dict[str, Any] = json.loads(flame("ranks", summary, "--json"))
    return found


def test_the_three_that_were_planted_are_found_and_nothing_else(told: dict[str, Any]) -> None:
    found = [(one["id"], one["rank"]) for one in told["findings"]["rows"]]
    assert found == [
        ("late-rank", STRAGGLER),
        ("late-rank", LATE),
        ("outlier", STRAGGLER),
        ("only-some", ODD),
    ]
    claims = [one["claim"] for one in told["findings"]["rows"]]
    assert "late by GPU work" in claims[0] and "step / model.layers.*.mlp" in claims[0]
    assert "late by its host, GPU idle" in claims[1]
    assert claims[2].startswith("step / model.layers.*.mlp: ")


def test_who_was_last_and_what_it_cost_is_the_truth(told: dict[str, Any], run: RankRun) -> None:
    rows = told["late"]["rows"]
    assert [one["rank"] for one in rows if one["finding"]] == [STRAGGLER, LATE]
    assert {one["rank"]: one["last"] for one in rows} == {
        rank: run.last[rank] for rank in (one["rank"] for one in rows)
    }
    error = 2 * run.collectives
    for one in rows:
        assert abs(one["waited_ns"] - run.waits[one["rank"]]) <= error
    assert abs(told["late"]["waiting_ns"] - sum(run.waits)) <= error * RANKS


def test_the_frames_are_those_that_were_planted(told: dict[str, Any]) -> None:
    assert {one["rank"] for one in told["outliers"]["rows"] if one["finding"]} == {STRAGGLER}
    [odd] = told["only_some"]["rows"]
    assert (odd["frame"], odd["ranks"], odd["most"]) == (ODD_KERNEL, str(ODD), ODD_TIME)


@pytest.mark.parametrize(("ranks", "seed"), (*EVEN, *EVEN_LARGE))
def test_nothing_is_found_where_nothing_is(ranks: int, seed: int, tmp_path: Path) -> None:
    """Chance alone is told in one run of a hundred: of these it is in none."""
    run = write_ranks(tmp_path, ranks, 6, 4, 1_000 + seed)
    summary = merge_summaries([summarise(load(path), path).summary for path in run.paths])
    assert find_in_ranks(questions_of(summary, FOLDED)) == []
