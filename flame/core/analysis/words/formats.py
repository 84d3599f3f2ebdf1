"""Choose words for what a profile shows, after the format that it was read from."""

from __future__ import annotations

import re
from typing import NamedTuple

from flame.core.model.frames import Frame, Kind
from flame.core.model.meta import Share
from flame.core.model.profile import Profile


class Terms(NamedTuple):
    """Name the ranges of a trace: singular, plural, as short as can be, and the kind of frame.

    ``general`` and ``all`` stand in sentences on ranges in general: singular and plural.
    """

    range: str
    ranges: str
    short: str
    kind: str
    general: str
    all: str


NVTX = Terms("NVTX range", "NVTX ranges", "NVTX", "nvtx", "range", "ranges")
OPERATORS = Terms("operator", "operators", "operators", "operator", "operator", "operators")
SCOPES = Terms("scope", "scopes", "scopes", "scope", "scope", "scopes")
RANGES = Terms("range", "ranges", "ranges", "range", "range", "ranges")

_OF_FORMAT = {"kineto": OPERATORS, "proton": SCOPES, "folded": RANGES, "speedscope": RANGES}


def terms_of(profile: Profile) -> Terms:
    """Choose words for the ranges of ``profile``: operators in PyTorch traces, scopes in Proton.

    Stacks in text say at most that something was a range, and not whose; nor do files of several
    kinds together.
    """
    formats = {source.meta.format for source in profile.sources}
    terms = {_OF_FORMAT.get(format_, NVTX) for format_ in formats} or {NVTX}
    return terms.pop() if len(terms) == 1 else RANGES


def level_word(level: str, terms: Terms) -> str:
    """Call ``level`` as the trace calls its frames; options spell it as it is."""
    return terms.kind if level == "nvtx" else level


def reworded(text: str, terms: Terms) -> str:
    """Say ``text``, which speaks of ranges in general, in the words of a trace."""
    article = "an" if terms.general.startswith("o") else "a"
    words = {"range": terms.general, "ranges": terms.all, "nvtx": terms.kind}
    words["a range"] = f"{article} {terms.general}"
    plain = text.replace("ranges or operators", "ranges")
    return re.sub(r"\b(?:a range|ranges?|nvtx)\b", lambda found: words[found[0]], plain)


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
