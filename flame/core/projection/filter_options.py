"""Filters as option texts: the exact way back through the readers of `projection.filters`."""

from __future__ import annotations

import re

from flame.core.projection.filters import NvtxRange, Time

_SCALES = ((10**9, 9, "s"), (10**6, 6, "ms"), (10**3, 3, "us"))


def spell_window(one: Time) -> str:
    """The window that `flame.core.projection.filters.parse_window` reads as ``one``."""
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
    """The range filter that `flame.core.projection.filters.parse_nvtx_range` reads as ``one``."""
    name = _escaped(one.name)
    if one.domain is None:
        return name
    ending = len(name) - len(name.rstrip("\\"))
    return f"{name}{ending * chr(92)}@{_escaped(one.domain)}"


def _escaped(text: str) -> str:
    """``text`` with a backslash before each at sign, and those before it doubled."""
    return re.sub(r"(\\*)@", r"\1\1\\@", text)
