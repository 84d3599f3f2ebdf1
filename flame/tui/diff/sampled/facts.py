"""Collect what PC samples tell of a frame on both sides of a comparison."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.compare.sides import BASE, NEW
from flame.tui.details.sample_facts import SAMPLED, SampledFacts, sampled_below
from flame.tui.diff.sampled.own_groups import OwnPlaces, Places
from flame.tui.diff.session import DiffProjection


class SidesSampled(NamedTuple):
    """Hold the samples of a frame on both sides: None of one that has none there."""

    base: SampledFacts | None
    new: SampledFacts | None


def sampled_on_both(shown: DiffProjection, places: Places) -> SidesSampled | None:
    """Collect the samples at ``places`` of both sides, of each the first run; None without any."""
    tree = shown.view.tree
    if shown.metric.table != "gpu" or tree.kind(int(places.nodes[0])) not in SAMPLED:
        return None
    found = SidesSampled(*(_sampled(shown, places, side) for side in (BASE, NEW)))
    return found if any(found) else None


def _sampled(shown: DiffProjection, places: Places, side: int) -> SampledFacts | None:
    sides = shown.comparison.sides
    run = sides.side_of_run.index(side)
    if sides.runs[run].profile.sampling is None:
        return None
    own = OwnPlaces.of(shown, places, run)
    return sampled_below(own.alone, own.groups(), [*own.parts()])
