"""Write the part of the details of a comparison that is about PC samples."""

from __future__ import annotations

from flame.core.model.frames import Kind
from flame.core.units import format_count, format_percent
from flame.tui.details.sample_facts import SampledFacts
from flame.tui.diff.sampled.facts import SidesSampled
from flame.tui.sampling.both_reasons import both_reasons
from flame.tui.sampling.reasons import Counted
from flame.tui.shell.actions import Action
from flame.tui.toolkit.fields import fields
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut_start

_REASONS = 6
_OPEN = "a: all instructions"
_LACKS = "no samples"


def sampled_lines(sampled: SidesSampled | None, kind: Kind, width: int) -> list[Line]:
    """Write how many samples a frame of ``kind`` has on both sides, and why its warps waited."""
    if sampled is None:
        return []
    sides = zip(("BASE", "NEW"), sampled, strict=True)
    lines = [
        [Piece("PC samples", "dim")],
        *fields(((label, _samples(one, kind)) for label, one in sides), width),
    ]
    if kind != Kind.STALL:
        base, new = (_reasons(one) for one in sampled)
        lines += both_reasons(base, new, width, _REASONS)
    return [*lines, [Piece(cut_start(_OPEN, width), "key", Action.SASS.click())]]


def _samples(one: SampledFacts | None, kind: Kind) -> str:
    if one is None:
        return _LACKS
    share = f"  {format_percent(one.samples, one.whole)} of kernel"
    return f"{format_count(one.samples)}{'' if kind == Kind.KERNEL else share}"


def _reasons(one: SampledFacts | None) -> Counted:
    return [] if one is None else [*one.reasons]
