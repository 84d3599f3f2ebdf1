"""Parse filters from option texts, and format them back exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flame.core.errors import UsageError
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import ACTIVITY_KINDS
from flame.core.nearest import did_you_mean
from flame.core.projection.filter_kinds import FILTER_KINDS, FilterKind
from flame.core.projection.filters import (
    MOMENTS,
    At,
    Devices,
    ExpressionFilter,
    Filter,
    HideFrames,
    HideFramework,
    HideStacks,
    Include,
    Kernel,
    MinShare,
    NvtxRange,
    Phases,
    Pids,
    Ranks,
    ShowFrom,
    ShowStacks,
    Steps,
    Streams,
    Tids,
    Time,
)
from flame.core.units import parse_time

_AT = lazy_regex(r"(\\*)@")

Texts = str | Sequence[str] | None

Ids = int | Sequence[int] | None


_SCALES = ((10**9, 9, "s"), (10**6, 6, "ms"), (10**3, 3, "us"))


def format_window(window: Time) -> str:
    """Format the text ``A/B`` that `parse_window` reads as ``window``."""
    begin, end = ("" if time is None else _format_time(time) for time in (window.begin, window.end))
    return f"{begin}/{end}"


def _format_time(time: int) -> str:
    sign, rest = "-" if time < 0 else "", abs(time)
    for scale, digits, unit in _SCALES:
        if rest >= scale:
            whole, part = divmod(rest, scale)
            fraction = f"{part:0{digits}d}".rstrip("0")
            return f"{sign}{whole}{'.' if fraction else ''}{fraction}{unit}"
    return f"{sign}{rest}ns"


def format_nvtx_range(filter_: NvtxRange) -> str:
    """Format the text ``NAME[@DOMAIN]`` that `parse_nvtx_range` reads as ``filter_``."""
    name = _escape_at(filter_.name)
    if filter_.domain is None:
        return name
    ending = len(name) - len(name.rstrip("\\"))
    return f"{name}{ending * chr(92)}@{_escape_at(filter_.domain)}"


def _escape_at(text: str) -> str:
    """Put a backslash before each at sign of ``text``, and double those before it."""
    return re.sub(r"(\\*)@", r"\1\1\\@", text)


def parse_window(text: str) -> Time:
    """Parse a time window ``A/B``; either side may be empty: ``5s/7s``, ``500ms/``, ``/2s``."""
    begin, slash, end = text.partition("/")
    if not slash or not (begin or end):
        raise UsageError(f"--time '{text}': use A/B, such as 5s/7s, 500ms/ or /2s")
    window = Time(parse_time(begin) if begin else None, parse_time(end) if end else None)
    if window.begin is not None and window.end is not None and window.begin >= window.end:
        raise UsageError(f"--time '{text}': the window is empty, its end is not after its begin")
    return window


def parse_moment(text: str) -> At:
    """Parse a moment of memory: ``peak``, ``oom``, ``end``, or a time as in `parse_window`."""
    for moment in MOMENTS:
        if text == moment:
            return At(moment)
    try:
        return At(parse_time(text))
    except UsageError:
        names = ", ".join(MOMENTS)
        raise UsageError(f"--at '{text}': use {names}, or a time such as 50.5ms") from None


def format_moment(at: At) -> str:
    """Format the text that `parse_moment` reads as ``at``."""
    return at.moment if isinstance(at.moment, str) else _format_time(at.moment)


def parse_steps(text: str) -> Steps:
    """Parse numbers of iterations: ``3-5``, ``3`` alone, or a list of them, ``3,7-9``."""
    return Steps.joined(_parse_span(text, part.strip()) for part in text.split(","))


def _parse_span(text: str, part: str) -> tuple[int, int]:
    numbers = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", part)
    if not numbers:
        raise UsageError(f"--step '{text}': use A-B, such as 3-5, a number, or a list: 3,7-9")
    first, last = int(numbers[1]), int(numbers[2] or numbers[1])
    if first > last:
        raise UsageError(f"--step '{text}': no step at all, its end is before its begin")
    return first, last


def parse_ranks(text: str) -> Ranks:
    """Parse ranks or labels of files from a list such as ``0,3``; both may be globs."""
    names = _split_names(text)
    if not names:
        raise UsageError(f"--rank '{text}': no rank given, use a number or a list such as 0,3")
    return Ranks(names)


def parse_phase_names(text: str) -> Phases:
    """Parse names of phases from a list such as ``prefill,decode``; they may be globs."""
    names = _split_names(text)
    if not names:
        raise UsageError(f"--phase '{text}': no phase given")
    return Phases(names)


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def parse_nvtx_range(text: str) -> NvtxRange:
    r"""Parse a range filter ``NAME[@DOMAIN]``, both globs; ``\@`` is an at sign in the name.

    Before an at sign, and only there, ``\\`` is one backslash.
    """
    name, at, domain = _AT.sub(_mark_at, text).partition("\0@")
    if not name:
        raise UsageError(f"--nvtx-range '{text}': a range name is missing, use NAME or NAME@DOMAIN")
    return NvtxRange(name, domain.replace("\0@", "@") if at else None)


def _mark_at(match: re.Match[str]) -> str:
    """Half of the backslashes, and the at sign: marked where it is not escaped."""
    backslashes, escaped = divmod(len(match[1]), 2)
    return backslashes * "\\" + ("@" if escaped else "\0@")


def parse_include(text: str) -> Include:
    """Parse activity kinds from a list such as ``kernel,memcpy``."""
    kinds = {kind.title: kind for kind in ACTIVITY_KINDS}
    names = [name.strip() for name in text.split(",") if name.strip()]
    wrong = [name for name in names if name not in kinds]
    if wrong or not names:
        reason = f"unknown kind '{wrong[0]}'" if wrong else "no kind given"
        meant = did_you_mean(wrong[0], kinds) if wrong else ""
        raise UsageError(f"--include: {reason}: choose from {', '.join(kinds)}{meant}")
    return Include(tuple(kinds[name] for name in names))


def parse_share(text: str) -> MinShare:
    """Parse a least share in percent: ``0.5``, or ``0.5 %``."""
    number = text.strip().removesuffix("%").strip()
    try:
        return MinShare(float(number))
    except ValueError:
        raise UsageError(f"'{number}' is not a number of percent, such as 0.5") from None


def _parse_ids(kind: Callable[[tuple[int, ...]], Filter]) -> Callable[[str], Filter]:
    return lambda text: kind(parse_numbers(text))


def parse_numbers(text: str) -> tuple[int, ...]:
    """Parse a number, or a list such as ``0,1``; UsageError where it is neither."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,18}", part) for part in parts):
        raise UsageError(f"'{text}' is not a number or a list such as 0,1")
    return tuple(map(int, parts))


