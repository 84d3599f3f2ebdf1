"""Work out and write what ranks have of a frame on both sides: their spread, and their waiting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import Distribution, distribution
from flame.core.columns import I8
from flame.core.compare.amounts import Amounts
from flame.core.compare.comparison import Comparison
from flame.core.compare.over_ranks.rank_samples import rank_samples, ranks_of_side, why_no_spread
from flame.core.compare.over_ranks.waiting import waiting_changes
from flame.core.compare.sides import BASE, NEW
from flame.core.ranks.spread import blocks
from flame.tui.toolkit.fields import fields
from flame.tui.toolkit.lines import Line, Piece

_NUMBERS = ("min", "median", "p95", "max")


class DiffRankFacts(NamedTuple):
    """Say how a frame is spread over ranks on both sides, on the basis of the comparison.

    ``values`` are those of the ranks of each side, i8[ranks], ``worst`` the number of the first
    rank with the most, None where nobody has anything. ``waiting`` is the mean of both sides, None
    where that is not known.
    """

    values: tuple[I8, I8]
    spread: tuple[Distribution, Distribution]
    worst: tuple[int | None, int | None]
    waiting: tuple[float, float] | None


def rank_facts(comparison: Comparison, nodes: I8) -> DiffRankFacts | None:
    """Work out the facts of ``nodes`` of the union together; None where ranks tell nothing."""
    if why_no_spread(comparison):
        return None
    base, new = _summed(comparison, nodes)
    of_base, of_new = distribution(base), distribution(new)
    if of_base is None or of_new is None:
        return None
    worst = _worst(comparison, BASE, base), _worst(comparison, NEW, new)
    return DiffRankFacts((base, new), (of_base, of_new), worst, _waiting(comparison, nodes))


def _summed(comparison: Comparison, nodes: I8) -> tuple[I8, I8]:
    """What the ranks of both sides have of ``nodes`` together, a few of these at a time."""
    ranks = max(len(ranks_of_side(comparison, side)) for side in (BASE, NEW))
    found = [rank_samples(comparison, some) for some in blocks(nodes, ranks)]
    base, new = (np.sum([one[side].sum(axis=0) for one in found], axis=0) for side in (BASE, NEW))
    return np.rint(base).astype(np.int64), np.rint(new).astype(np.int64)


def _worst(comparison: Comparison, side: int, values: I8) -> int | None:
    at = int(values.argmax())
    return int(ranks_of_side(comparison, side)[at]) if values[at] else None


def _waiting(comparison: Comparison, nodes: I8) -> tuple[float, float] | None:
    waits = waiting_changes(comparison)
    if waits is None:
        return None
    return float(waits.base.value[nodes].sum()), float(waits.new.value[nodes].sum())


def spread_lines(facts: DiffRankFacts, amounts: Amounts, width: int) -> list[Line]:
    """Write the least, the median and the most of the ranks of both sides."""
    cell = min(max((width - 5) // len(_NUMBERS), 7), 12)
    head = "rank " + "".join(name.rjust(cell) for name in _NUMBERS)
    lines: list[Line] = [[Piece(head, "dim")]]
    for label, found in zip(("BASE", "NEW"), facts.spread, strict=True):
        values = (found.minimum, found.p50, found.p95, found.maximum)
        texts = (_short(amounts.value(float(value)), cell) for value in values)
        row = "".join(text.rjust(cell) for text in texts)
        lines.append([Piece(f"{label:5}", "dim"), Piece(row)])
    return lines


def _short(text: str, cell: int) -> str:
    return text.replace(" ", "") if len(text) >= cell else text


def worst_lines(facts: DiffRankFacts, amounts: Amounts, width: int) -> list[Line]:
    """Write which ranks have the most, and how long ranks wait."""
    worst = ["–" if rank is None else f"rank {rank}" for rank in facts.worst]
    rows = [("worst", worst[0] if worst[0] == worst[1] else " → ".join(worst))]
    if facts.waiting is not None and any(facts.waiting):
        rows.append(("waiting", " → ".join(map(amounts.value, facts.waiting))))
    return fields(rows, width)
