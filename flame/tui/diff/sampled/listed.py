"""Find the kernel whose instructions are listed of both sides of a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from flame.core.compare.sides import BASE, NEW, SIDES
from flame.core.model.profile import Profile
from flame.tui.diff.sampled.own_groups import OwnPlaces, Places
from flame.tui.diff.session import DiffProjection
from flame.tui.sampling.subject import Spot, Subject, spot_of, subject_below
from flame.tui.sass.sides import ListedSide
from flame.tui.toolkit.text import printable


def listed_sides(shown: DiffProjection, places: Places) -> tuple[ListedSide, ...] | str:
    """Find the kernel at ``places``, first on NEW, or where that has no samples on BASE.

    Of several runs of a side it is the first. Returns why there is none where neither side has any.
    """
    sides = shown.comparison.sides
    own = [OwnPlaces.of(shown, places, sides.side_of_run.index(at)) for at in (NEW, BASE)]
    found = [subject_below(one.alone, one.groups()) for one in own]
    known = [one for one in found if isinstance(one, Subject)]
    if not known:
        return str(found[0])
    first = found.index(known[0])
    order = [(SIDES[NEW], own[0]), (SIDES[BASE], own[1])]
    return tuple(_listed(known[0], order[first:] + order[:first]))


def _listed(first: Subject, order: list[tuple[str, OwnPlaces]]) -> Iterator[ListedSide]:
    """The kernel of ``first`` on each side, the one that it was found on being the first."""
    for name, own in order:
        subject = subject_below(own.alone, own.groups(), first.name)
        if isinstance(subject, str) or subject.name != first.name:
            yield ListedSide(_without_samples(first), Spot(0, 0), "", name)
        else:
            spot = spot_of(own.alone, subject, own.tree, int(own.nodes[0]))
            yield ListedSide(subject, spot, _report(own.alone.profile), name)


def _without_samples(subject: Subject) -> Subject:
    return Subject(subject.name, -1, (), subject.metric, 0, 0, 0, exact=False, others=0)


def _report(profile: Profile) -> str:
    """The reports of Nsight Compute that are among what was loaded."""
    paths = [source.meta.path for source in profile.sources if source.meta.format == "ncu"]
    return printable(", ".join(Path(path).name for path in paths))
