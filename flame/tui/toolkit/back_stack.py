"""Remember places left, to go back to them and forward again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_Place = TypeVar("_Place")


class BackStack(Generic[_Place]):
    """Remember the last ``most`` places left; ``step`` is -1 back, +1 forward."""

    def __init__(self, most: int = 20) -> None:
        self._most = most
        self._past: list[_Place] = []
        self._future: list[_Place] = []

    def leave(self, place: _Place) -> None:
        """Go on from ``place`` to a new one: there is nothing forward any more."""
        self._past = [*self._past[1 - self._most :], place]
        self._future.clear()

    def ahead(self, step: int) -> _Place | None:
        """Tell where ``step`` would lead, None at the end."""
        source = self._past if step < 0 else self._future
        return source[-1] if source else None

    def go(self, step: int, place: _Place) -> _Place | None:
        """Go one ``step`` from ``place``; None, and nothing changes, at the end."""
        source, target = (self._past, self._future)[:: -1 if step > 0 else 1]
        if not source:
            return None
        target.append(place)
        return source.pop()

    def changed(self, change: Callable[[_Place], _Place]) -> BackStack[_Place]:
        """Return the same way through what ``change`` makes of its places."""
        trail = BackStack[_Place](self._most)
        trail._past = list(map(change, self._past))
        trail._future = list(map(change, self._future))
        return trail
