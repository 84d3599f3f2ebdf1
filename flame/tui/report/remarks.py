"""Tell of the selected frame what the report has found: a tail, findings, causes of idle time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from flame.core.frame import ACTIVITY_KINDS, Kind
from flame.core.units import format_ns
from flame.reporting.values import cells_by_key
from flame.tui.details.labels import Label
from flame.tui.report.entries import WrittenSections, findings_of
from flame.tui.report.worker import BUDGET, FINDINGS, TAILS

_LEAST = 4
"""Characters of a name that is looked for in what findings claim."""

_MOST = 2
"""Findings that are told of a frame."""

_MOST_CAUSES = 3
_IDLE = "idle: "
"""What the parts of a GPU's time begin with in which it ran nothing."""


def remarks_on(sections: WrittenSections, name: str, kind: Kind) -> list[tuple[Label, str]]:
    """Say what ``sections`` of a report say of the frames called ``name``."""
    remarks = [(Label.SLOW, text) for text in _tails(sections, name, kind)]
    findings = [(Label.FINDING, text) for text in dict.fromkeys(_findings(sections, name))]
    return [*remarks[:1], *findings[:_MOST]]


def why_idle(sections: WrittenSections) -> list[tuple[Label, str]]:
    """Say what the GPUs waited for while they ran nothing, most first, and where more is told."""
    found = sections.get(BUDGET)
    if found is None or isinstance(found, str):
        return []
    sums = Counter[str]()
    for table in found.tables:
        for row in cells_by_key(table.table):
            part, ns = str(row.get("part")), row.get("ns")
            if part.startswith(_IDLE) and isinstance(ns, int):
                sums[part.removeprefix(_IDLE)] += ns
    told = sums.most_common(_MOST_CAUSES)
    causes = ", ".join(f"{cause} {format_ns(ns)}" for cause, ns in told)
    return [(Label.CAUSES, f"{causes} (! has all)")] if causes else []


def _tails(known: WrittenSections, name: str, kind: Kind) -> Iterator[str]:
    """Whether launches of a kernel in one configuration have a tail, or are mixed work."""
    found = known.get(TAILS)
    if found is None or isinstance(found, str) or kind not in ACTIVITY_KINDS:
        return
    words: dict[str, list[int]] = {}
    for table in found.tables:
        for row in cells_by_key(table.table):
            if row.get("name") == name and (word := row.get("is")):
                ns = row.get("excess_ns")
                words.setdefault(str(word), []).append(ns if isinstance(ns, int) else 0)
        break  # the others are calls and ranges
    for word, excess in words.items():
        yield f"{word}, {format_ns(sum(excess))} above the median"


def _findings(known: WrittenSections, name: str) -> Iterator[str]:
    """The titles of the findings that lead to the frame, or name it."""
    section = known.get(FINDINGS)
    if section is None or isinstance(section, str) or len(name) < _LEAST:
        return
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    places = [place for table in section.tables for place in table.table.places]
    for number, one in enumerate(findings_of(known) or ()):
        place = places[number] if number < len(places) else None
        if (place and name in place.frames) or word.search(one.text("claim")):
            yield f"{one.severity}: {one.text('title')}"
