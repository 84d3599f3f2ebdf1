"""What things are called, after the kind of file that a profile was read from."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.model.frames import Frame, Kind
from flame.core.model.meta import Share
from flame.core.model.profile import Profile


class Terms(NamedTuple):
    """Words for the ranges of a trace: one, many, as short as can be, and for what one is."""

    range: str
    ranges: str
    short: str
    kind: str = "range"


NVTX = Terms("NVTX range", "NVTX ranges", "NVTX", "nvtx")
OPERATORS = Terms("operator or annotation", "operators and annotations", "operators")
SCOPES = Terms("scope", "scopes", "scopes", "scope")
RANGES = Terms("range", "ranges", "ranges")
_MIXED = Terms("range or operator", "ranges and operators", "ranges")

_OF_FORMAT = {"kineto": OPERATORS, "proton": SCOPES, "folded": RANGES, "speedscope": RANGES}


def terms_of(profile: Profile) -> Terms:
    """What the ranges of ``profile`` are: operators in PyTorch traces, scopes in those of Proton.

    Stacks in text say at most that something was a range, and not whose.
    """
    formats = {source.meta.format for source in profile.sources}
    found = {_OF_FORMAT.get(one, NVTX) for one in formats} or {NVTX}
    if found == {NVTX, OPERATORS}:
        return _MIXED
    return found.pop() if len(found) == 1 else RANGES


def coverage_of(profile: Profile) -> dict[str, tuple[str, Share]]:
    """By level, what launches of the GPU time may have: what it is called in short, and how much.

    Without what the format never records: PyTorch's profiler and flame know no native frames.
    """
    titles = {level: level for level in profile.coverage} | {"nvtx": terms_of(profile).short}
    titles |= {"sass": "SASS"} if "sass" in titles else {}
    if {source.meta.format for source in profile.sources} <= {"kineto", "fdump"}:
        del titles["native"]
    return {level: (title, profile.coverage[level]) for level, title in titles.items()}


def short_place(frame: Frame) -> str:
    """File and line of ``frame`` in short, ``modeling.py:117``; empty where it has none."""
    name = frame.file.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{frame.line}" if name and frame.line else name


def kind_word(frame: Frame, terms: Terms) -> str:
    """What ``frame`` is, in a word of at most nine letters."""
    return terms.kind if frame.kind == Kind.NVTX else frame.kind.title