def _format_ids(filter_: Devices | Streams | Pids | Tids) -> str:
    return ",".join(map(str, filter_.ids))


def _format_steps(filter_: Steps) -> str:
    return ",".join(format_span(*span, "-") for span in filter_.spans)


def format_span(first: int, last: int, to: str) -> str:
    """Format numbers from ``first`` ``to`` ``last``, or the only one."""
    return str(first) if first == last else f"{first}{to}{last}"


def _format_names(filter_: Ranks | Phases) -> str:
    return ",".join(filter_.names)


def _format_include(filter_: Include) -> str:
    return ",".join(kind.title for kind in filter_.kinds)


def _format_share(filter_: MinShare) -> str:
    return repr(filter_.percent).removesuffix(".0")


def _format_pattern(filter_: ExpressionFilter) -> str:
    return filter_.pattern


class FilterText(NamedTuple):
    """Convert filters of one type from text and back, exactly: ``parse(format(f)) == f``."""

    type: type[Filter]
    parse: Callable[[str], Filter]
    format: Callable[[Any], str]


FILTER_TEXTS: Mapping[str, FilterText] = {
    "time": FilterText(Time, parse_window, format_window),
    "at": FilterText(At, parse_moment, format_moment),
    "step": FilterText(Steps, parse_steps, _format_steps),
    "rank": FilterText(Ranks, parse_ranks, _format_names),
    "nvtx": FilterText(NvtxRange, parse_nvtx_range, format_nvtx_range),
    "phase": FilterText(Phases, parse_phase_names, _format_names),
    "device": FilterText(Devices, _parse_ids(Devices), _format_ids),
    "stream": FilterText(Streams, _parse_ids(Streams), _format_ids),
    "pid": FilterText(Pids, _parse_ids(Pids), _format_ids),
    "tid": FilterText(Tids, _parse_ids(Tids), _format_ids),
    "kernel": FilterText(Kernel, Kernel, _format_pattern),
    "include": FilterText(Include, parse_include, _format_include),
    "show_stacks": FilterText(ShowStacks, ShowStacks, _format_pattern),
    "hide_stacks": FilterText(HideStacks, HideStacks, _format_pattern),
    "show_from": FilterText(ShowFrom, ShowFrom, _format_pattern),
    "hide_frames": FilterText(HideFrames, HideFrames, _format_pattern),
    "hide_framework": FilterText(HideFramework, HideFramework, _format_pattern),
    "min_percent": FilterText(MinShare, parse_share, _format_share),
}
"""By the keys of `FILTER_KINDS`."""

