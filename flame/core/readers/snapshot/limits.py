"""Bound the work that a snapshot makes: a list may hold one object a million times, and so on."""

from __future__ import annotations

from flame.core.errors import InputError


class ObjectAllowance:
    """Counts what is visited; an honest object takes 20 bytes of the file and more."""

    def __init__(self, file_size: int) -> None:
        self._left = file_size

    def take(self, number: int) -> None:
        """Count ``number`` objects more. Raises InputError beyond one for each byte of the file."""
        self._left -= number
        if self._left < 0:
            raise InputError("it repeats its parts more often than its size allows")
