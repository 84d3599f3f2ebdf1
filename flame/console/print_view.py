"""Print the static view: the icicle as an indented tree with bars, the top table, the notes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flame.console.metric_info import tree_metric_lines
from flame.console.trace_words import gpus, notes
from flame.console.work_info import tree_work_lines
from flame.core.analysis.chains import SIGN, chain_words, find_chains
from flame.core.analysis.frame_totals import FrameTotals, frame_totals, heaviest_rows
from flame.core.analysis.trace_summary import TraceSummary, summarize
from flame.core.analysis.utilization import utilizations
from flame.core.analysis.words.busy import BusyWords, busy_words
from flame.core.analysis.words.formats import (
    Terms,
    kind_word,
    level_word,
    reworded,
    short_place,
    terms_of,
)
from flame.core.analysis.words.memory import moment_words
from flame.core.model.frames import PART_KINDS
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.named_levels import explain_missing_levels
from flame.core.projection.number_folds import folds_numbers
from flame.core.projection.project import project, shown_profile
from flame.core.projection.selection import Selection
from flame.core.shown_text import cells, cut, printable
from flame.core.units import (
    format_count,
    format_counted,
    format_ns,
    format_percent,
    format_value,
    one_of,
)

NARROWEST = 72
MOST_LINES = 40
MOST_NAMES = 15
SMALLEST_SHARE = 0.01

_BAR = 12
_VALUE = 9
_KIND = 8
_LONGEST_PLACE = 30
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def view(profile: Profile, selection: Selection, title: str, width: int) -> str:
    """Write the view in lines of at most ``width`` cells (no fewer than 72), without colour.

    Raises as `flame.core.projection.project.project`.
    """
    width = max(width, NARROWEST)
    tree = project(profile, selection)
    summary = summarize(profile)
    icicle, table = _icicle(profile, selection, tree, width), _top(tree, summary.terms, width)
    sections = [_header(summary, tree, title, selection, width), icicle, table]
    shown = shown_profile(profile, selection)
    work = tree_work_lines(shown, tree, selection.where, width)
    measured = tree_metric_lines(shown, tree, selection.where, width)
    sections += [work, measured, notes(summary.warnings, width)]
    return "\n\n".join("\n".join(map(printable, lines)) for lines in sections if lines) + "\n"


def _header(
    summary: TraceSummary, tree: StackTree, title: str, selection: Selection, width: int
) -> list[str]:
    whole = [printable(title), gpus(summary.devices)]
    number, noun = summary.activities, summary.noun
    busy = busy_words(utilizations(summary.profile, selection.where))
    whole += (
        [format_counted(number, one_of(noun), noun)] if summary.resolved else _ran(summary, busy)
    )
    total = format_value(int(tree.total[0]), tree.metric.unit)
    levels = (level_word(level, summary.terms) for level in tree.levels)
    shown = [f"{tree.metric.title} {total} by {', '.join(levels)}"]
    if moment := moment_words(summary.profile, selection):
        shown.append(moment)
    if summary.gpu_time:
        parts = summary.titled_coverage.values()
        covered = [f"{word} {format_percent(part.ns, summary.gpu_time)}" for word, part in parts]
        shown.append(f"coverage: {', '.join(covered)}")
    return _joined([text for text in whole if text], "·", width) + _joined(shown, "·", width)


def _ran(summary: TraceSummary, busy: BusyWords) -> list[str]:
    """How busy the GPUs were, and with how much."""
    number = format_counted(summary.activities, "activity", "activities")
    if not summary.activities:
        return [f"nothing ran on a GPU in {format_ns(summary.duration)}"]
    if not busy.busy:
        return [f"GPU time {format_ns(summary.gpu_time)}", number]
    words = [busy.length, busy.each or busy.busy, busy.idle]
    return [*words, f"GPU time {format_ns(summary.gpu_time)}", number]


class _Line(NamedTuple):
    """A node or a chain of them, and how far it is indented."""

    nodes: tuple[int, ...]
    indent: int

    @property
    def node(self) -> int:
        """Return the first node."""
        return self.nodes[0]


def _icicle(profile: Profile, selection: Selection, tree: StackTree, width: int) -> list[str]:
    if not tree.total[0]:
        return [f"nothing to show: {tree.metric.title} is zero"]
    # A node is never larger than its parent and comes after it: the largest lines are a whole tree.
    heaviest = sorted(_lines(tree), key=lambda line: (-int(tree.total[line.node]), line.node))
    shown = sorted(heaviest[:MOST_LINES], key=lambda line: line.node)
    head = _numbers(tree, "%", "total", "count").rstrip()
    lines = [head, *(_drawn(tree, line, width) for line in shown)]
    hidden = len(tree) - sum(len(line.nodes) for line in shown)
    if hidden:
        lines.append(f"smaller frames not shown: {format_count(hidden)}")
    if lack := explain_missing_levels(profile, tree.metric, tree.levels):
        lines += textwrap.wrap(reworded(lack, terms_of(profile)), width)
    if folds_numbers(profile, selection.naming, tree):
        lines.append("* stands for numbers: --no-fold-numbers shows all of them")
    return lines


def _lines(tree: StackTree) -> Iterator[_Line]:
    """Lines of all nodes that hold at least one percent, in preorder; chains are one."""
    smallest = max(SMALLEST_SHARE * int(tree.total[0]), 1)
    chains = find_chains(tree)
    indent: dict[int, int] = {-1: -1}
    # What stands above such a node is never smaller: its parent has its line already.
    for node in np.flatnonzero(tree.total >= smallest).tolist():
        if node in indent:
            continue
        nodes = tuple(chains.around(node).tolist()) or (node,)
        depth = indent[int(tree.parent[node])] + 1
        indent.update(dict.fromkeys(nodes, depth))
        yield _Line(nodes, depth)


def _numbers(tree: StackTree, percent: str, total: str, count: str) -> str:
    """The columns before a bar."""
    known = f"{percent:>7} {total:>{_wide(tree)}}"
    return f"{known} {count:>10}  " if _counts(tree) else f"{known}  "


def _counts(tree: StackTree) -> bool:
    """Whether the number of rows says anything: those of a file of stacks are no calls."""
    return tree.metric.noun == "activities"


def _wide(tree: StackTree) -> int:
    """Cells of the longest value: times are short, samples can be billions."""
    return max(len(format_value(int(tree.total[0]), tree.metric.unit)), _VALUE)


def _drawn(tree: StackTree, line: _Line, width: int) -> str:
    total, whole = int(tree.total[line.node]), int(tree.total[0])
    percent = format_percent(total, whole).removesuffix(" %")
    # Parts of activities are no number of them.
    parts = any(tree.kind(node) in PART_KINDS for node in tree.path(line.node))
    count = "" if parts else format_count(int(tree.count[line.node]))
    numbers = _numbers(tree, percent, format_value(total, tree.metric.unit), count)
    left = f"{numbers}{_bar(total / whole)} "
    room = width - cells(left)
    # However deep the stack, half of the room stays for names.
    indent = "  " * min(line.indent, room // 4)
    return left + indent + _named(tree, line, room - len(indent))


def _named(tree: StackTree, line: _Line, room: int) -> str:
    """The names, as many as have room, and in brackets where the innermost is in the sources."""
    inverted = tree.layout.inverted
    names = [printable(tree.name(node)) for node in line.nodes]
    place = short_place(tree.frames[int(tree.frame[line.nodes[0 if inverted else -1]])])
    behind = f" ({printable(place)})" if place else ""
    for words in chain_words(names, room, inverted=inverted):
        text = f" {SIGN} ".join(words)
        if cells(text + behind) <= room:
            return text + behind
    return cut(text if len(names) > 1 else text + behind, room)


def _joined(texts: Sequence[str], sign: str, room: int) -> list[str]:
    """``texts`` with ``sign`` between them, on as many lines of ``room`` cells as that takes."""
    lines = [cut(texts[0], room)]
    for text in texts[1:]:
        longer = f"{lines[-1]} {sign} {text}"
        if cells(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(cut(f"{sign} {text}", room))
    return lines


def _bar(share: float) -> str:
    """``share`` of twelve cells, honest to an eighth of a cell."""
    eighths = round(share * _BAR * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(_BAR)


def _top(tree: StackTree, terms: Terms, width: int) -> list[str]:
    sums = frame_totals(tree)
    rows = heaviest_rows(sums, MOST_NAMES)
    if not rows:
        return []
    wide = _wide(tree)
    head = f"{'%':>7} {'self':>{wide}} {'total':>{wide}}"
    head += f" {'count':>10} {'mean':>{wide}}" if _counts(tree) else ""
    head += f"  {'level':<{_KIND}} name"
    return [head, *(_top_row(tree, sums, row, terms, width) for row in rows)]


def _top_row(tree: StackTree, sums: FrameTotals, row: int, terms: Terms, width: int) -> str:
    unit, frame = tree.metric.unit, tree.frames[int(sums.frame[row])]
    own, total, count = int(sums.own[row]), int(sums.total[row]), int(sums.count[row])
    share = format_percent(own, int(tree.total[0])).removesuffix(" %")
    whole = frame.kind not in PART_KINDS
    mean = format_value(total / count, unit) if count and whole else ""
    wide = _wide(tree)
    left = f"{share:>7} {format_value(own, unit):>{wide}} {format_value(total, unit):>{wide}}"
    number = format_count(count) if whole else ""
    left += f" {number:>10} {mean:>{wide}}" if _counts(tree) else ""
    left += f"  {kind_word(frame, terms):<{_KIND}} "
    place = short_place(frame)
    place = f"  {cut(printable(place), _LONGEST_PLACE)}" if place else ""
    name = printable(tree.text[int(sums.frame[row])])
    return left + cut(name, width - cells(left) - cells(place)) + place
