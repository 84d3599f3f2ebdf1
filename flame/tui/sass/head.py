"""Compose the lines above a listing: the kernel, what it weighs, and whose samples these are."""

from __future__ import annotations

from flame.core.model.frames import Kind
from flame.core.names.cuda import demangle
from flame.core.sampling.kernel_match import strip_parameters
from flame.core.units import format_count, format_counted, format_percent, format_value
from flame.tui.sampling.other_code import OtherCode
from flame.tui.sampling.subject import Subject
from flame.tui.sampling.version import Version
from flame.tui.sass.sides import ListedSide
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, cut_start, width_of

_LEAST_NAME = 24
_LONGEST_NAME = 40


def head_lines(
    side: ListedSide, version: int, other: OtherCode | None, palette: Palette, width: int
) -> list[Line]:
    """Two lines: the kernel and what it weighs, and the ``version`` and whose samples it has.

    In a comparison the second one begins with which side that is, and what the ``other`` one has.
    """
    sides = [side.name, other_words(side.subject.versions[version], other)] if other else []
    samples = _samples(side.subject, version, side.report, [*sides], width)
    return [_kernel(side.subject, palette, width), samples]


def _kernel(subject: Subject, palette: Palette, width: int) -> Line:
    metric = subject.metric
    facts = [
        f"{metric.title} {format_value(subject.value, metric.unit)}",
        format_counted(subject.samples, "sample", "samples"),
    ]
    if metric.key == "stalls":
        facts = facts[1:]
    text = " · ".join(facts)
    tag = Piece(f" {Kind.KERNEL.title} ", palette.kind(Kind.KERNEL))
    room = width - line_width([tag]) - 3
    if room - width_of(text) < _LEAST_NAME:
        text = facts[-1]
    name = cut(subject.name, max(room - width_of(text), 1))
    gap = max(room - width_of(name) - width_of(text), 0)
    line = [tag, Piece(f" {name}", "strong"), Piece(f"{'':{gap + 1}}{text} ")]
    return line if line_width(line) <= width else line[:2]


def other_words(version: Version, other: OtherCode) -> str:
    """Say how much of the code of ``version`` the other side of a comparison has."""
    if not other.whole:
        return f"{other.side} has no samples of it"
    if other.same:
        return f"the same code as in {other.side}"
    alike, size = int(other.alike.sum()), len(version)
    number = f"{format_count(alike)} of {format_counted(size, 'instruction', 'instructions')}"
    changed = alike - int(other.unchanged.sum())
    operands = f", {format_count(changed)} with other operands" if changed else ""
    return f"other code than in {other.side}: {number} in both{operands}"


def _samples(subject: Subject, version: int, report: str, sides: list[str], width: int) -> Line:
    """Whose samples these are; what matters most stands first."""
    parts = [_which(subject, version)] if len(subject.versions) > 1 else []
    parts += [_whose(subject, report)]
    if subject.others:
        parts.insert(0, f"the heaviest of {format_count(subject.others + 1)} kernels here")
    if subject.unsampled:
        without = format_value(subject.unsampled, subject.metric.unit)
        parts.append(f"{without} of it has no samples")
    return [Piece(cut_start(f" {' · '.join([*sides, *parts])}", width), "dim")]


def _which(subject: Subject, version: int) -> str:
    """Which of several codes this is: of one function, or of functions with names of their own."""
    place = f"{version + 1} of {len(subject.versions)}"
    share = format_percent(subject.versions[version].total, subject.samples)
    if len({other.code.name for other in subject.versions}) == 1:
        return f"version {place}, {share} of the samples"
    name = strip_parameters(demangle(subject.versions[version].code.name)).removeprefix("void ")
    return f"code {place}: {cut(name, _LONGEST_NAME)}, {share} of the samples"


def _whose(subject: Subject, report: str) -> str:
    text = "all call sites: samples of every launch, spread by time"
    sites, noun = subject.sites, subject.metric.noun
    if noun != "activities":
        text = f"all {noun} of this kernel"
    elif subject.exact:
        text = "this launch site" if sites == 1 else f"{format_count(sites)} launch sites"
    return f"{text} · Nsight Compute: {report}" if report else text
