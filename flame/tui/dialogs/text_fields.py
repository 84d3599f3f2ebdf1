"""Edit the kinds of filters that are typed: how each is spelled, read, explained and doubted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from flame.core.analysis.words.formats import OPERATORS, SCOPES, terms_of
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.names.framework import USUAL
from flame.core.projection.filter_options import (
    format_filter,
    format_moment,
    format_nvtx_range,
    format_window,
    kind_of,
    parse_moment,
    parse_nvtx_range,
    parse_phase_names,
    parse_ranks,
    parse_share,
    parse_window,
)
from flame.core.projection.filters import (
    At,
    Filter,
    HideFrames,
    HideFramework,
    HideStacks,
    Kernel,
    MinShare,
    NvtxRange,
    Phases,
    Ranks,
    ShowFrom,
    ShowStacks,
    Time,
)
from flame.core.projection.phases import phase_names
from flame.core.units import format_counted, format_ns
from flame.tui.session.query import Query, SelectedName

_SOME = 4
_AT_ONCE = 10_000
"""Frames up to which their names are compared in a few milliseconds."""


@dataclass(frozen=True)
class TextField:
    """A kind of filter that is typed.

    ``spell`` is the text of a filter, ``read`` the filter of a text (UsageError where it is
    wrong), ``guess`` the text to begin with, from the ``selected`` frame's name; ``doubt``
    says why a filter would leave nothing, as far as that is known at once, ``applies`` whether
    there is anything in the trace that such filters are about.
    """

    type: type[Filter]
    about: Callable[[Profile], str]
    spell: Callable[[Any], str]
    read: Callable[[str], Filter]
    guess: Callable[[SelectedName], str]
    several: bool = False
    doubt: Callable[[Profile, Any], str] = lambda profile, filter_: ""
    applies: Callable[[Profile], bool] = lambda profile: True

    @property
    def title(self) -> str:
        """What such filters are called."""
        return kind_of(self.type).title


def _regex(kind: Callable[[str], Filter]) -> Callable[[str], Filter]:
    def read(text: str) -> Filter:
        Query(text).compile()
        return kind(text)

    return read


def _pattern(filter_: Any) -> str:
    return str(filter_.pattern)


def _frame(selected: SelectedName) -> str:
    return selected.pattern if selected.kind not in (Kind.ROOT, Kind.REST) else ""


def _kernel(selected: SelectedName) -> str:
    return selected.pattern if selected.kind == Kind.KERNEL else ""


def _range(selected: SelectedName) -> str:
    return format_nvtx_range(NvtxRange(selected.name)) if selected.kind == Kind.NVTX else ""


def _phase(selected: SelectedName) -> str:
    """The name; a comma would end it."""
    is_phase = selected.kind in (Kind.PHASE, Kind.CATEGORY)
    return selected.name.replace(",", "?") if is_phase else ""


def _no_such_range(profile: Profile, filter_: NvtxRange) -> str:
    """Say that no range is called so, and whether any has it in its name."""
    if len(profile.frames) > _AT_ONCE or filter_.ranges(profile).any():
        return ""
    part = replace(filter_, name=f"*{filter_.name}*")
    number = int(part.ranges(profile).sum())
    names = format_counted(number, "name", "names")
    hint = f": {format_nvtx_range(part)} would find {names}" if number else ""
    return f"no {terms_of(profile).general} is called so{hint}"


def _nothing(selected: SelectedName) -> str:
    return ""


def _says(text: str) -> Callable[[Profile], str]:
    return lambda profile: text


def _ranks_there(profile: Profile) -> str:
    sources = profile.ranks.sources if profile.ranks is not None else profile.sources
    known = _some_of([source.label for source in sources])
    return f"numbers or names, such as {known}; * and ? stand for any text and letter"


def _some_of(names: Sequence[str]) -> str:
    return ", ".join(names[:_SOME]) + (", …" if len(names) > _SOME else "")


def _about_ranges(profile: Profile) -> str:
    terms = terms_of(profile)
    what = terms.general
    domain = "" if terms in (OPERATORS, SCOPES) else " or NAME@DOMAIN"
    article = "an" if what.startswith("o") else "a"
    return f"below such {article} {what}: NAME{domain}, * and ? stand for any text and letter"


def _has(kind: Kind) -> Callable[[Profile], bool]:
    return lambda profile: bool((profile.frames.kind == kind).any())


def _span(profile: Profile) -> str:
    begin, end = format_ns(profile.begin), format_ns(profile.end)
    return f"begin/end, such as 5s/7s or 500ms/; the trace runs from {begin} to {end}"


def _stacks(kind: type[Filter], about: str) -> TextField:
    read = _regex(kind)
    return TextField(kind, _says(about), _pattern, read, _frame, several=True)


_RE = "a regular expression found anywhere in a frame's name"
STACK_FIELDS = (
    _stacks(ShowStacks, f"stacks with such a frame; {_RE}"),
    _stacks(HideStacks, f"no stacks with such a frame; {_RE}"),
    _stacks(ShowFrom, f"stacks from such a frame on; {_RE}"),
    _stacks(HideFrames, f"such frames left out, what is below kept; {_RE}"),
)
FRAMEWORK_FIELD = TextField(
    HideFramework,
    _says(f"frames of code whose FILE:NAME matches left out, what is below kept; {_RE}"),
    _pattern,
    _regex(HideFramework),
    lambda selected: USUAL,
)
TIME_FIELD = TextField(
    Time,
    _span,
    format_window,
    parse_window,
    _nothing,
    applies=lambda profile: profile.timed,
)
MOMENT_FIELD = TextField(
    At,
    _says("what memory held then: peak, oom (the last request that failed), end, or a time"),
    format_moment,
    parse_moment,
    _nothing,
    applies=lambda profile: profile.memory_builder is not None,
)
RANKS_FIELD = TextField(
    Ranks,
    _ranks_there,
    format_filter,
    parse_ranks,
    _nothing,
    doubt=lambda profile, filter_: (
        "" if filter_.matches_any(profile) else "no trace is called that"
    ),
    applies=lambda profile: profile.ranks is not None or len(profile.sources) > 1,
)
PHASES_FIELD = TextField(
    Phases,
    lambda profile: f"by name, of {_some_of(phase_names(profile))}; * and ? are wildcards",
    format_filter,
    parse_phase_names,
    _phase,
    doubt=lambda profile, filter_: (
        "" if any(map(filter_.fits, phase_names(profile))) else "no phase is called that"
    ),
    applies=lambda profile: bool(phase_names(profile)),
)
RANGE_FIELD = TextField(
    NvtxRange,
    _about_ranges,
    format_nvtx_range,
    parse_nvtx_range,
    _range,
    doubt=_no_such_range,
    applies=_has(Kind.NVTX),
)
KERNEL_FIELD = TextField(
    Kernel,
    _says("kernels only, by a regular expression found in their name"),
    _pattern,
    _regex(Kernel),
    _kernel,
    applies=_has(Kind.KERNEL),
)
SHARE_FIELD = TextField(
    MinShare,
    _says("percent of the total; smaller frames are merged into one"),
    lambda filter_: f"{filter_.percent:g}",
    parse_share,
    _nothing,
)
