"""Write findings as text: what each is, why, what to do, and the command that shows it."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from flame.core.report.findings import section as findings
from flame.core.report.sections.budget import mostly
from flame.core.report.table import Place, Section, Table, TableColumn, Value
from flame.core.shown_text import cells, cut, printable
from flame.core.units import format_ns
from flame.reporting.links import Link
from flame.reporting.values import write_value

_INDENT = "          "
_NOTHING = "Nothing that the rules know"
_BUSY = 90
"""Per cent of the window from which on the kernels themselves are what is left."""

_MOST_GPUS = 8
SEPARATOR = " · "

FindingCells = dict[str, Value]


def findings_lines(section: Section, width: int, link: Link | None = None) -> Iterator[str]:
    """Write findings, at most `findings.MOST` unless all are wanted; of several GPUs as one.

    Those that are ``apart`` say each something of their own.
    """
    facts = section.facts
    apart = bool(facts.get("apart"))
    groups = _groups(section.tables[0], apart)
    most = len(groups) if facts.get("all") else findings.MOST
    all_gpus: Any = facts.get("gpus", ())
    several = apart or (
        len({*(one["gpu"] for one in all_gpus), *(g for one in groups for g in _gpus(one))}) > 1
    )
    yield from _headlines(section, width)
    if not groups:
        yield from _wrapped(nothing_found(section), width, "  ")
    for number, group in enumerate(groups[:most]):
        if number:
            yield ""
        yield from _finding(section, group, width, several)
        if link is not None and (command := link(group[0][1])):
            yield from _command(command, width)
    if len(groups) > most:
        yield f"  … and {len(groups) - most} more: --all"
    if facts.get("all"):
        yield from _abstained(facts["abstained"], width)


def _headlines(section: Section, width: int) -> Iterator[str]:
    """What most of the window of each GPU is."""
    for head, parts in headlines(section):
        yield cut(_fitting(printable(f"  {head}"), parts, width), width)
    if section.facts.get("gpus"):
        yield ""


def headlines(section: Section) -> Iterator[tuple[str, list[str]]]:
    """Say what most of the window of each GPU is, and its largest parts."""
    gpus: Any = section.facts.get("gpus", ())
    for one in gpus[:_MOST_GPUS]:
        words = mostly(one["character"])
        yield f"{one['gpu']}, {format_ns(one['window_ns'])}, {words}: ", one["parts"]
    if len(gpus) > _MOST_GPUS:
        yield f"… and {len(gpus) - _MOST_GPUS} more GPUs: --section budget", []


def evidence_words(section: Section, finding: FindingCells) -> str:
    """Write the numbers that a finding rests on, but for its bound, which it tells itself."""
    return SEPARATOR.join(f"{name} {value}" for name, value in _evidence(section, finding))


def more_evidence(section: Section, finding: FindingCells) -> list[str]:
    """Write those of the numbers, no moments, that do not stand in the claim already."""
    told = _evidence(section, finding, without="moment")
    return [f"{name} {value}" for name, value in told if not _says(str(finding["claim"]), value)]


def _says(claim: str, value: str) -> bool:
    """Whether a claim has a number, not as a part of another one."""
    return re.search(rf"(?<![\w.,]){re.escape(value)}(?!\w|[.,]\d)", claim) is not None


def _evidence(
    section: Section, found: FindingCells, without: str = ""
) -> Iterator[tuple[str, str]]:
    """The names of the numbers that a finding rests on, and the numbers."""
    rows: Any = section.facts.get("evidence", ())
    write, bound = write_value(None), found.get("bound_ns")
    for one in rows:
        mine = (one["id"], one["gpu"]) == (found["id"], found["gpu"])
        if mine and one["unit"] != without and (one["name"], one["value"]) != ("at most", bound):
            value = write(TableColumn("", "", one["unit"]), one["value"])
            yield str(one["name"]), f"{value} GB/s" if one["unit"] == "GB/s" else value


def nothing_found(section: Section) -> str:
    """Say what to look at where nothing was found: kernels of a busy GPU, else its idle time."""
    if "nothing" in section.facts:
        return str(section.facts["nothing"])
    gpus: Any = section.facts.get("gpus", ())
    if any((one["busy_percent"] or 0) < _BUSY for one in gpus):
        return f"{_NOTHING}: see idle for what the GPUs waited for (--section idle)."
    top: Any = max(gpus, key=lambda one: one["top_kernel_percent"] or 0, default=None)
    if top is None or top["top_kernel"] is None:
        return f"{_NOTHING}: see the budget for where the time went (--section budget)."
    percent = f"{top['top_kernel_percent']:.1f} % of GPU time"
    return (
        f"{_NOTHING}: the GPUs are kept busy. What is left are the kernels themselves "
        f"(--section kernels,tails), most of all {top['top_kernel']} with {percent}."
    )


def _fitting(head: str, parts: Sequence[str], width: int) -> str:
    """The ``head`` and as many of the ``parts`` as fit, one at least."""
    lines = (head + SEPARATOR.join(parts[:most]) for most in range(len(parts), 0, -1))
    return next((line for line in lines if cells(line) <= width), head + "".join(parts[:1]))


Group = list[tuple[FindingCells, Place | None]]
"""What a rule says of several GPUs, the most first, and where it leads."""


def _groups(table: Table, apart: bool) -> list[Group]:
    """The rows of one finding together, in the order of their first; each alone if ``apart``."""
    keys = [column.key for column in table.columns]
    found: dict[object, Group] = {}
    for at, (row, place) in enumerate(zip(table.rows, table.places, strict=True)):
        one = dict(zip(keys, row, strict=True))
        found.setdefault(at if apart else one["id"], []).append((one, place))
    return list(found.values())


def _gpus(group: Group) -> list[str]:
    return [str(one["gpu"]) for one, _ in group if one["gpu"] != findings.ALL_GPUS]


def _finding(section: Section, group: Group, width: int, several: bool) -> Iterator[str]:
    found, gpus = group[0][0], _gpus(group)
    where = f"{gpus[0]}: " if several and gpus else ""
    saves = _saves(found)
    yield printable(f"  {found['severity']!s:<8}{where}{found['title']}{saves and f'  ({saves})'}")
    others = [
        f"{gpu} ({_saves(one)})" if _saves(one) else gpu
        for gpu, (one, _) in list(zip(gpus, group, strict=False))[1:]
    ]
    also = f"Also {', '.join(others)}." if others else ""
    yield from _wrapped(str(found["claim"]), width)
    yield from _numbers(section, found, width)
    for text in (also, caution(found), found["advice"]):
        yield from _wrapped(str(text), width) if text else ()


def _numbers(section: Section, found: FindingCells, width: int) -> Iterator[str]:
    """The evidence: a line of what the claim has not, or all of it where all is asked for."""
    if section.facts.get("all"):
        words = (f"{name} {value}" for name, value in _evidence(section, found))
        yield from (f"{_INDENT}{line}" for line in _filled(words, width - len(_INDENT)))
    elif parts := more_evidence(section, found):
        yield cut(_fitting(_INDENT, [printable(part) for part in parts], width), width)


def _filled(words: Iterable[str], width: int) -> list[str]:
    """Lines of ``words``, each of which stays whole where there is room."""
    lines: list[str] = []
    for word in map(printable, words):
        longer = f"{lines[-1]}{SEPARATOR}{word}" if lines else word
        if lines and cells(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(cut(word, width))
    return lines


def caution(finding: FindingCells) -> str:
    """Write what a finding does not know for sure; empty where that is nothing."""
    note = finding.get("confidence_note")
    return f"Caution: {note}." if note else ""


def _saves(found: FindingCells) -> str:
    """What mending it can save, in words; empty where that is not told."""
    bound = found.get("bound_ns")
    return "" if bound is None else f"at most {format_ns(float(bound))}"


def _wrapped(text: str, width: int, indent: str = _INDENT) -> list[str]:
    return textwrap.wrap(
        printable(text),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def _command(command: str, width: int) -> Iterator[str]:
    """A command as lines of ``width`` that a shell puts together; none where a word is longer."""
    lines = [_INDENT]
    for word in map(shlex.quote, shlex.split(command)):
        line = lines[-1] + word if lines[-1] == _INDENT else f"{lines[-1]} {word}"
        if cells(line) > width - 2 and lines[-1] != _INDENT:
            lines[-1] += " \\"
            line = f"{_INDENT}    {word}"
            lines.append(line)
        lines[-1] = line
    if command == printable(command) and all(cells(line) <= width for line in lines):
        yield from lines


def _abstained(rows: Any, width: int) -> Iterator[str]:
    """The rules that could not judge, and why."""
    if rows:
        yield from ("", "  Not judged")
    for one in rows:
        text = printable(f"{one['id']}: {one['why']}")
        yield from textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="      ")
