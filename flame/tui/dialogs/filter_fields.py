"""The kinds of filters as a user edits them: as a text, or as a list to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flame.core.analysis.wording import NVTX, OPERATORS, SCOPES, terms_of
from flame.core.columns import I8, Column, sum_by
from flame.core.errors import UsageError
from flame.core.model.frames import ACTIVITY_KINDS, Kind
from flame.core.model.grouping import device_name, process_name, thread_name
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import (
    format_nvtx_range,
    format_window,
    parse_nvtx_range,
    parse_ranks,
    parse_steps,
    parse_window,
)
from flame.core.projection.filters import (
    Devices,
    Filter,
    HideFrames,
    HideStacks,
    Include,
    Kernel,
    MinShare,
    NvtxRange,
    Pids,
    Ranks,
    ShowFrom,
    ShowStacks,
    Step,
    Streams,
    Tids,
    Time,
)
from flame.core.units import format_count, format_ns
from flame.tui.session.patterns import exact
from flame.tui.session.query import Query

_SOME = 4
_AT_ONCE = 10_000
"""Frames up to which their names are compared in a few milliseconds."""


@dataclass(frozen=True)
class TextField:
    """A kind of filter that is typed.

    ``spell`` is the text of a filter, ``read`` the filter of a text (UsageError where it is
    wrong), ``guess`` the text to begin with, from the selected frame's name and kind; ``doubt``
    says why a filter would leave nothing, as far as that is known at once, ``applies`` whether
    there is anything in the trace that such filters are about.
    """

    type: type[Filter]
    title: str
    about: Callable[[Profile], str]
    spell: Callable[[Any], str]
    read: Callable[[str], Filter]
    guess: Callable[[str, Kind], str]
    several: bool = False
    doubt: Callable[[Profile, Any], str] = lambda profile, one: ""
    applies: Callable[[Profile], bool] = lambda profile: True


@dataclass(frozen=True)
class Option:
    """One thing to choose: its number or kind, its name, its weight (None: not in the trace)."""

    value: int
    name: str
    weight: int | None


@dataclass(frozen=True)
class ListField:
    """A kind of filter that is chosen from what the trace has, if it ``applies``: has anything."""

    type: type[Filter]
    title: str
    options: Callable[[Profile], list[Option]]
    chosen: Callable[[Any], tuple[int, ...]]
    make: Callable[[tuple[int, ...]], Filter]
    applies: Callable[[Profile], bool]
    several: bool = False

    def choices(self, profile: Profile, one: Filter | None) -> list[Option]:
        """All options, the heaviest first, then those of ``one`` that the trace does not have."""
        found = sorted(self.options(profile), key=lambda option: -(option.weight or 0))
        known = {option.value for option in found}
        absent = [value for value in self.chosen(one) if value not in known] if one else []
        return [*found, *(Option(value, f"{self.title} {value}", None) for value in absent)]


Field = TextField | ListField


# Typed


def _regex(kind: Callable[[str], Filter]) -> Callable[[str], Filter]:
    def read(text: str) -> Filter:
        Query(text).compile()
        return kind(text)

    return read


def _pattern(one: Any) -> str:
    return str(one.pattern)


def _frame(name: str, kind: Kind) -> str:
    return exact(name) if kind not in (Kind.ROOT, Kind.REST) else ""


def _kernel(name: str, kind: Kind) -> str:
    return exact(name) if kind == Kind.KERNEL else ""


def _range(name: str, kind: Kind) -> str:
    return format_nvtx_range(NvtxRange(name)) if kind == Kind.NVTX else ""


def _no_such_range(profile: Profile, one: NvtxRange) -> str:
    """That no range is called so, and whether any has it in its name."""
    if len(profile.frames) > _AT_ONCE or one.ranges(profile).any():
        return ""
    part = replace(one, name=f"*{one.name}*")
    number = int(part.ranges(profile).sum())
    names = f"{format_count(number)} name{'' if number == 1 else 's'}"
    hint = f": {format_nvtx_range(part)} would find {names}" if number else ""
    return f"no range is called so{hint}"


def _nothing(name: str, kind: Kind) -> str:
    return ""


def _read_share(text: str) -> MinShare:
    number = text.strip().removesuffix("%").strip()
    try:
        return MinShare(float(number))
    except ValueError:
        raise UsageError(f"'{number}' is not a number of percent, such as 0.5") from None


def _says(text: str) -> Callable[[Profile], str]:
    return lambda profile: text


def _steps_there(profile: Profile) -> str:
    """Which steps there are, and which took longest."""
    said, steps = "steps A-B, such as 3-5, or one", profile.steps
    if steps is None or not len(steps):
        return said
    numbers, length = _step_numbers(profile), steps.end - steps.start
    longest = int(np.argmax(length))
    told = f"; the longest is {steps.number[longest]}: {format_ns(int(length[longest]))}"
    return f"{said}; the trace has {_listed(numbers)}{told if len(numbers) > 1 else ''}"


def _listed(numbers: I8) -> str:
    """``0 to 12``, and how many of them there are where some are missing."""
    first, last = int(numbers[0]), int(numbers[-1])
    if first == last:
        return f"only {first}"
    some = "" if last - first + 1 == len(numbers) else f"{format_count(len(numbers))} of "
    return f"{some}{first} to {last}"


def _ranks_there(profile: Profile) -> str:
    names = [source.label for source in profile.sources]
    known = ", ".join(names[:_SOME]) + (", …" if len(names) > _SOME else "")
    return f"numbers or names, such as {known}; * and ? stand for any text and letter"


def _step_numbers(profile: Profile) -> I8:
    """The steps in the trace, ascending."""
    return np.unique(np.zeros(0, np.int64) if profile.steps is None else profile.steps.number)


def _no_such_step(profile: Profile, one: Step) -> str:
    numbers = _step_numbers(profile)
    known = (numbers >= one.first) & (numbers <= one.last)
    return "" if known.any() else "the trace has no such step"


def _read_steps(text: str) -> Step:
    return parse_steps(text.replace("–", "-"))


def _spell_steps(one: Any) -> str:
    return str(one.first) if one.first == one.last else f"{one.first}-{one.last}"


def _about_ranges(profile: Profile) -> str:
    terms = terms_of(profile)
    what = "range" if terms is NVTX else terms.range
    domain = "" if terms in (OPERATORS, SCOPES) else " or NAME@DOMAIN"
    article = "an" if what.startswith("o") else "a"
    return f"below such {article} {what}: NAME{domain}, * and ? stand for any text and letter"


def _has(kind: Kind) -> Callable[[Profile], bool]:
    return lambda profile: bool((profile.frames.kind == kind).any())


def _has_streams(profile: Profile) -> bool:
    return len(profile.grouping.stream_ids) > 0


def _has_work(profile: Profile) -> bool:
    return not profile.resolved and len(profile.activities) > 0


def _span(profile: Profile) -> str:
    begin, end = format_ns(profile.begin), format_ns(profile.end)
    return f"begin/end, such as 5s/7s or 500ms/; the trace runs from {begin} to {end}"


# Chosen


def weight_of(profile: Profile) -> Metric:
    """What options are weighed by: the GPU time, or what a file of stacks measures first."""
    return profile.metrics[0]


def _weights(profile: Profile, index: Column, size: int) -> I8:
    """Weights by ``index`` (i4 per group of activities, -1: none) from 0 to ``size``."""
    value, _ = profile.totals_by_group(weight_of(profile))
    return sum_by(index + 1, value, size + 1)[1:]


def _options(rows: Iterable[tuple[int, str]], weights: I8) -> list[Option]:
    """Options of (number, name) rows; those with the same number are one."""
    found: dict[int, Option] = {}
    for (number, name), weight in zip(rows, weights.tolist(), strict=True):
        known = found.setdefault(number, Option(number, name, 0))
        found[number] = Option(number, known.name, (known.weight or 0) + weight)
    return list(found.values())


def _devices(profile: Profile) -> list[Option]:
    rows = [(device.id, device_name(device)) for device in profile.devices]
    return _options(rows, _weights(profile, profile.activities.groups.device, len(rows)))


def _streams(profile: Profile) -> list[Option]:
    ids, stream = profile.grouping.stream_ids, profile.activities.groups.stream
    index = np.where(stream < 0, -1, np.searchsorted(ids, stream))
    rows = [(number, f"stream {number}") for number in ids.tolist()]
    return _options(rows, _weights(profile, index, len(rows)))


def _processes(profile: Profile) -> list[Option]:
    rows = [(process.pid, process_name(process)) for process in profile.processes]
    return _options(rows, _weights(profile, profile.activities.groups.process, len(rows)))


def _threads(profile: Profile) -> list[Option]:
    rows = [
        (thread.tid, _thread_name(profile, place)) for place, thread in enumerate(profile.threads)
    ]
    return _options(rows, _weights(profile, profile.activities.groups.thread, len(rows)))


def _thread_name(profile: Profile, place: int) -> str:
    """The thread's name, and its process's if there are several."""
    thread = profile.threads[place]
    if len(profile.processes) < 2:
        return thread_name(thread)
    return f"{thread_name(thread)} of {process_name(profile.processes[thread.process])}"


def _kinds(profile: Profile) -> list[Option]:
    weights = _weights(profile, profile.activities.groups.kind.astype(np.int64), len(Kind))
    return [Option(kind, kind.title, int(weights[kind])) for kind in ACTIVITY_KINDS]


def _ids(one: Any) -> tuple[int, ...]:
    return tuple(one.ids)


def _included(one: Include) -> tuple[int, ...]:
    return tuple(map(int, one.kinds))


def _include(kinds: tuple[int, ...]) -> Include:
    return Include(tuple(map(Kind, kinds)))


def _stacks(kind: type[Filter], title: str, about: str) -> TextField:
    read = _regex(kind)
    return TextField(kind, title, _says(about), _pattern, read, _frame, several=True)


_RE = "a regular expression found anywhere in a frame's name"
FIELDS: tuple[Field, ...] = (
    _stacks(ShowStacks, "only stacks with", f"stacks with such a frame; {_RE}"),
    _stacks(HideStacks, "without", f"no stacks with such a frame; {_RE}"),
    _stacks(ShowFrom, "from", f"stacks from such a frame on; {_RE}"),
    _stacks(HideFrames, "hide", f"such frames left out, what is below kept; {_RE}"),
    TextField(
        Time,
        "time",
        _span,
        format_window,
        parse_window,
        _nothing,
        applies=lambda profile: profile.timed,
    ),
    TextField(
        Step,
        "steps",
        _steps_there,
        _spell_steps,
        _read_steps,
        _nothing,
        doubt=_no_such_step,
        applies=lambda profile: len(_step_numbers(profile)) > 0,
    ),
    TextField(
        Ranks,
        "ranks",
        _ranks_there,
        lambda one: ",".join(one.names),
        parse_ranks,
        _nothing,
        doubt=lambda profile, one: "" if one.matches_any(profile) else "no trace is called that",
        applies=lambda profile: len(profile.sources) > 1,
    ),
    TextField(
        NvtxRange,
        "NVTX range",
        _about_ranges,
        format_nvtx_range,
        parse_nvtx_range,
        _range,
        doubt=_no_such_range,
        applies=_has(Kind.NVTX),
    ),
    ListField(Devices, "device", _devices, _ids, Devices, lambda one: bool(one.devices)),
    ListField(Streams, "stream", _streams, _ids, Streams, _has_streams),
    ListField(Pids, "process", _processes, _ids, Pids, lambda one: bool(one.processes)),
    ListField(Tids, "thread", _threads, _ids, Tids, lambda one: bool(one.threads)),
    TextField(
        Kernel,
        "kernel",
        _says("kernels only, by a regular expression found in their name"),
        _pattern,
        _regex(Kernel),
        _kernel,
        applies=_has(Kind.KERNEL),
    ),
    ListField(Include, "kinds", _kinds, _included, _include, _has_work),
    TextField(
        MinShare,
        "minimum share",
        _says("percent of the total; smaller frames are merged into one"),
        lambda one: f"{one.percent:g}",
        _read_share,
        _nothing,
    ),
)
"""All kinds of filters in the order of the dialog."""
