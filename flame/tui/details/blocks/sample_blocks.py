"""Write the part of the details that is about PC samples."""

from __future__ import annotations

import textwrap

from flame.core.model.frames import Frame, Kind
from flame.core.model.pc_samples import FUNCTION
from flame.core.model.stalls import stall_of
from flame.core.names.cuda import demangle, kernel_base
from flame.core.units import format_count, format_percent
from flame.tui.details.labels import Label, fields, listed, titled
from flame.tui.details.sample_facts import SampledFacts
from flame.tui.sampling.reasons import reason_lines
from flame.tui.shell.actions import Action
from flame.tui.toolkit.fields import LABEL
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, cut_start, wrap

_REASONS = 3
_LINES = 4
_OPEN = "a: all instructions"


def sample_notes(frame: Frame, width: int) -> list[Line]:
    """Write what is known at once of an instruction or a reason."""
    if frame.kind == Kind.SASS and frame.get(FUNCTION):
        return fields([(Label.KERNEL, kernel_base(demangle(frame.get(FUNCTION))))], width)
    meaning = stall_of(frame.get("reason")).meaning if frame.kind == Kind.STALL else ""
    return [[Piece(part)] for part in textwrap.wrap(meaning, width, break_on_hyphens=False)]


def sample_lines(
    sampled: SampledFacts | None, frame: Frame, palette: Palette, width: int
) -> list[Line]:
    """Write what has been worked out of the samples of ``frame``."""
    if sampled is None:
        return []
    whole = format_percent(sampled.samples, sampled.whole)
    of = "kernel" if sampled.kernels == 1 else f"{format_count(sampled.kernels)} kernels"
    inside = "" if frame.kind == Kind.KERNEL else f"  {whole} of {of}"
    whose = "of these launches" if sampled.exact else "of all launches"
    samples = wrap(f"{format_count(sampled.samples)}{inside}", width - LABEL, _LINES)
    lines = listed(Label.SAMPLES, [*samples, whose])
    if frame.kind != Kind.SASS:
        lines += _hottest(sampled, width)
    if frame.kind != Kind.STALL:
        few = _REASONS if frame.kind == Kind.KERNEL else 0
        detailed = frame.kind == Kind.SASS
        lines += reason_lines(list(sampled.reasons), palette, width, few, meanings=detailed)
    return [*lines, [Piece(cut_start(_OPEN, width), "key", Action.SASS.click())]]


def _hottest(sampled: SampledFacts, width: int) -> list[Line]:
    name, samples, number = sampled.hottest
    share = format_percent(samples, sampled.samples)
    hottest = f"{Label.HOTTEST} of {format_count(number)} instructions"
    title = hottest if number > 1 else "one instruction"
    room = max(width - len(share) - 2, 4)
    return [titled(Label.HOTTEST, width, title), [Piece(f"{share}  {cut(name, room)}")]]
