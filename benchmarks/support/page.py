"""Writes what was measured into the manual's page, between its marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.support.goals import GOALS, Goal
from benchmarks.support.rows import Row, shown

# Not the marks of docs/generate.py, which cannot measure.
_MARK = re.compile(r"<!-- measured: ([\w ]+) -->\n.*?<!-- end of \1 -->\n", re.DOTALL)


class Result(NamedTuple):
    """What one script has told, and the circumstances."""

    script: str
    command: str
    size: str
    date: str
    """Year to minute, in UTC."""
    state: str
    load: str
    seconds: float
    failure: str
    rows: Sequence[Row]
    text: str
    """What it printed, in place of rows where it has none."""


def written(page: str, parts: Mapping[str, str]) -> str:
    """The text of the page with its measured parts as in ``parts``."""

    def part(mark: re.Match[str]) -> str:
        name = mark[1]
        return f"<!-- measured: {name} -->\n{parts[name]}<!-- end of {name} -->\n"

    return _MARK.sub(part, page)


def goal_table(results: Iterable[Result]) -> str:
    """Each goal beside the figure of 0.1 and the last that was measured."""
    in_time = sorted(results, key=lambda one: one.date)
    found = {row.name: row for result in in_time for row in result.rows}
    lines = (_goal(goal, found.get(goal.row)) for goal in GOALS)
    return table(("figure", "0.1", "goal", "now", ""), lines)


def _goal(goal: Goal, row: Row | None) -> tuple[str, ...]:
    if row is None:
        return goal.row, goal.before, goal.text, "", "not measured"
    verdict = goal.verdict(row.figure)
    told = verdict if verdict == "met" else f"**{verdict}**"
    return goal.row, goal.before, goal.text, f"{shown(row.figure)}", told


def figures(results: Iterable[Result]) -> str:
    """A section for each script: its rows, or else its text."""
    return "\n".join(map(_section, results))


def _section(result: Result) -> str:
    took = f"{result.state}, {result.date}, {result.seconds:.0f} s, load {result.load} before it"
    head = f"### {result.script}, {result.size}\n\n`{result.command}`: {took}.\n"
    parts = [head]
    if result.failure:
        parts.append(f"**It failed:** {result.failure}.\n")
    if result.rows:
        lines = ((row.name, f"{shown(row.figure)} {row.unit}", row.of) for row in result.rows)
        parts.append(table(("what", "figure", "of"), lines))
    elif result.text:
        # Indented: a line of it may begin as a command line of flame does.
        parts.append("```\n" + "".join(f"  {one}\n" for one in result.text.splitlines()) + "```\n")
    return "\n".join(parts)


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "".join(f"{line}\n" for line in _table(head, lines))


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _cells(head)
    yield "|" + "---|" * len(head)
    yield from map(_cells, lines)


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def without_paths(text: str, *folders: Path) -> str:
    """The text without folders of this machine."""
    for folder in folders:
        text = text.replace(f"{folder}/", "").replace(str(folder), ".")
    return re.sub(r"/tmp/tmp\w+/", "", text)
