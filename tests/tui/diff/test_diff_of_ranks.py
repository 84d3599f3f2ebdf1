"""The app on two summaries of ranks: colours beyond their spread, and what ranks have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flame.core.analysis.distribution import distribution
from flame.core.compare.amounts import Amounts
from flame.core.compare.comparison import compare
from flame.core.compare.over_ranks.rank_samples import rank_values
from flame.core.projection.selection import Selection, select
from flame.core.rank_summary.summary_file import pack_summary
from flame.core.ranks import spread
from flame.tui.diff.facts import side_facts
from flame.tui.diff.rank_facts import rank_facts, spread_lines, worst_lines
from flame.tui.toolkit.lines import Line
from tests.support.generated.compared import node_called
from tests.support.ranks.compared_ranks import rank_parts, sides_of, summed_up
from tests.tui.conftest import USUAL
from tests.tui.diff.opened import chosen, compared, open_diff

SHOWN = chosen(Selection(("kernel",), naming=USUAL.naming))
UP = "sm90_xmma_gemm_mlp_up"


def text_of(line: Line) -> str:
    return "".join(piece.text for piece in line)


def test_ranks_of_a_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = summed_up(rank_parts(tmp_path / "a", 4, 1, steps=2))
    new = summed_up(rank_parts(tmp_path / "b", 5, 2, steps=2, straggler=3))
    found = compare(sides_of(base, new), select(fold=True))
    nodes = np.array([node_called(found, UP), node_called(found, "flash_fwd_kernel")])
    facts = rank_facts(found, nodes)
    monkeypatch.setattr(spread, "_BLOCK", 1)
    few_at_a_time = rank_facts(found, nodes)
    assert few_at_a_time is not None and facts is not None
    assert few_at_a_time.spread == facts.spread
    assert next(iter(side_facts(found, nodes))).ranks is not None
    for at in (0, 1):
        values = rank_values(found, at, nodes).sum(axis=0)
        assert facts.values[at].tolist() == values.tolist()
        assert facts.spread[at] == distribution(values)
    assert facts.worst[1] == 3 and facts.waiting == (0.0, 0.0)
    text = [text_of(line) for line in spread_lines(facts, Amounts("ns", "rank"), 53)]
    assert text[0].split() == ["rank", "min", "median", "p95", "max"]
    assert len(text) == 3 and text[2].startswith("NEW")
    assert any("→ rank 3" in text_of(line) for line in worst_lines(facts, Amounts("ns"), 53))


@pytest.mark.deep
async def test_what_changed_is_coloured_and_explained(tmp_path: Path) -> None:
    paths = []
    for name, straggler in (("before", 3), ("after", None)):
        parts = rank_parts(
            tmp_path / name, 16, len(name), steps=10, straggler=straggler, straggles=1.5
        )
        paths.append(tmp_path / f"{name}.flamesum")
        paths[-1].write_bytes(pack_summary(summed_up(parts)))
    async with open_diff(paths[0], paths[1], (160, 50), SHOWN) as user:
        await user.until(lambda: compared(user).colouring.found)
        await user.settle()
        assert "per rank ▾" in user.read("change")
        assert "beyond the ranks' spread" in user.read("change")
        icicle = user.read("icicle")
        assert "▼ ncclDevKernel" in icicle and "flash" in icicle and "▼ flash" not in icicle
        cursor, wanted = user.screen.shown.view.cursor, node_called(compared(user).comparison, UP)
        await user.press("down")
        while cursor.node != wanted:
            await user.press("right")
        await user.rest()
        details = user.read("details")
        assert UP in details and "changed on the worst rank alone" in details
        assert "worst       rank 3 → rank" in details
        await user.press("p")
        await user.rest()
        assert "in total ▾" in user.read("change")
        await user.press("exclamation_mark")
        await user.rest()
        assert "The ranks, before and after" in user.read("report-list")
