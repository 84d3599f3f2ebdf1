"""Anchor stretches of a tree, by path and part of a frame, to find them in a later tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.tui.session.row_layout import LayoutRow, Span, TreeLayout


class Edge(NamedTuple):
    """A point of the horizontal axis: the frames it lies in, and where in the root and in each."""

    names: tuple[str, ...]
    parts: tuple[float, ...]


class Anchor(NamedTuple):
    """What is zoomed: the frame at ``names``, or a stretch of it, which has two ``edges``."""

    names: tuple[str, ...]
    edges: tuple[Edge, Edge] | None = None


def anchor_of(layout: TreeLayout, node: int, span: Span) -> Anchor:
    """Return the anchor of ``span``, which lies below ``node``."""
    names = layout.tree.names(node)
    if span == layout.span(node):
        return Anchor(names)
    return Anchor(names, (_edge(layout, span.low, False), _edge(layout, span.high, True)))


def span_of(layout: TreeLayout, edges: tuple[Edge, Edge]) -> Span:
    """Return where ``edges`` are in another tree, as far down as it has their frames."""
    return Span(*(_position(layout, edge) for edge in edges))


def _edge(layout: TreeLayout, at: int, ends: bool) -> Edge:
    """The edge at ``at``, which ``ends`` what lies left of it, or else begins what lies right."""
    node, names, parts = 0, [], [_part(layout.span(0), at)]
    while (below := _below(layout, node, at, ends)) >= 0:
        node = below
        names.append(layout.tree.name(node))
        parts.append(_part(layout.span(node), at))
    return Edge(tuple(names), tuple(parts))


def _part(span: Span, at: int) -> float:
    return (at - span.low) / max(span.high - span.low, 1)


def _below(layout: TreeLayout, node: int, at: int, ends: bool) -> int:
    """The child of ``node`` that ``at`` lies in, -1 where there is none."""
    tree = layout.tree
    row = layout.row(int(tree.depth[node]) + 1)
    place = _place(row, at, ends)
    if not 0 <= place < len(row.nodes):
        return -1
    inside = row.low[place] < at if ends else row.low[place] <= at
    child = int(row.nodes[place])
    return child if inside and tree.parent[child] == node else -1


def _place(row: LayoutRow, at: int, ends: bool) -> int:
    if ends:
        place = int(np.searchsorted(row.low, at, "left")) - 1
        return place if place < 0 or at <= row.high[place] else -1
    return int(np.searchsorted(row.high, at, "right"))


def _position(layout: TreeLayout, edge: Edge) -> int:
    node = layout.tree.find(edge.names)
    span = layout.span(node)
    part = edge.parts[int(layout.tree.depth[node])]
    return span.low + round(part * (span.high - span.low))
