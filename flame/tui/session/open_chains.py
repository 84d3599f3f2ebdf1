"""Name the open chains of a tree by path, to find them again in a later tree."""

from __future__ import annotations

from typing import NamedTuple

from flame.tui.session.joined_rows import JoinedRows, OpenChains


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
