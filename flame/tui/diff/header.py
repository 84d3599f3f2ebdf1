"""Say above the views what is compared, how much it has changed, and how it is drawn."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.analysis.words.formats import Terms
from flame.core.compare.amounts import format_ratio
from flame.core.compare.basis import Basis
from flame.core.compare.evidence import EvidenceLevel
from flame.core.compare.sides import SIDES
from flame.tui.diff.session import DiffProjection
from flame.tui.shell.actions import Action
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, printable
from flame.tui.widgets.header import choices, metric_choice, modes
from flame.tui.widgets.legend import Legend, LegendColour

_WIDTHS = {"both": "widths of both", "new": "widths of NEW", "base": "widths of BASE"}
_BASES = {"total": "in total", "share": "in percent of all", "unit": "per unit"}
_NOISE = {EvidenceLevel.RANKS: "beyond the ranks' spread"}
_LEAST_TITLE = 20


def title_line(
    title: str, shown: DiffProjection, palette: Palette, width: int, terms: Terms
) -> Line:
    """Compose the first line: what is compared, and by which metric and levels."""
    left: Line = [Piece(" flame ", "accent"), Piece(" ")]
    tree, selection = shown.view.tree, shown.selection
    unusual = modes(selection, "weight", linked=False)
    right = [*unusual, *choices(tree, palette, terms)]
    if width - line_width(left) - line_width(right) < _LEAST_TITLE:
        right = [*unusual, *metric_choice(tree)]
    room = width - line_width(left) - line_width(right) - 1
    left.append(Piece(cut(title, max(room, 1))))
    return [*left, Piece(" " * max(width - line_width(left) - line_width(right), 1)), *right]


def change_line(
    shown: DiffProjection, palette: Palette, width: int, over_time: bool = False
) -> Line:
    """Compose the second line: the change of all, its basis, and how the picture is drawn.

    Of a picture ``over_time`` it says whose it is.
    """
    line = [*_change(shown, palette), Piece("  "), _basis(shown)]
    drawn = [_whose(shown)] if over_time else [*_drawn(shown)]
    for part in (_left_out(shown), *drawn):
        if part and line_width(line) + 2 + line_width(part) <= width:
            line += [Piece("  "), *part]
    return line


def _change(shown: DiffProjection, palette: Palette) -> Line:
    """How much all that is shown has changed, in the colour of that."""
    sides = shown.colouring.sides
    changes, amounts = sides.changes, sides.amounts
    base, new = (amounts.value(float(side.value[0])) for side in (changes.base, changes.new))
    delta, ratio = float(changes.delta[0]), float(changes.ratio[0])
    line: Line = [Piece(" BASE ", "dim"), Piece(base, "strong"), Piece(" → NEW ", "dim")]
    line += [Piece(new, "strong"), Piece("  ")]
    if not delta:
        return [*line, Piece("no change", "dim")]
    tone = palette.change(max(min(ratio, 1.0), -1.0) or 0.1, one_sided=False)
    return [*line, Piece(f" {amounts.delta(delta)}  {format_ratio(ratio)} ", tone)]


def _basis(shown: DiffProjection) -> Piece:
    basis = shown.comparison.basis
    return Piece(f"{basis_words(basis)} ▾", "key", Action.BASIS.click(1))


def basis_words(basis: Basis) -> str:
    """Say what values are of: ``per step``."""
    return _BASES.get(basis.kind, f"per {basis.kind}")


def _left_out(shown: DiffProjection) -> Line:
    """Which levels cannot be compared; a click says why."""
    names = ", ".join(one.level for one in shown.comparison.left_out)
    return [Piece(f"without {names}", "warning", Action.COVERAGE.click())] if names else []


def _whose(shown: DiffProjection) -> Line:
    runs, at = shown.comparison.sides.runs, shown.run_over_time
    side = SIDES[shown.comparison.sides.side_of_run[at]]
    several = len([*shown.comparison.sides][SIDES.index(side)]) > 1
    whose = f"{side}, {printable(runs[at].label)}" if several else side
    return [Piece(f"timeline of {whose} ▾", "key", Action.WIDTH.click(1))]


def _drawn(shown: DiffProjection) -> Iterator[Line]:
    """How wide frames are, and which are coloured by what."""
    chosen = shown.chosen
    yield [Piece(f"{_WIDTHS[chosen.width]} ▾", "key", Action.WIDTH.click(1))]
    yield [
        Piece("colour: ", "dim"),
        Piece(chosen.measured, "key", Action.MEASURE.click()),
        Piece(", ", "dim"),
        Piece(f"{_least(shown)} ▾", "key", Action.ALL_CHANGES.click()),
    ]


def _least(shown: DiffProjection) -> str:
    """Which changes are coloured: those beyond noise, where anything tells noise."""
    chosen, found = shown.chosen, shown.colouring.found
    if chosen.all_changes:
        return "all"
    if found is not None and found.level:
        return _NOISE.get(found.level, "beyond noise")
    least = f"over {100 * chosen.limits.of_base:g} %"
    return least if found is None else f"{least}, no evidence"


LEGEND = Legend(
    (
        LegendColour("▲ has grown", 0.9),
        LegendColour("▼ has shrunk", -0.9),
        LegendColour("+ only in NEW", 1.0, True),
        LegendColour("− only in BASE", -1.0, True),
        LegendColour("unchanged", 0.0),
    ),
    (
        "Frames are those of both traces. Width is that of the wider side, so that what is gone "
        "is seen too, or of one of them (D); colour is the change from BASE to NEW, the "
        "stronger the larger it is beside the frame itself. Coloured is what has changed beyond "
        "noise, by 5 % of the frame and 0.5 % of all at least, or everything (V); by the change "
        "of the total, or of the frame itself (O). What nothing tells from noise is coloured by "
        "its size alone.",
        "by count is what more or fewer activities as long as those of BASE take, by duration "
        "the rest: what each takes longer or shorter.",
        "In these two recordings: what differs from one recording to the next is not known.",
    ),
)
