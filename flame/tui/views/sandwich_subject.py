"""Draw the subject of a sandwich: the line between its callers and its callees."""

from __future__ import annotations

from itertools import compress
from typing import NamedTuple

from rich.style import Style
from textual.message import Message

from flame.core.compare.amounts import change_counts, change_words
from flame.core.compare.colouring import Colouring
from flame.core.model.frames import PART_KINDS
from flame.core.units import format_count, format_percent, format_value
from flame.tui.session.tree_view import NO_NAME, TreeView
from flame.tui.session.wording import lasts
from flame.tui.toolkit.lines import EDGE, Line, Lines, Piece, palette_of
from flame.tui.toolkit.text import ELLIPSIS, cut, cut_start, fill, width_of
from flame.tui.views.sandwich_halves import SandwichHalves

_LEAST_NAME = 32
"""Cells that the subject's name keeps, with fewer facts beside it."""


class SandwichSubject(NamedTuple):
    """The ``frame`` of ``view`` that a sandwich is of; no ``halves``: it is not in the tree."""

    view: TreeView
    frame: int
    halves: SandwichHalves | None
    busy: bool
    selected: bool


class SubjectLine(Lines):
    """Draw the name of the subject and what it weighs; a click selects it."""

    class Clicked(Message):
        """Say that the user clicked the subject."""

    DEFAULT_CSS = "SubjectLine { height: 1; overflow-y: hidden; }"

    def __init__(self, *, id: str) -> None:
        super().__init__(self._compose_subject, id=id)
        self._subject: SandwichSubject | None = None

    def show(self, subject: SandwichSubject | None) -> None:
        """Draw ``subject``, or nothing."""
        self._subject = subject
        self.update()

    def on_click(self) -> None:
        self.post_message(self.Clicked())

    def _compose_subject(self, width: int, height: int) -> list[Line]:
        subject = self._subject
        if subject is None:
            return []
        name = subject.view.tree.text[subject.frame] or NO_NAME
        facts = subject_facts(subject)
        room = width - 3 - width_of(cut(name, _LEAST_NAME))
        while len(facts) > 1 and width_of(" · ".join(facts)) > room:
            facts.pop()
        words = " · ".join(facts)
        text = f"{EDGE}{cut(name, max(width - 3 - width_of(words), 0))}  {words}"
        return [[Piece(fill(cut_start(text, width), width), self._subject_style(subject))]]

    def _subject_style(self, subject: SandwichSubject) -> Style:
        palette, tree = palette_of(self), subject.view.tree
        if subject.halves is None:
            return palette.quiet
        if subject.selected:
            return palette.cursor
        result = subject.halves.callees.matches.result
        if result is not None and result.matches.mask[0]:
            return palette.match
        if (colouring := subject.halves.callees.colouring) is not None:
            one_sided = colouring.is_one_sided(0)
            return palette.change(float(colouring.strength[0]), one_sided, result is not None)
        frame, name = tree.frames[subject.frame], tree.text[subject.frame]
        return palette.frame(frame, name, result is not None)


def subject_facts(subject: SandwichSubject) -> list[str]:
    """List what ``subject`` weighs over all its places, the most important first."""
    if subject.halves is None:
        return ["is not in what is shown now"]
    if subject.busy:
        return [ELLIPSIS]
    tree = subject.view.tree
    places, total, count = subject.view.everywhere(subject.frame)
    unit, own = tree.metric.unit, subject.halves.own
    facts = [format_value(total, unit), f"{format_percent(total, int(tree.total[0]))} of all"]
    colouring = subject.halves.callees.colouring
    often = f"{format_count(count)}×"
    if isinstance(colouring, Colouring):
        changes, amounts = colouring.sides.changes, colouring.sides.amounts
        facts, often = [*change_words(changes, 0, amounts)], change_counts(changes, 0, amounts)
    counted = lasts(tree.metric) and tree.frames[subject.frame].kind not in PART_KINDS
    facts += [often] if counted else []
    facts += [f"{format_count(places)} places"] if places > 1 else []
    has_own = 0 < own < total and not isinstance(colouring, Colouring)
    facts += [f"self {format_value(own, unit)}"] if has_own else []
    empty = [len(half.tree) == 1 for half in subject.halves]
    return [*facts, *compress(("no callers", "nothing below"), empty)]
