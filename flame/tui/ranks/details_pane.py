"""Show beside what is known of the selected frame how it is spread over ranks."""

from __future__ import annotations

from dataclasses import replace

from textual import on

from flame.tui.details.compact import LINES, fitting
from flame.tui.details.details_pane import DetailsLines, DetailsPane
from flame.tui.details.pane import header
from flame.tui.ranks.details import compact_words, spread_lines
from flame.tui.ranks.facts import RankFacts, RankSubject, rank_facts
from flame.tui.ranks.session import RanksProjection
from flame.tui.session.tree_view import TreeView
from flame.tui.shell.base_app import BaseApp
from flame.tui.toolkit.latest import Answer, LatestRequest
from flame.tui.toolkit.lines import palette_of

_KEPT = 200


class Compared(Answer[RankSubject, "RankFacts | None"]):
    """Bring how a frame is spread over ranks."""


class RanksDetailsPane(DetailsPane):
    """Shows the details of a frame with those of its ranks; ``labels`` name these.

    A frame that is passed on the way is not worked on.
    """

    def __init__(self, labels: tuple[str, ...]) -> None:
        super().__init__()
        self._labels = labels
        self._comparing = LatestRequest(rank_facts, Compared, self.post_message, in_turn=True)
        self._compared: dict[tuple[int, int, int], RankFacts | None] = {}

    @property
    def busy(self) -> bool:
        return super().busy or self._comparing.busy

    def facts_of(self, shown: RanksProjection, view: TreeView) -> RankFacts | None:
        """Return what is known of ``view``'s selected frame."""
        return self._compared.get(RankSubject(shown, view, view.cursor.node).key)

    def _whole(self, width: int) -> DetailsLines:
        drawn = super()._whole(width)
        subject = self._of_ranks()
        if subject is None:
            return drawn
        if subject.key not in self._compared:
            self._ask(subject)
        elif self._compared[subject.key] is None:
            return drawn
        return self._with_ranks(drawn, subject, width)

    def _ask(self, subject: RankSubject) -> None:
        latest = self._comparing.latest
        if latest is None or latest.key != subject.key or not self._comparing.busy:
            self._comparing.ask(subject)

    def _of_ranks(self) -> RankSubject | None:
        if self._subject is None:
            return None
        shown, view, _ = self._subject
        if not isinstance(shown, RanksProjection) or not shown.of_all.can_compare:
            return None
        return RankSubject(shown, view, view.cursor.node)

    def _with_ranks(self, drawn: DetailsLines, subject: RankSubject, width: int) -> DetailsLines:
        """``drawn`` with the lines on ranks below the first ones."""
        assert self._subject is not None
        shown, view, terms = self._subject
        facts, unit = self._compared.get(subject.key), view.tree.metric.unit
        palette, columns = palette_of(self), drawn.columns
        half = columns.at - 2 if columns.at else width
        clicks = view is shown.view
        first = len(header(view, palette, width, clicks=clicks, terms=terms))
        about = (self._labels, subject.shown.places)
        halves = isinstance(self.app, BaseApp) and self.app.has_colours
        lines = spread_lines(facts, *about, palette, half, unit, halves)
        left = [*columns.left[:first], [], *lines, *columns.left[first:]]
        short = [
            *drawn.short[: LINES - 1],
            fitting(compact_words(facts, self._labels, unit), width),
        ]
        return drawn._replace(short=short, columns=replace(columns, left=left))

    @on(Compared)
    def _taken(self, message: Compared) -> None:
        current = self._comparing.take(message)
        self._compared[message.request.key] = message.result()
        while len(self._compared) > _KEPT:
            del self._compared[next(iter(self._compared))]
        if current and not self.waits:
            self.update()
