"""Write the reasons of samples of both sides of a comparison, one below the other."""

from __future__ import annotations

from collections.abc import Sequence

from flame.core.model.stalls import stall_of
from flame.core.units import format_percent, sign_of
from flame.tui.sampling.reasons import Counted
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut_start, printable

_BASE, _NEW, _POINTS = 7, 8, 7
"""Cells of the columns."""

_LEAST_POINTS = 0.05


def both_reasons(base: Counted, new: Counted, width: int, most: int = 0) -> list[Line]:
    """Write the share that each reason has of both sides' samples, and by how many points it moved.

    Those with the largest share of either side stand first; of more than ``most`` (0: any) the rest
    is counted. A side without samples has no shares.
    """
    sides = dict(base), dict(new)
    sums = tuple(sum(side.values()) for side in sides)
    share = {key: _shares(key, sides, sums) for key in {**sides[0], **sides[1]}}
    order = sorted(share, key=lambda key: (-max(share[key]), key))
    shown = order[:most] if most and len(order) > most + 1 else order
    head = f"{'BASE':>{_BASE}}{'NEW':>{_NEW}}{'points':>{_POINTS}}"
    lines: list[Line] = [[Piece(cut_start(head, width), "dim")]] if order else []
    lines += (_line(key, sides, sums, share[key], width) for key in shown)
    if more := len(order) - len(shown):
        lines.append([Piece(cut_start(f"{'':{_BASE + _NEW + _POINTS}} {more} more", width), "dim")])
    return lines


def _shares(key: str, sides: Sequence[dict[str, int]], sums: Sequence[int]) -> tuple[float, float]:
    """The share of both sides in percent."""
    base, new = (
        100 * side.get(key, 0) / whole if whole else 0.0
        for side, whole in zip(sides, sums, strict=True)
    )
    return base, new


def _line(
    key: str,
    sides: Sequence[dict[str, int]],
    sums: Sequence[int],
    share: tuple[float, float],
    width: int,
) -> Line:
    columns = "".join(
        (format_percent(side.get(key, 0), whole) if whole else "–").rjust(cells)
        for side, whole, cells in zip(sides, sums, (_BASE, _NEW), strict=True)
    )
    moved = share[1] - share[0] if all(sums) else 0.0
    points = f"{sign_of(moved)}{abs(moved):.1f}" if abs(moved) >= _LEAST_POINTS else ""
    title = printable(stall_of(key).title)
    return [Piece(cut_start(f"{columns}{points:>{_POINTS}} {title}", width))]
