"""Compose the notes on a comparison: what is left out of it, and what each run covers."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.compare.comparison import Comparison
from flame.core.compare.sides import SIDES, KeptRun, Sides
from flame.core.units import format_count, format_counted, format_ns
from flame.tui.toolkit.dialog.page import indented
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import printable, wrap
from flame.tui.widgets.pages import coverage_lines

_FACT = 18
_MOST_LINES = 4
_CLOSES: list[Line] = [[], [Piece("esc closes", "dim")]]


def note_lines(sides: Sides, comparison: Comparison, width: int) -> Iterator[Line]:
    """Say what of ``sides`` cannot be compared, and what each run covers."""
    for level, why in comparison.left_out:
        text = f"without {level}: {why}"
        yield from ([Piece(part, "warning")] for part in wrap(text, width, _MOST_LINES))
    for side, run in zip(sides.side_of_run, sides.runs, strict=True):
        name = SIDES[side]
        label = run.label if run.label.startswith(name) else f"{name} {run.label}"
        yield from ([], [Piece(printable(label), "strong")])
        if isinstance(run, KeptRun):
            yield from _kept_lines(run, width)
        else:
            yield from coverage_lines(run.profile, width, hint="")[: -len(_CLOSES)]
    yield from _CLOSES


def _kept_lines(run: KeptRun, width: int) -> Iterator[Line]:
    """What is known of a kept run."""
    for label, value in _kept_facts(run):
        if value:
            yield from indented(f"  {label}".ljust(_FACT), "dim", printable(value), width)


def _kept_facts(run: KeptRun) -> Iterator[tuple[str, str]]:
    facts, whole, steps = run.data.facts, run.data.whole, run.steps
    yield "format", "a kept base: sums, no single activities, no times"
    yield "recorded by", ", ".join(facts.recorded_by)
    yield "length", format_ns(facts.duration)
    models = ", ".join(facts.models)
    yield "GPUs", " ".join(filter(None, (format_count(facts.gpus), models and f"({models})")))
    yield "GPU time", format_ns(sum(whole.total))
    yield "GPU activities", format_count(sum(whole.count))
    number = len(steps.period) if steps else 0
    counted = format_counted(number, "iteration", "iterations")
    yield "iterations", f"{counted} after the warm-up" if number else "none"
    yield "lost", "; ".join(facts.lost)
