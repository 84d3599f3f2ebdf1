"""Filters as option texts: the exact way back through the readers of `projection.filters`."""

from __future__ import annotations

import re

from flame.core.errors import UsageError
from flame.core.model.frames import ACTIVITY_KINDS
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
    _Expression,
)
from flame.core.units import parse_time

_AT = re.compile(r"(\\*)@")

Texts = str | tuple[str, ...] | None

Ids = int | tuple[int, ...] | None


_SCALES = ((10**9, 9, "s"), (10**6, 6, "ms"), (10**3, 3, "us"))


def spell_window(one: Time) -> str:
    """The window that `flame.core.projection.filter_options.parse_window` reads as ``one``."""
    begin, end = ("" if time is None else _spell_time(time) for time in (one.begin, one.end))
    return f"{begin}/{end}"


def _spell_time(time: int) -> str:
    sign, rest = "-" if time < 0 else "", abs(time)
    for scale, digits, unit in _SCALES:
        if rest >= scale:
            whole, part = divmod(rest, scale)
            fraction = f"{part:0{digits}d}".rstrip("0")
            return f"{sign}{whole}{'.' if fraction else ''}{fraction}{unit}"
    return f"{sign}{rest}ns"


def spell_range(one: NvtxRange) -> str:
    """The range filter that `parse_nvtx_range` reads as ``one``."""
    name = _escaped(one.name)
    if one.domain is None:
        return name
    ending = len(name) - len(name.rstrip("\\"))
    return f"{name}{ending * chr(92)}@{_escaped(one.domain)}"


def _escaped(text: str) -> str:
    """``text`` with a backslash before each at sign, and those before it doubled."""
    return re.sub(r"(\\*)@", r"\1\1\\@", text)


def parse_window(text: str) -> Time:
    """A window ``A/B``; either side may be empty: ``5s/7s``, ``500ms/``, ``/2s``."""
    begin, slash, end = text.partition("/")
    if not slash or not (begin or end):
        raise UsageError(f"--time '{text}': use A/B, such as 5s/7s, 500ms/ or /2s")
    window = Time(parse_time(begin) if begin else None, parse_time(end) if end else None)
    if window.begin is not None and window.end is not None and window.begin >= window.end:
        raise UsageError(f"--time '{text}': the window is empty, its end is not after its begin")
    return window


def parse_steps(text: str) -> Step:
    """Profiler steps: ``3-5``, or ``3`` alone."""
    found = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", text.strip())
    if not found:
        raise UsageError(f"--step '{text}': use A-B, such as 3-5, or a single number")
    step = Step(int(found[1]), int(found[2] or found[1]))
    if step.first > step.last:
        raise UsageError(f"--step '{text}': no step at all, its end is before its begin")
    return step


def parse_ranks(text: str) -> Ranks:
    """Files by rank or label from a list such as ``0,3``; ``*`` and ``?`` stand for any text."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageError(f"--rank '{text}': no rank given, use a number or a list such as 0,3")
    return Ranks(names)


def parse_nvtx_range(text: str) -> NvtxRange:
    r"""A range filter ``NAME[@DOMAIN]``, both globs; ``\@`` is an at sign in the name.

    Before an at sign, and only there, ``\\`` is one backslash.
    """
    name, at, domain = _AT.sub(_mark_at, text).partition("\0@")
    if not name:
        raise UsageError(f"--nvtx-range '{text}': a range name is missing, use NAME or NAME@DOMAIN")
    return NvtxRange(name, domain.replace("\0@", "@") if at else None)


def _mark_at(found: re.Match[str]) -> str:
    """Half of the backslashes, and the at sign: marked where it is not escaped."""
    backslashes, escaped = divmod(len(found[1]), 2)
    return backslashes * "\\" + ("@" if escaped else "\0@")


def parse_include(text: str) -> Include:
    """Activity kinds from a list such as ``kernel,memcpy``."""
    known = {kind.title: kind for kind in ACTIVITY_KINDS}
    names = [name.strip() for name in text.split(",") if name.strip()]
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        named = f"unknown kind '{wrong[0]}'" if wrong else "no kind given"
        raise UsageError(f"--include: {named}: choose from {', '.join(known)}")
    return Include(tuple(known[name] for name in names))


def where(
    *,
    time: Texts = None,
    step: Texts = None,
    rank: Texts = None,
    nvtx: Texts = None,
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
    min_percent: float | None = None,
) -> tuple[Filter, ...]:
    """Filters from option-like values; all of them must hold, and so must all of a tuple of texts.

    A tuple of numbers is a choice of any of them. UsageError where a text is wrong.
    """
    found: list[Filter] = [*map(parse_window, _texts(time)), *map(parse_steps, _texts(step))]
    found += map(parse_ranks, _texts(rank))
    found += map(parse_nvtx_range, _texts(nvtx))
    for kind, ids in ((Devices, device), (Streams, stream), (Pids, pid), (Tids, tid)):
        if ids is not None:
            found.append(kind((ids,) if isinstance(ids, int) else tuple(ids)))
    found += map(Kernel, _texts(kernel))
    found += map(parse_include, _texts(include))
    found += map(ShowStacks, _texts(show_stacks))
    found += map(HideStacks, _texts(hide_stacks))
    found += map(ShowFrom, _texts(show_from))
    found += map(HideFrames, _texts(hide_frames))
    for one in found:
        if isinstance(one, _Expression):
            one.compile()
    if min_percent is not None:
        found.append(MinShare(min_percent))
    return tuple(found)


def _texts(value: Texts) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
