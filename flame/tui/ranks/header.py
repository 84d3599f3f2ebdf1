"""Say above the views how many ranks there are, what they have in the mean, and what is lacking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from flame.core.analysis.words.formats import Terms
from flame.core.frame import IMBALANCE
from flame.core.model.tree import Order
from flame.core.units import format_count, format_counted, format_value
from flame.tui.ranks.session import RanksProjection
from flame.tui.shell.actions import Action
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, width_of
from flame.tui.widgets.header import choices, metric_choice, modes
from flame.tui.widgets.legend import Legend, LegendColour

_LEAST_CONTENTS = 44
_LEAST_TITLE, _LONGEST_TITLE = 16, 40
_DOT = " · "


def ranks_line(
    title: str,
    shown: RanksProjection,
    labels: Sequence[str],
    palette: Palette,
    width: int,
    usual: Order,
    terms: Terms,
    late: int = 0,
) -> Line:
    """Compose the first line: file, ranks and their mean on the left; metric and levels.

    So many ranks are ``late`` to collectives beyond chance.
    """
    tree, selection = shown.view.tree, shown.selection
    if selection.colours == IMBALANCE and shown.view.colouring is None:
        selection = replace(selection, colours="level")
    unusual = modes(selection, usual, linked=False)
    left: Line = [Piece(" flame ", "accent"), Piece(" ")]
    right = [*unusual, *choices(tree, palette, terms)]
    if width - line_width(left) - line_width(right) < _LEAST_CONTENTS:
        right = [*unusual, *metric_choice(tree)]
    more = [*_late(late), *_lost(shown)]
    room = width - line_width(left) - line_width(right) - line_width(more) - 1
    left += [Piece(_contents(title, [*_facts(shown, labels)], room)), *more]
    return [*left, Piece(" " * max(width - line_width(left) - line_width(right), 1)), *right]


def _contents(title: str, facts: list[str], width: int) -> str:
    """The title and as many of the facts as there is room for, the first before the title."""
    least = min(_LEAST_TITLE, width_of(title))
    while len(facts) > 1 and width - len(_DOT) - width_of(_DOT.join(facts)) < least:
        facts.pop()
    text = _DOT.join(facts)
    room = min(width - len(_DOT) - width_of(text), _LONGEST_TITLE)
    return cut(text, max(width, 1)) if room < least else _DOT.join((cut(title, room), text))


def _facts(shown: RanksProjection, labels: Sequence[str]) -> Iterator[str]:
    """Which ranks are shown, and what they have."""
    number, places = len(shown.summary), shown.places
    total, unit = int(shown.view.tree.total[0]), shown.metric.unit
    if places is None:
        yield format_counted(number, "rank", "ranks")
        yield f"mean {format_value(total / number, unit)}"
        yield f"{format_value(total, unit)} in all"
        return
    many = f"{format_count(len(places))} of {format_count(number)} ranks"
    yield f"{labels[places[0]]} of {format_count(number)}" if len(places) == 1 else many
    yield format_value(total, unit) if len(places) == 1 else f"{format_value(total, unit)} in all"


def _late(number: int) -> Line:
    """How many ranks others wait for beyond chance; a click shows them."""
    click = Action.SHOW_VIEW.click("ranks")
    return [Piece(_DOT), Piece(f"{format_count(number)} late", "warning", click)] if number else []


def _lost(shown: RanksProjection) -> Line:
    """How many ranks could not be read; a click names them."""
    number = len(shown.summary.lost)
    if not number:
        return []
    click = Action.COVERAGE.click()
    return [Piece(_DOT), Piece(f"{format_count(number)} lost", "warning", click)]


LEGEND = Legend(
    (
        LegendColour("▲ a rank has more", 0.9),
        LegendColour("▼ a rank has less", -0.9),
        LegendColour("+ only some have it", 1.0, True),
        LegendColour("about the same", 0.0),
    ),
    (
        "Frames are those of all ranks; width is the mean over ranks, and numbers in frames are "
        "sums of all. O colours by imbalance: how far the rank that is farthest from the median "
        "is above it, or below; of a rank alone how far it is. A rank for which the others wait "
        "has less than they have in collectives.",
        "In the details and in the view ranks a cell is a rank, or several of which the "
        "farthest from the median is drawn. In the view ranks caused is how long others waited "
        "in collectives for a rank that came last: ! stands beside what is beyond chance. ≈ "
        "stands before what is known to 1 %: it is of a histogram.",
    ),
)
