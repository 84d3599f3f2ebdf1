"""Say what an idle gap is, and what the host did in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from flame.core.analysis.gap_host import GapHost, gap_host
from flame.core.analysis.utilization import DeviceGaps
from flame.core.analysis.words.formats import Terms, terms_of
from flame.core.model.profile import Profile
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.gap_causes import CauseTime, GapCauses
from flame.core.timeline.lanes import Track, thread_label
from flame.core.units import format_count, format_ns, format_percent
from flame.tui.session.session import Projection
from flame.tui.timeline.header import clock
from flame.tui.timeline.time_view import TimeView
from flame.tui.toolkit.colours import HATCHES
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut, cut_start, printable, width_of

_LABEL = 10
_MOST = 3
_LEAST_NAME = 12
_NAME, _SHORT_NAME, _ROOMY = 40, 24, 110


class GapLabel(StrEnum):
    """Name what stands before the lines about a gap; the glossary explains each."""

    CAUSES = "causes"
    CALLS = "API calls"
    PYTHON = "Python"
    HOST = "host"
    BETWEEN = "between"
    OUTSIDE = "outside any"
    OTHERS = "others"


class GapLines:
    """Composes the lines about a gap, the ``number`` of ``gaps``; frames are called ``text``.

    ``causes`` are None where they are not known, or not yet.
    """

    def __init__(
        self,
        profile: Profile,
        gaps: DeviceGaps,
        number: int,
        host: GapHost,
        text: Sequence[str],
        causes: GapCauses | None,
    ) -> None:
        self._profile, self._gaps, self._number = profile, gaps, number
        self._gap, self._host, self._text = gaps.gap(number), host, text
        window = TimeWindow(self._gap.begin, self._gap.end)
        self._causes = causes.within(window) if causes is not None else ()
        self._terms: Terms = terms_of(profile)

    def lines(self, width: int) -> list[Line]:
        """How long it was and when, what the host did, what ran before and after."""
        return [
            [Piece(cut_start(f" {self._when()}", width), "strong")],
            *self._why(width),
            *(
                self._line(self._word(track), self._shares(track, width), width)
                for track in self._host.parts
            ),
            self._line(GapLabel.HOST, self._who(), width),
            self._line(GapLabel.BETWEEN, self._between(max(width - _LABEL - 1, 1)), width),
        ]

    def summary(self) -> str:
        """The same in one line."""
        first = [
            next(self._words(track, _NAME, f"outside {self._word(track)}"))
            for track in self._host.parts
        ]
        idle = f"{self._gaps.label} idle {format_ns(self._gap.length)}"
        return " · ".join([idle, *(self._cause(one) for one in self._causes[:1]), *first])

    def _why(self, width: int) -> Iterator[Line]:
        """What the GPU waited for, with what hatches it: the longest that fit, and the others."""
        room, number = width - _LABEL - 1, len(self._causes)
        texts = [" · ".join(self._first_causes(most)) for most in range(number, 0, -1)]
        if texts:
            text = next((text for text in texts if width_of(text) <= room), texts[-1])
            yield self._line(GapLabel.CAUSES, text, width)

    def _first_causes(self, most: int) -> Iterator[str]:
        for one in self._causes[:most]:
            yield self._cause(one, f"{2 * HATCHES[one.cause]} ")
        others = sum(one.length for one in self._causes[most:])
        if others:
            yield f"{format_percent(others, self._gap.length)} {GapLabel.OTHERS}"

    def _cause(self, one: CauseTime, hatch: str = "") -> str:
        share = format_percent(one.length, self._gap.length)
        return f"{share} {hatch}{one.cause.title} {format_ns(one.length)}"

    def _when(self) -> str:
        gaps, gap = self._gaps, self._gap
        place = int(gaps.rank[self._number]) + 1
        rank = "longest" if place == 1 else f"no. {format_count(place)} by length"
        share = format_percent(gap.length, gaps.total)
        when = clock(gap.begin, max(gap.length // 100, 1))
        return (
            f"{gaps.label} idle {format_ns(gap.length)} · {share} of its idle time · "
            f"{rank} of {format_count(len(gaps))} · at {when}"
        )

    def _between(self, width: int) -> str:
        room = max((width - 14) // 2, _LEAST_NAME)
        before, after = (self._activity(row, room) for row in (self._gap.before, self._gap.after))
        return f"{before} → {after}"

    def _activity(self, row: int, width: int) -> str:
        table = self._profile.activities
        if row < 0:
            return "edge of the window"
        return cut(self._text[int(table.frame[row])], width)

    def _who(self) -> str:
        host = self._host
        if host.thread < 0:
            return "who launched what ran next was not recorded"
        who = printable(thread_label(self._profile, host.thread))
        if not host.launched_next or host.late is None:
            return f"{who} launched what ran before; the launch of the next was not recorded"
        if host.late < 0:
            early = format_ns(-host.late)
            return f"{who} had launched the next {early} before the gap: the GPU's own wait"
        return f"{who} launched the next {format_ns(host.late)} into the gap"

    def _word(self, track: Track) -> str:
        words = {Track.CALLS: GapLabel.CALLS, Track.INNERMOST: GapLabel.PYTHON}
        return words.get(track, self._terms.short)

    def _shares(self, track: Track, width: int) -> str:
        name = _NAME if width >= _ROOMY else _SHORT_NAME
        return " · ".join(self._words(track, name, GapLabel.OUTSIDE))

    def _words(self, track: Track, name: int, none: str) -> Iterator[str]:
        """The longest parts, and what of the gap lies in ``none``, longest first."""
        parts = self._host.parts[track]
        named = [(part.length, cut(self._text[part.frame], name)) for part in parts[:_MOST]]
        outside = self._gap.length - sum(part.length for part in parts)
        others = sum(part.length for part in parts[_MOST:])
        if outside:
            named.append((outside, none))
        named.sort(key=lambda one: -one[0])
        if others:
            named.append((others, GapLabel.OTHERS))
        for length, text in named:
            yield f"{format_percent(length, self._gap.length)} {text}"

    def _line(self, label: str, text: str, width: int) -> Line:
        room = max(width - _LABEL - 1, 0)
        return [
            Piece(cut_start(f" {label}".ljust(_LABEL + 1), width), "dim"),
            Piece(cut_start(text, room)),
        ]


class ToldGap:
    """Tell of the selected gap what there is to say; worked out once."""

    def __init__(self) -> None:
        self._said: tuple[tuple[object, ...], GapLines] | None = None

    def of(self, time: TimeView | None, shown: Projection) -> GapLines | None:
        """Return the lines about the gap selected in ``time``, None without one."""
        if time is None or time.gaps.of is None or time.gaps.gap is None:
            self._said = None
            return None
        gaps, profile, text = time.gaps, shown.profile, shown.exact.text
        causes = time.causes_of(time.gaps.of.device)
        about = (gaps.of, gaps.number, text, causes)
        if self._said is None or self._said[0] != about:
            host = gap_host(profile, time.timeline, time.gaps.gap)
            self._said = about, GapLines(profile, time.gaps.of, gaps.number, host, text, causes)
        return self._said[1]
