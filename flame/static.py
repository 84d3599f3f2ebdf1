"""The static view: the icicle as an indented tree with bars, the top table, and the notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from flame.core.profile import Profile
from flame.core.selection import Selection
from flame.core.stats import NameTotal, top
from flame.core.tree import StackTree
from flame.core.units import format_count, format_ns, format_percent, format_value
from flame.report import gpus, notes
from flame.terminal import cells, cut, printable

NARROWEST = 72
MOST_LINES = 40
MOST_CHAINED = 40
MOST_NAMES = 15
SMALLEST_SHARE = 0.01

_BAR = 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NUMBERS = "{percent:>7} {total:>9} {count:>10}  "


def view(profile: Profile, selection: Selection, title: str, width: int) -> str:
    """All of it in lines of at most ``width`` cells (no fewer than 72), without colour.

    Raises as `flame.core.project.project`.
    """
    width = max(width, NARROWEST)
    tree = selection.tree(profile)
    sections = [_header(profile, tree, title, width), _icicle(tree, width), _top(tree, width)]
    sections.append(notes(profile.warnings, width))
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _header(profile: Profile, tree: StackTree, title: str, width: int) -> list[str]:
    whole = [printable(title), gpus(profile.devices)]
    if not profile.resolved:
        whole.append(f"GPU time {format_ns(profile.gpu_time)} in {format_ns(profile.duration)}")
    rows = "stacks" if profile.resolved else "activities"
    whole.append(f"{format_count(len(profile.activities))} {rows}")
    total = format_value(int(tree.total[0]), tree.metric.unit)
    shown = [f"{tree.metric.title} {total} by {', '.join(tree.levels)}"]
    if profile.gpu_time and not profile.resolved:
        whole_ns, parts = profile.gpu_time, profile.coverage.items()
        covered = [f"{key} {format_percent(part.ns, whole_ns)}" for key, part in parts]
        shown.append(f"coverage: {', '.join(covered)}")
    return _joined([text for text in whole if text], "·", width) + _joined(shown, "·", width)


@dataclass(frozen=True)
class _Line:
    """A node and, joined to it, the chain of only children below that hold all of its value."""

    node: int
    last: int
    indent: int

    @property
    def length(self) -> int:
        """Number of nodes."""
        return self.last - self.node + 1


def _icicle(tree: StackTree, width: int) -> list[str]:
    if not tree.total[0]:
        return [f"nothing to show: {tree.metric.title} is zero"]
    drawn: dict[_Line, list[str]] = {}
    room = MOST_LINES
    # A node is never larger than its parent and comes after it: the largest lines are a whole tree.
    for line in sorted(_lines(tree), key=lambda line: (-int(tree.total[line.node]), line.node)):
        drawn[line] = _drawn(tree, line, width)
        room -= len(drawn[line])
        if room <= 0:
            break
    head = _NUMBERS.format(percent="%", total="total", count="count").rstrip()
    ordered = sorted(drawn, key=lambda line: line.node)
    lines = [head, *(text for line in ordered for text in drawn[line])]
    hidden = len(tree) - sum(line.length for line in drawn)
    if hidden:
        lines.append(f"smaller frames not shown: {format_count(hidden)}")
    return lines


def _lines(tree: StackTree) -> Iterator[_Line]:
    """Lines of all nodes that hold at least one percent, in preorder."""
    smallest = max(SMALLEST_SHARE * int(tree.total[0]), 1)
    indent: dict[int, int] = {-1: -1}
    last = -1
    # What stands above such a node is never smaller: its parent has its line already.
    for node in np.flatnonzero(tree.total >= smallest).tolist():
        if node <= last:
            continue
        last = _end_of_chain(tree, node)
        indent[last] = indent[int(tree.parent[node])] + 1
        yield _Line(node, last, indent[last])


def _end_of_chain(tree: StackTree, node: int) -> int:
    """The last of the only children below ``node`` that hold its whole value; the root has none."""
    last = node
    while node and last + 1 < tree.end[last] and tree.total[last + 1] == tree.total[node]:
        last += 1
    return last


def _drawn(tree: StackTree, line: _Line, width: int) -> list[str]:
    total, whole = int(tree.total[line.node]), int(tree.total[0])
    numbers = _NUMBERS.format(
        percent=format_percent(total, whole).removesuffix(" %"),
        total=format_value(total, tree.metric.unit),
        count=format_count(int(tree.count[line.node])),
    )
    left = f"{numbers}{_bar(total / whole)} "
    room = width - cells(left)
    # However deep the stack, half of the room stays for names.
    indent = "  " * min(line.indent, room // 4)
    first, *more = _joined(_chain(tree, line), "›", room - len(indent))
    return [left + indent + first, *(" " * cells(left) + indent + text for text in more)]


def _chain(tree: StackTree, line: _Line) -> list[str]:
    """Names of the line's nodes; of a very long chain only its ends."""
    nodes: list[int] = [*range(line.node, line.last + 1)]
    names = [printable(tree.name(node)) for node in nodes[:MOST_CHAINED]]
    if len(nodes) <= MOST_CHAINED:
        return names
    half = MOST_CHAINED // 2
    tail = [printable(tree.name(node)) for node in nodes[-half:]]
    return [*names[:half], f"({format_count(len(nodes) - 2 * half)} frames)", *tail]


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


def _top(tree: StackTree, width: int) -> list[str]:
    rows = sorted(top(tree), key=lambda row: (-row.own, -row.total))
    rows = [row for row in rows[:MOST_NAMES] if row.own]
    if not rows:
        return []
    head = f"{'%':>7} {'self':>9} {'total':>9} {'count':>10} {'mean':>9}  {'level':<7} name"
    return [head, *(_top_row(tree, row, width) for row in rows)]


def _top_row(tree: StackTree, row: NameTotal, width: int) -> str:
    unit = tree.metric.unit
    share = format_percent(row.own, int(tree.total[0])).removesuffix(" %")
    mean = format_value(row.total / row.count, unit) if row.count else ""
    own, total = format_value(row.own, unit), format_value(row.total, unit)
    left = f"{share:>7} {own:>9} {total:>9} {format_count(row.count):>10} {mean:>9}  "
    left += f"{row.kind.title:<7} "
    return left + cut(printable(row.name), width - cells(left))
