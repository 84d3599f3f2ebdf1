"""Bound the work that a snapshot makes: a list may hold one object a million times, and so on."""

from __future__ import annotations

from flame.core.errors import InputError

_OBJECT = 20
"""Bytes of the file that a block, a segment or an event takes at least: a dictionary of some."""


class ObjectAllowance:
    """Counts what is visited: objects, and references to them, such as those in lists of frames."""

    def __init__(self, file_size: int) -> None:
        self._left = file_size

    def take_objects(self, number: int) -> None:
        """Count ``number`` objects more that are rows then, as `take` does, each as its bytes."""
        self.take(_OBJECT * number)

    def take(self, number: int) -> None:
        """Count ``number`` references more. Raises InputError beyond one per byte of the file."""
        self._left -= number
        if self._left < 0:
            raise InputError("it repeats its parts more often than its size allows")
