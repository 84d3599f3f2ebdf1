"""Hatch the time in which a GPU was idle, by what its next work waited for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from flame.core.analysis.utilization import DeviceGaps
from flame.core.columns import I8, pack, run_starts
from flame.core.model.calls import IdleCause
from flame.core.timeline.gap_causes import GapCauses, GapCells, gap_cells
from flame.core.timeline.lanes import Track
from flame.core.timeline.raster import Grid
from flame.tui.timeline.time_view import TimeView
from flame.tui.toolkit.colours import HATCHES

_AROUND = 2
"""Cells of the hatch that are left on each side of a name."""


class Hatching(NamedTuple):
    """Say what stands in the cells of idle gaps: ``text``, of each ``cause``, and of which ``gap``.

    ``cause`` and ``gap`` (its number) are i8[cells], -1 where there is none.
    """

    cause: I8
    gap: I8
    text: str

    @property
    def unnamed(self) -> Hatching:
        """The same without names."""
        return self._replace(text="".join(map(_hatch, self.cause.tolist())))


def hatchings(view: TimeView, lanes: Sequence[int]) -> dict[int, Hatching]:
    """Hatch those of ``lanes`` that are streams of GPUs; names stand in the first of each GPU."""
    found: dict[int, Hatching | None] = {}
    hatched: dict[int, Hatching] = {}
    for number in lanes:
        lane = view.timeline.lanes[number]
        if lane.track != Track.WORK or lane.level:
            continue
        again = lane.owner in found
        own = found[lane.owner] if again else _of_device(view, lane.owner)
        found[lane.owner] = own.unnamed if own and not again else own
        if own is not None:
            hatched[number] = own
    return hatched


def _of_device(view: TimeView, device: int) -> Hatching | None:
    gaps = next((gaps for gaps in view.gaps.devices if gaps.device == device), None)
    causes = view.causes_of(device)
    if gaps is None or causes is None or causes.unknown:
        return None
    return hatching(gaps, causes, view.viewport.grid, view.timeline.origin)


def hatching(gaps: DeviceGaps, causes: GapCauses, grid: Grid, origin: int) -> Hatching:
    """Hatch ``gaps`` in the cells of ``grid``, whose 0 is ``origin``, with names where they fit."""
    cells = gap_cells(gaps.begin, gaps.end, causes, grid, origin)
    return Hatching(cells.cause, cells.gap, "".join(_runs(cells)))


def _runs(cells: GapCells) -> list[str]:
    """The text of cells that stand together for one cause of one gap."""
    starts = run_starts(pack(cells)).tolist()
    edges = pairwise([*starts, len(cells.cause)])
    return [_run(int(cells.cause[left]), right - left) for left, right in edges]


def _run(cause: int, width: int) -> str:
    hatch = _hatch(cause)
    name = f" {IdleCause(cause).title} " if cause >= 0 else ""
    if not name or len(name) + 2 * _AROUND > width:
        return hatch * width
    return (hatch * _AROUND + name).ljust(width, hatch)


def _hatch(cause: int) -> str:
    return HATCHES[IdleCause(cause)] if cause >= 0 else " "
