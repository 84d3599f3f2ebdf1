"""Name stretches and open chains of a tree by path, to find them again in a later tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.tui.session.joined_rows import JoinedRows, OpenChains
from flame.tui.session.row_layout import RowLayout, Span


class Edge(NamedTuple):
    """A point of the horizontal axis: the frames it lies in, and where in the root and in each."""

    names: tuple[str, ...]
    parts: tuple[float, ...]


class Anchor(NamedTuple):
    """What is zoomed: the frame at ``names``, or a stretch of it, which has two ``edges``."""

    names: tuple[str, ...]
    edges: tuple[Edge, Edge] | None = None


def anchor_of(layout: RowLayout, node: int, span: Span) -> Anchor:
    """Return the anchor of ``span``, which lies below ``node``."""
    names = layout.tree.names(node)
    if span == layout.span(node):
        return Anchor(names)
    return Anchor(names, (_edge(layout, span.low, False), _edge(layout, span.high, True)))


def span_of(layout: RowLayout, edges: tuple[Edge, Edge]) -> Span:
    """Return where ``edges`` are in another tree, as far down as it has their frames."""
    return Span(*(_position(layout, edge) for edge in edges))


def _edge(layout: RowLayout, at: int, ends: bool) -> Edge:
    """The edge at ``at``, which ``ends`` what lies left of it, or else begins what lies right."""
    nodes = layout.tree.path(_deepest(layout, at - 1 if ends else at))
    names = (layout.tree.name(node) for node in nodes[1:])
    return Edge(tuple(names), tuple(_part(layout.span(node), at) for node in nodes))


def _part(span: Span, at: int) -> float:
    return (at - span.low) / max(span.high - span.low, 1)


def _deepest(layout: RowLayout, at: int) -> int:
    """The deepest frame that the metric unit at ``at`` is a part of."""
    node = max(int(np.searchsorted(layout.tree.x, at, "right")) - 1, 0)
    while node and at >= layout.span(node).high:
        node = int(layout.tree.parent[node])
    return node


def _position(layout: RowLayout, edge: Edge) -> int:
    node = layout.tree.find(edge.names)
    span = layout.span(node)
    part = edge.parts[int(layout.tree.depth[node])]
    return span.low + round(part * (span.high - span.low))


class Stretch(NamedTuple):
    """The frames along ``names``, which begin below the root, from depth ``first`` on."""

    first: int
    names: tuple[str, ...]


class OpenPaths(NamedTuple):
    """Which chains are open: ``everything`` or nothing, ``but`` those that touch one of these."""

    everything: bool = False
    but: tuple[Stretch, ...] = ()


def paths_of(joined: JoinedRows) -> OpenPaths:
    """Return which chains are open in ``joined``."""
    tree, chains = joined.tree, joined.chains
    around = (chains.around(first).tolist() for first in sorted(joined.opened.but))
    but = (Stretch(int(tree.depth[nodes[0]]), tree.names(nodes[-1])) for nodes in around if nodes)
    return OpenPaths(joined.opened.everything, tuple(but))


def opened_at(joined: JoinedRows, paths: OpenPaths) -> OpenChains:
    """Return the chains of ``joined`` that ``paths`` mean, as far as its tree has their frames."""
    chains = {
        int(joined.chains.of[node])
        for stretch in paths.but
        for node in joined.tree.path(joined.tree.find(stretch.names))[stretch.first :]
    }
    first = joined.chains.first
    return OpenChains(paths.everything, frozenset(int(first[chain]) for chain in chains - {-1}))
