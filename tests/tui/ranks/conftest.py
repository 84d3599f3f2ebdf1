"""A summary of eight ranks: one is slow in `mlp`, one has a kernel of its own; a ninth is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from flame.core.loading.many import load
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary import LostRank, RankSummary
from flame.core.rank_summary.summary_file import pack_summary
from flame.core.ranks.summarise import summarise
from tests.support.rank_traces import write_ranks

RANKS, SLOW, ODD = 8, 5, 3
LOST = LostRank("runs/rank0008.sqlite", "the file is cut off")


@pytest.fixture(scope="session")
def eight_ranks(tmp_path_factory: pytest.TempPathFactory) -> RankSummary:
    folder = tmp_path_factory.mktemp("ranks")
    run = write_ranks(folder / "runs", RANKS, steps=3, layers=2, straggler=SLOW, odd=ODD)
    parts = [summarise(load(path), path).summary for path in run.paths]
    merged = merge_summaries(parts)
    info = tuple(
        msgspec.structs.replace(one, path=f"runs/rank{one.rank:04}.sqlite") for one in merged.info
    )
    return replace(merged, info=info, lost=(LOST,))


@pytest.fixture
def summary_file(eight_ranks: RankSummary, tmp_path: Path) -> Path:
    path = tmp_path / "run.flamesum"
    path.write_bytes(pack_summary(eight_ranks))
    return path
