"""Hold the heaviest parts of a whole, and where in the tree each is."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """A part of a frame's value; ``node`` is where a click leads, -1: nowhere."""

    name: str
    value: int
    node: int = -1


class HeaviestParts(NamedTuple):
    """The heaviest parts of ``whole``, and how many there are."""

    heaviest: list[Part]
    number: int
    whole: int
