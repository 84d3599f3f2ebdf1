"""Conditions on two summaries of ranks: what they tell is decided beyond the ranks' spread."""

from __future__ import annotations

import json

import pytest

from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.gate.decide import DiffDecision, as_facts, decide
from flame.core.compare.gate.terms import read_condition
from flame.core.projection.selection import select
from tests.support.ranks.compared_ranks import rank_parts, sides_of, summed_up

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Twice as many steps, and a kernel that takes 20 % longer on all ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    base = rank_parts(folder / "base", 6, 1, steps=8)
    new = rank_parts(folder / "new", 6, 2, steps=8, slower={"flash_fwd_kernel": 1.2})
    return compare(sides_of(summed_up(base), summed_up(new)), select(fold=True))


def decided(comparison: Comparison, text: str) -> DiffDecision:
    return decide(comparison, read_condition(text))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('frame("flash").total > +10%', True),
        ('frame("flash").total > +16.5%', None),  # within the ranks' spread, and 2 %
        ('frame("flash").total > +19%', None),
        ('frame("flash").total > +30%', False),
        ('frame("flash").count > +0', False),
        ('frame("flash").mean > +10%', True),
        ('frame("gemm_qkv").total > +10%', False),
        ("gpu_time > +20%", False),
        ("gpu_time > 1ms", True),
        ("kernels > +0", False),
        ("kernels >= 144", True),  # 8 steps of 2 layers of 9, of each rank
        ("kernels >= 145", False),
        ("step.p50 > +20%", False),
        ("step.max > 100us", True),
        ("findings.high > 0", False),
        ("idle > 1%", None),
        ("launches > +0", None),
        ('new("RE") > 0', False),
    ],
)
def test_what_ranks_decide(slower: Comparison, text: str, holds: bool | None) -> None:
    assert decided(slower, text).holds is holds


def test_why_it_is_not_decided(slower: Comparison) -> None:
    (idle,) = decided(slower, "idle > 1%").undecided
    assert idle.why == "a summary of ranks does not tell it"
    (close,) = decided(slower, 'frame("flash").total > +19%').undecided
    assert close.why.startswith("ranks of one run differ by ± ")


def test_the_last_line_says_what_it_is_known_from(slower: Comparison) -> None:
    text = 'frame("flash").total > +10%'
    facts = json.loads(json.dumps(as_facts(text, slower, decided(slower, text))))
    assert (facts["evidence"], facts["n"]) == ("ranks", [6, 6])
    values = facts["values"]['frame("flash").total']
    low, high = values["interval_percent"]
    assert 10 < low < values["change_percent"] < high < 30
    assert facts["top"][0]["path"][-1] == "flash_fwd_kernel"
