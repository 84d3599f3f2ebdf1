"""Declare what draws the frames of a tree by something else than what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from flame.core.columns import F8
from flame.core.model.tree import StackTree


class NodeColours(Protocol):
    """Colour the nodes of ``tree``: by how they have changed, by how far ranks are apart in them.

    `flame.core.compare.colouring.Colouring` is one.
    """

    @property
    def tree(self) -> StackTree:
        """The tree whose nodes are coloured."""

    @property
    def found(self) -> object:
        """What colours were worked out of: the same object as long as they are the same."""

    @property
    def strength(self) -> F8:
        """The strength of each node's colour, f8[n]: warm from 0 to 1, cold from 0 to -1."""

    def is_one_sided(self, node: int) -> bool:
        """Tell whether only some of those compared have ``node`` at all: its colour is another."""

    def sign(self, node: int) -> str:
        """Say the same as the colour of ``node`` in a sign; empty where it has none."""

    def words(self, node: int) -> list[str]:
        """Say of ``node`` what its colour is about, in few words, the most important first."""

    def derive(self, make: Callable[[StackTree], StackTree]) -> NodeColours | None:
        """Colour what ``make`` makes of the tree; None where that has no such colours."""
