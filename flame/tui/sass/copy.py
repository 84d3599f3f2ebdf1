"""A listing as plain text: a row for the clipboard, all rows, the reasons in a line."""

from __future__ import annotations

from flame.core.model.stalls import stall_of
from flame.core.units import format_count, format_percent
from flame.tui.sampling.subject import Subject
from flame.tui.sass.listing import Listing, Row, RowKind
from flame.tui.sass.reasons import counted
from flame.tui.toolkit.text import printable

_MOST = 6


def line(subject: Subject, shown: Listing, row: Row) -> str:
    """``row`` as text: offset, samples, share and what it says."""
    samples = shown.samples(row)
    share = format_percent(samples, subject.samples) if samples else ""
    number = format_count(samples) if samples else ""
    offset = f"0x{int(shown.version.code.offset[row.first]):04x}"
    offset = "" if row.kind == RowKind.SOURCE else offset
    indent = "  " if shown.indented and row.kind != RowKind.SOURCE else ""
    return f"{offset:8}{number:>11}{share:>9}  {indent}{shown.text(row)}".rstrip()


def listing(subject: Subject, shown: Listing) -> str:
    """All rows below the kernel's name."""
    rows = (line(subject, shown, shown[row]) for row in range(len(shown)))
    return "\n".join([subject.name, *rows])


def reasons(shown: Listing, row: Row) -> str:
    """The reasons of ``row`` with their shares, the most sampled first."""
    version = shown.version
    known = counted(version.reasons, version.by_reason(row.first, row.last))
    whole = sum(samples for _, samples in known)
    parts = (
        f"{printable(stall_of(key).title)} {format_percent(samples, whole)}"
        for key, samples in known[:_MOST]
    )
    return " · ".join(parts)
