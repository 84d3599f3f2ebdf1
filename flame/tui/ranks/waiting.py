"""Say how ranks came to their collectives: how long others waited for each, and it for others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from flame.core.columns import I8, Bool, distinct
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.rank_summary.rank_waits import UNKNOWN
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.communication.clocks import RankClocks
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.rank_sections.of_summary import clocks_of_summary, late_ranks, why_not_late
from flame.core.ranks.rank_sections.questions import LateRanks
from flame.core.ranks.rank_sections.rank_findings import late_places, why_late
from flame.core.ranks.spread import nearest_rank
from flame.core.units import format_count, format_counted, format_ns, format_percent

_NOT_BY_STEP = "not known: ranks were summed up apart; flame ranks of all traces measures it"


@dataclass(frozen=True, eq=False)
class Waiting:
    """Hold what is known of the ``matched`` collectives of a summary.

    ``late`` is None where none is matched: then ``why`` says why nothing is known. ``by_step`` says
    whether waiting is known by step of any rank, ``has_steps`` whether there are any. ``rank`` are
    the numbers of the ranks, ``alone`` bool[ranks] those whose number no other has: of others
    nobody knows whose a collective is.
    """

    late: LateRanks | None
    matched: int
    why: str
    by_step: bool
    has_steps: bool
    rank: I8
    alone: Bool
    clocks: RankClocks | None

    @cached_property
    def waited(self) -> I8 | None:
        """How long each rank waited itself, i8[ranks] in ns, `UNKNOWN` where that is so."""
        return None if self.late is None else np.where(self.alone, self.late.waited, UNKNOWN)

    @cached_property
    def caused(self) -> I8 | None:
        """How long others waited for each rank, i8[ranks] in ns, `UNKNOWN` where that is so."""
        return None if self.late is None else np.where(self.alone, self.late.caused, UNKNOWN)

    @property
    def note_of_steps(self) -> str:
        """Why waiting is not known by step; empty where it is, or there are no steps."""
        return _NOT_BY_STEP if self.late and self.has_steps and not self.by_step else ""

    @cached_property
    def most_first(self) -> I8 | None:
        """List the ranks by how long others waited for them, the longest first; i8[ranks]."""
        caused = self.caused
        return None if caused is None else np.argsort(-caused, kind="stable")

    def is_late(self, place: int) -> bool:
        """Whether the rank at ``place`` makes others wait by more than chance."""
        return self.late is not None and bool(self.late.is_late[place] and self.alone[place])

    def rows(self, place: int) -> Iterator[tuple[str, str]]:
        """Say of the rank at ``place`` what it caused, how long it waited, how its clock goes."""
        if self.late is None:
            yield "waiting", f"not known: {self.why}"
        elif not self.alone[place]:
            yield "waiting", f"not known: several files are of rank {int(self.rank[place])}"
        else:
            yield "others wait", _caused_words(self.late, place, self.matched)
            yield "waits", self._own_words(place)
            yield "clock", self._clock_words(place)

    def _own_words(self, place: int) -> str:
        """How long the rank at ``place`` waited itself."""
        waited = np.zeros(0, np.int64) if self.waited is None else self.waited
        if not len(waited) or waited[place] < 0:
            return "not known: only some of its collectives are matched"
        known = np.sort(waited[waited >= 0])
        median = int(known[nearest_rank(50, len(known))])
        return f"{format_ns(int(waited[place]))} itself, median {format_ns(median)}"

    def _clock_words(self, place: int) -> str:
        """How far its clock is behind, told by the ends of collectives; empty if that is not."""
        if self.clocks is None or not (self.clocks.rank == self.rank[place]).any():
            return ""
        at = int(np.flatnonzero(self.clocks.rank == self.rank[place])[0])
        offset, error = int(self.clocks.offset[at]), int(self.clocks.error[at])
        together = np.flatnonzero(self.clocks.part == self.clocks.part[at])
        ahead = int(self.clocks.rank[together[self.clocks.offset[together].argmin()]])
        if ahead == self.rank[place]:
            return f"ahead of all, to within {format_ns(error)}"
        return f"{format_ns(offset)} behind that of rank {ahead}, to within {format_ns(error)}"

    def late_words(self, labels: Sequence[str]) -> list[str]:
        """Say who makes the others wait beyond chance, a line each, the longest first."""
        late = self.late
        if late is None:
            return []
        found = (at for at in late_places(late) if self.alone[at])
        return [
            f"{labels[at]}: others wait {_caused_words(late, at, self.matched)}" for at in found
        ]


def _caused_words(late: LateRanks, place: int, matched: int) -> str:
    """Say how long others waited for the rank at ``place``, and why."""
    last, of = int(late.last[place]), format_counted(matched, "collective", "collectives")
    if not last:
        return f"never: last to none of {of}"
    caused = int(late.caused[place])
    share = format_percent(caused, int(late.caused.sum()))
    facts = (
        f"{format_ns(caused)} for it, {share} of all waiting; last to {format_count(last)} of {of}"
    )
    if not late.is_late[place]:
        return f"{facts}; may be chance"
    cause, part = why_late(late, place)
    return facts if part is None else f"{facts}, late by {cause} ({100 * part:.0f} %)"


@kept
def waiting_of(summary: RankSummary) -> Waiting:
    """Work out what the collectives of ``summary`` tell of its ranks."""
    matching = match_table(summary.collectives, len(summary))
    rank, waits = summary.rank, summary.waits
    _, of = distinct(rank)
    return Waiting(
        late_ranks(summary, matching),
        int(matching.matched.sum()),
        why_not_late(summary, matching).why,
        waits is not None and bool((waits.step_wait > UNKNOWN).any()),
        any(one.step_numbers for one in summary.info),
        rank,
        np.bincount(of)[of] == 1,
        clocks_of_summary(summary),
    )
