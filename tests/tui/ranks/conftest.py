"""A summary of eight ranks: one is slow in `mlp`, one has a kernel of its own; a ninth is lost.

Their waiting was measured, or they were summed up apart, so that nobody did.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from flame.core.loading.many import load
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary import LostRank, RankSummary
from flame.core.rank_summary.summary_file import pack_summary
from flame.core.ranks.communication.summary_waits import with_waits
from flame.core.ranks.communication.waits import RankWaits, waits_of
from flame.core.ranks.summarise import summarise
from tests.support.ranks.rank_traces import RankRun, write_ranks

RANKS, SLOW, ODD = 8, 5, 3
LOST = LostRank("runs/rank0008.sqlite", "the file is cut off")


class Eight(NamedTuple):
    """The ranks as they were merged, what their collectives say, and the truth."""

    merged: RankSummary
    waits: list[RankWaits]
    run: RankRun


@pytest.fixture(scope="session")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Eight:
    folder = tmp_path_factory.mktemp("ranks")
    run = write_ranks(folder / "runs", RANKS, steps=3, layers=2, straggler=SLOW, odd=ODD)
    parts = [summarise(load(path), path) for path in run.paths]
    merged = merge_summaries([part.summary for part in parts])
    info = tuple(
        msgspec.structs.replace(one, path=f"runs/rank{one.rank:04}.sqlite") for one in merged.info
    )
    merged = replace(merged, info=info, lost=(LOST,))
    arrivals = [one for part in parts for one in part.arrivals]
    return Eight(merged, [waits_of(one, merged.collectives, RANKS) for one in arrivals], run)


@pytest.fixture(scope="session")
def eight_ranks(eight: Eight) -> RankSummary:
    return with_waits(eight.merged, eight.waits)


@pytest.fixture
def summary_file(eight_ranks: RankSummary, tmp_path: Path) -> Path:
    return written(eight_ranks, tmp_path)


def written(summary: RankSummary, folder: Path) -> Path:
    path = folder / "run.flamesum"
    path.write_bytes(pack_summary(summary))
    return path