_KIND_OF_TYPE = {FILTER_TEXTS[kind.key].type: kind for kind in FILTER_KINDS}


def kind_of(filter_type: type[Filter]) -> FilterKind:
    """Return how filters of a type are called and what option makes them."""
    return _KIND_OF_TYPE[filter_type]


def format_filter(filter_: Filter) -> str:
    """Format ``filter_`` as the text of its option."""
    return FILTER_TEXTS[kind_of(type(filter_)).key].format(filter_)


def parse_filters(
    *,
    time: Texts = None,
    at: Texts = None,
    step: Texts = None,
    rank: Texts = None,
    nvtx: Texts = None,
    phase: Texts = None,
    device: Ids = None,
    stream: Ids = None,
    pid: Ids = None,
    tid: Ids = None,
    kernel: Texts = None,
    include: Texts = None,
    show_stacks: Texts = None,
    hide_stacks: Texts = None,
    show_from: Texts = None,
    hide_frames: Texts = None,
    hide_framework: bool | str = False,
    min_percent: float | None = None,
) -> tuple[Filter, ...]:
    """Parse filters from option-like values; all must hold, and so must all of a tuple of texts.

    A tuple of numbers is a choice of any of them; ``hide_framework`` may be an expression in place
    of the usual one. UsageError where a text is wrong.
    """
    values = dict(locals())
    filters: list[Filter] = []
    for kind in FILTER_KINDS:
        filters += _filters_of(kind, values[kind.key])
    for filter_ in filters:
        if isinstance(filter_, ExpressionFilter):
            filter_.compile()
    return tuple(filters)


def _filters_of(kind: FilterKind, value: Any) -> list[Filter]:
    """The filters of one kind: one for each text, or one for all numbers; none without a value."""
    if value is None or value is False:
        return []
    if value is True:
        return [HideFramework()]
    if kind.takes == "number":
        return [MinShare(value)]
    if kind.takes == "numbers":
        made: Any = FILTER_TEXTS[kind.key].type
        return [made((value,) if isinstance(value, int) else tuple(value))]
    texts = (value,) if isinstance(value, str) else value
    return [FILTER_TEXTS[kind.key].parse(text) for text in texts]


where = parse_filters
"""Public name of `parse_filters`, which reads well in ``trace.tree(where=flame.where(...))``."""
