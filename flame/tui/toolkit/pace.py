"""Space out what is worked out again and again, so that it leaves time for all else."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from time import monotonic


@dataclass
class Pace:
    """Delay each result by what the last one took.

    At least ``least`` seconds lie between two, and ``share`` times as long as the last one took,
    but no more than ``most``.
    """

    least: float
    share: float = 3
    most: float = inf
    _due: float = field(init=False, default=-inf)

    def delay(self, seconds: float, since: float) -> None:
        """Have the next result wait from ``since`` on: the last one took ``seconds``."""
        self._due = since + max(self.least, min(self.share * seconds, self.most))

    def hurry(self) -> None:
        """Let the next result come at once."""
        self._due = -inf

    def wait(self) -> float:
        """Return the seconds until the next result is due; 0 if it is."""
        return max(self._due - monotonic(), 0.0)
