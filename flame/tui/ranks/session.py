"""Hold a summary of ranks, and project all of them together or some of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace

from flame.core.errors import NoMatchError, UsageError
from flame.core.frame import EFFICIENCY, IMBALANCE
from flame.core.lazy_dataclass import dataclass
from flame.core.loading.inputs import Inputs
from flame.core.model.meta import Source
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter, Ranks
from flame.core.projection.selection import Selection
from flame.core.rank_summary.opened import rank_labels, summary_of
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.node_spread import spread_of_nodes
from flame.tui.ranks.imbalance import Imbalance, against_median
from flame.tui.session.carry import same_frame
from flame.tui.session.node_colours import NodeColours
from flame.tui.session.session import Projection, Session, prepared
from flame.tui.toolkit.text import printable


@dataclass(frozen=True, eq=False)
class RanksProjection(Projection):
    """Show ranks of a ``summary``: those at ``places``, or all together where that is None.

    ``whole`` is the same of all together, where some are shown; None where it is this one, or
    where nothing is left of all.
    """

    summary: RankSummary = field(kw_only=True, repr=False)
    places: tuple[int, ...] | None = None
    whole: RanksProjection | None = field(default=None, repr=False)

    @property
    def of_all(self) -> RanksProjection:
        """The projection of all ranks together."""
        return self.whole or self

    @property
    def can_compare(self) -> bool:
        """Whether frames have the sums of all ranks, so that these can be set side by side."""
        all_ranks = self.of_all
        return all_ranks.places is None and "rank" not in all_ranks.view.tree.levels

    def frame_as_in(self, before: Projection, frame: int) -> int:
        return same_frame(before.view.tree, frame, self.view.tree)


@dataclass(frozen=True)
class RanksSession(Session):
    """Hold a ``summary`` of one rank at least, of which ``profile`` is made."""

    summary: RankSummary = field(kw_only=True)

    @property
    def sources(self) -> Sequence[Source]:
        """The file of each rank."""
        return self.profile.ranks.sources if self.profile.ranks is not None else ()

    def _projected(self, selection: Selection) -> RanksProjection:
        if selection.colours == EFFICIENCY:
            raise UsageError(f"--colours {EFFICIENCY}: not of a summary of ranks")
        plain = super()._projected(replace(selection, colours="level"))
        places = self.places_of(selection.where)
        whole = None if places is None else self._whole(selection)
        shown = RanksProjection(
            selection,
            plain.view,
            plain.recorded,
            plain.profile,
            plain.folds_numbers,
            summary=self.summary,
            places=places,
            whole=whole,
        )
        return self._coloured(shown)

    def _recoloured(self, selection: Selection) -> RanksProjection | None:
        kept = super()._recoloured(selection)
        return self._coloured(kept) if isinstance(kept, RanksProjection) else None

    def _coloured(self, shown: RanksProjection) -> RanksProjection:
        """The same in the colours that it asks for."""
        if shown.selection.colours != IMBALANCE or not shown.can_compare:
            return shown
        return replace(shown, view=prepared(shown.view.tree, self._colours(shown)))

    def _colours(self, shown: RanksProjection) -> NodeColours:
        """Colour by how far all ranks are apart, or how far those that are shown are from all."""
        tree, whole = shown.view.tree, shown.of_all.view.tree
        found = spread_of_nodes(self.summary, whole)
        if shown.places is None:
            return Imbalance(tree, found, labels_of(self.summary))
        return against_median(tree, len(shown.places), whole, found)

    def _whole(self, selection: Selection) -> RanksProjection | None:
        """The same of all ranks together; from what is kept, if it is there."""
        where = without_ranks(selection.where)
        try:
            whole = self.project([replace(selection, where=where, colours="level")])
        except NoMatchError:
            return None
        assert isinstance(whole, RanksProjection)
        return whole

    def places_of(self, where: Sequence[Filter]) -> tuple[int, ...] | None:
        """Find the ranks that ``where`` chooses; None of all."""
        filters = [one for one in where if isinstance(one, Ranks)]
        if not filters:
            return None
        known = enumerate(self.sources)
        return tuple(at for at, one in known if all(each.fits(one) for each in filters))

    def rank_filter(self, place: int) -> Ranks:
        """Choose the rank at ``place``, and no other."""
        number = self.summary.info[place].rank
        numbers = self.summary.rank
        if int((numbers == number).sum()) == 1:
            return Ranks((str(number),))
        return Ranks((re.sub(r"[*?\[\],]", "?", rank_labels(self.summary)[place]),))


def labels_of(summary: RankSummary) -> tuple[str, ...]:
    """Label the ranks of ``summary``, in printable text: files may be called whatever they like."""
    return tuple(map(printable, rank_labels(summary)))


def without_ranks(where: Sequence[Filter]) -> tuple[Filter, ...]:
    """Return the filters of ``where`` that do not choose ranks."""
    return tuple(one for one in where if not isinstance(one, Ranks))


def session_of(
    inputs: Inputs, profile: Profile, metrics: tuple[str, ...], options: LoadOptions
) -> Session:
    """Make the session of a trace, or of a summary of ranks."""
    summary = summary_of(profile)
    if summary is None or not len(summary):
        return Session(inputs, profile, metrics, options)
    return RanksSession(inputs, profile, metrics, options, summary=summary)
