#!/usr/bin/env python3
"""The tree of a trace as one Rich Text, repainted whole at every key: what `bench_tui` compares to.

Arrows move, enter zooms, u zooms out, q quits. Straightforward and not slowed down on purpose: it
visits only the frames that are at least a cell wide.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widget import Widget

import flame

COLOURS = tuple(
    Style(color="#101010", bgcolor=f"#{red:02x}{green:02x}60")
    for red in range(112, 241, 16)
    for green in range(112, 241, 16)
)
SELECTED = Style(color="#ffffff", bgcolor="#0040c0", bold=True)
EMPTY = Style()


class Node:
    """A frame at its place in the tree, its children widest first."""

    def __init__(self, name: str, total: int, parent: Node | None) -> None:
        self.name = name
        self.total = total
        self.parent = parent
        self.children: list[Node] = []


class Box(NamedTuple):
    """A frame on screen, in cells."""

    node: Node
    left: int
    width: int


def read(path: str) -> Node:
    """The root of the default tree of the trace at ``path``."""
    tree = flame.load(path).tree()
    nodes: list[Node] = []
    for place, (parent, total) in enumerate(
        zip(tree.parent.tolist(), tree.total.tolist(), strict=True)
    ):
        above = nodes[parent] if place else None
        node = Node(tree.name(place), total, above)
        nodes.append(node)
        if above:
            above.children.append(node)
    return nodes[0]


class Graph(Widget, can_focus=True):
    """Draws the part below ``top``, root on top."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("left", "across(-1)"),
        ("right", "across(1)"),
        ("up", "up"),
        ("down", "down"),
        ("enter", "enter"),
        ("u", "out"),
        ("q", "app.quit"),
    ]

    def __init__(self, root: Node) -> None:
        super().__init__()
        self.top = self.cursor = root

    def render(self) -> Text:
        rows: list[list[Box]] = [[Box(self.top, 0, self.size.width)]]
        while rows[-1] and len(rows) < self.size.height:
            rows.append([child for box in rows[-1] for child in below(box)])
        return Text("\n").join(map(self._row, rows))

    def _row(self, boxes: list[Box]) -> Text:
        text = Text(no_wrap=True, end="")
        at = 0
        for node, left, width in boxes:
            text.append(" " * (left - at), EMPTY)
            colour = COLOURS[zlib.crc32(node.name.encode()) % len(COLOURS)]
            label = f"▏{node.name} {100 * node.total / self.top.total:.1f} %"
            text.append(label[:width].ljust(width), SELECTED if node is self.cursor else colour)
            at = left + width
        return text

    def action_across(self, step: int) -> None:
        if self.cursor.parent and self.cursor is not self.top:
            row = self.cursor.parent.children
            self._select(row[(row.index(self.cursor) + step) % len(row)])

    def action_up(self) -> None:
        if self.cursor.parent and self.cursor is not self.top:
            self._select(self.cursor.parent)

    def action_down(self) -> None:
        if self.cursor.children:
            self._select(self.cursor.children[0])

    def action_enter(self) -> None:
        self.top = self.cursor
        self.refresh()

    def action_out(self) -> None:
        self.top = self.cursor = self.top.parent or self.top
        self.refresh()

    def _select(self, node: Node) -> None:
        self.cursor = node
        self.refresh()


def below(box: Box) -> Iterator[Box]:
    """The children of ``box`` that are at least a cell wide."""
    left = 0
    for child in box.node.children:
        begin, end = (box.width * at // box.node.total for at in (left, left + child.total))
        if end == begin:
            return
        yield Box(child, box.left + begin, end - begin)
        left += child.total


class NaiveApp(App[None]):
    """Nothing but the graph."""

    def __init__(self, root: Node) -> None:
        super().__init__()
        self.root = root

    def compose(self) -> ComposeResult:
        yield Graph(self.root)

    def on_mount(self) -> None:
        self.query_one(Graph).focus()


if __name__ == "__main__":
    NaiveApp(read(sys.argv[1])).run()
