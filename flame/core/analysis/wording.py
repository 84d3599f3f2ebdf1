"""Choose words for what a profile shows, after the format that it was read from."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.model.frames import Frame, Kind
from flame.core.model.meta import Share
from flame.core.model.profile import Profile


class Terms(NamedTuple):
    """Name the ranges of a trace: singular, plural, as short as can be, and the kind of frame."""

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
    """Choose words for the ranges of ``profile``: operators in PyTorch traces, scopes in Proton.

    Stacks in text say at most that something was a range, and not whose.
    """
    formats = {source.meta.format for source in profile.sources}
    terms = {_OF_FORMAT.get(format_, NVTX) for format_ in formats} or {NVTX}
    if terms == {NVTX, OPERATORS}:
        return _MIXED
    return terms.pop() if len(terms) == 1 else RANGES


def coverage_of(profile: Profile) -> dict[str, tuple[str, Share]]:
    """List coverage by level: what is covered, in short, and the share of the GPU time.

    Without what the format never records: PyTorch's profiler and flame know no native frames.
    """
    titles = {level: level for level in profile.coverage} | {"nvtx": terms_of(profile).short}
    titles |= {"sass": "SASS"} if "sass" in titles else {}
    if {source.meta.format for source in profile.sources} <= {"kineto", "fdump"}:
        del titles["native"]
    return {level: (title, profile.coverage[level]) for level, title in titles.items()}


def short_place(frame: Frame) -> str:
    """Format file and line of ``frame`` in short, ``modeling.py:117``; empty where unknown."""
    name = frame.file.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{frame.line}" if name and frame.line else name


def kind_word(frame: Frame, terms: Terms) -> str:
    """Choose a word of at most nine letters for what ``frame`` is."""
    return terms.kind if frame.kind == Kind.NVTX else frame.kind.title
